"""Compiled functions: what is too slow in Python and too odd for NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

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


@intrinsic  # type: ignore[untyped-decorator]
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """In a kernel: a * b + c, rounded once, also on processors that have no instruction for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), generate
