"""What the papers printed: their tables as data, one file a paper, and where those do not add up."""
