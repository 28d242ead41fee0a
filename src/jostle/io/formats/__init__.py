"""Annotation and prediction formats, one per file."""
