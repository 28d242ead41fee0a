"""Temporal action detectors: features of a video in, scored segments out."""
