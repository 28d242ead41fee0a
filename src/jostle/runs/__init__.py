"""A run folder: where its files lie, what it is a run of, and the journal of what has been done."""
