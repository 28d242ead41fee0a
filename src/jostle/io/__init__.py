"""Reading and writing: video, annotation and prediction files, and file formats."""
