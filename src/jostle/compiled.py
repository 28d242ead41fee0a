"""Compiled functions: what is too slow in Python and too odd for NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=np.generic)


def kernel(function: F) -> F:
    """Compile a kernel: cached on disk, free of the interpreter lock, run by one thread."""
    cache = os.access(os.path.dirname(__file__), os.W_OK) or "NUMBA_CACHE_DIR" in os.environ
    return numba.njit(cache=cache, nogil=True)(function)  # type: ignore[no-any-return]


def fixed(array: npt.NDArray[S]) -> npt.NDArray[S]:
    """The same array, not to be written to. A kernel is compiled anew for arrays that may be, so it is given these."""
    view = array.view()
    view.flags.writeable = False
    return view


def inlined(function: F) -> F:
    """Compile a small function into the kernels that call it."""
    return numba.njit(inline="always")(function)  # type: ignore[no-any-return]
