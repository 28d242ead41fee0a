"""Parameter tables of the papers, one file per paper."""
