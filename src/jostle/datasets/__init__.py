"""Data sets on disk, by name and layout, and the generated puppet data set."""
