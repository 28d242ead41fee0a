"""Temporal action detectors: features or frames in, scored segments out."""
