"""Compiled kernels and drawn textures that the families share."""
