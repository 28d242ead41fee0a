"""How files come in and go out: told by content, read as data, checked with the place, written whole."""
