"""Weights: resolved from a path or name, downloaded on explicit request, or bundled."""
