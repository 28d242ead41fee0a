"""Matplotlib figures and contact sheets."""
