"""Pages that open from disk: what runs say, drawn and written for a reader. Nothing in them is fetched from outside."""
