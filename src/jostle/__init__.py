"""Robustness toolkit for video models: corrupt, run, score, diagnose, train and mend."""

from jostle.core.lazy import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
