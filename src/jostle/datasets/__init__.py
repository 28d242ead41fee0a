"""Data sets as they lie on disk: video files, their names, and the annotations beside them."""
