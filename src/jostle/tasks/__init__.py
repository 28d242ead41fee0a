"""The kinds of benchmark, one to a file: what is annotated, kept, written and scored; each puts itself on the shelf."""
