"""Predictors that process a video once for all cells of a benchmark."""
