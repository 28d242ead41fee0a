"""Recognisers: networks that classify a clip or a single frame."""
