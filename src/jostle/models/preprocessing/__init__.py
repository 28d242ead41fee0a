"""Resizing, cropping and normalisation of frames, on the CPU and fused on a GPU."""
