"""Safe file access: text, JSON, pickles and arrays read as data, atomic writes, locks, records."""
