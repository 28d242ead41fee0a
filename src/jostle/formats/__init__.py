"""File formats of annotations and predictions, one to a file; each puts itself on the shelf."""
