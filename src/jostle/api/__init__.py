"""The verbs of the Python API, which the command line calls in turn."""

from jostle.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
