"""Compiled kernels and procedural textures that corruption families share."""
