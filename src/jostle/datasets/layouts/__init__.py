"""Public data sets in the directory layouts they are distributed in."""
