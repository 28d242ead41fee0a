"""Compiled functions: what is too slow in Python and too odd for NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a kernel: cached on disk, free of the interpreter lock, run by one thread."""
    cache = os.access(os.path.dirname(__file__), os.W_OK) or "NUMBA_CACHE_DIR" in os.environ
    return numba.njit(cache=cache, nogil=True)(function)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Compile a small function into the kernels that call it."""
    return numba.njit(inline="always")(function)  # type: ignore[no-any-return]
