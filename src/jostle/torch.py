"""Transforms for data loaders in PyTorch. Public and stable, like `jostle` itself; torch is imported on first use."""

from jostle.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
