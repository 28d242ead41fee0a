"""Everything a plugin author needs: decorators, base classes and types. Public and stable, like `jostle` itself."""

from jostle.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
