"""Decorators for Numba kernels, which are compiled once for all processes and cached on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import entrypoints
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from jostle.core.compilation import compiling, exclusive_lock

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=np.generic)


_load_numba_extensions = entrypoints.init_all


def _try_numba_extensions() -> None:
    """Load Numba's extensions, which reads the entry points of all packages and fails at a malformed one."""
    with suppress(Exception):  # `jostle.core.plugins` names the package
        _load_numba_extensions()


entrypoints.init_all = _try_numba_extensions


def kernel(function: F) -> F:
    """Compile a kernel that is cached on disk, releases the interpreter lock and runs in one thread."""
    # Kernels are not called through C function pointers, so no wrapper is compiled.
    compiled: Any = numba.njit(nogil=True, no_cfunc_wrapper=True)(function)
    try:
        cache = _KernelCache(function)
    except RuntimeError:  # no writable cache folder: every process compiles
        return compiled  # type: ignore[no-any-return]
    compile_original = compiled.compile

    def compile_for_all(signature: Any) -> Any:
        # Numba's lock comes first, so that threads of this process cannot deadlock.
        with global_compiler_lock, cache.work:
            return compile_original(signature)

    compiled._cache, compiled.compile = cache, compile_for_all
    return compiled  # type: ignore[no-any-return]


def is_cached(function: Callable[..., Any]) -> bool:
    """Return whether a kernel was compiled before, for whatever types."""
    cache = getattr(function, "_cache", None)
    return isinstance(cache, _KernelCache) and cache.index_path.exists()


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Disk cache of a kernel; one process compiles it while others wait and then load it.

    Attributes:
        work: contexts to close when the kernel is compiled, or cannot be.
        index_path: file that lists the types it was compiled for.
    """

    def __init__(self, function: F) -> None:
        super().__init__(function)
        self.work = ExitStack()
        self.index_path = Path(self.cache_path, f"{self._impl.filename_base}.nbi")
        self._lock = os.path.join(self.cache_path, f"{self._impl.filename_base}.lock")

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Load the kernel compiled for these types; if there is none, take the lock for compiling it."""
        overload = super().load_overload(signature, context)
        if overload is not None:
            return overload
        self.work.enter_context(compiling())
        self.work.enter_context(exclusive_lock(self._lock))
        return super().load_overload(signature, context)


def read_only(array: npt.NDArray[S]) -> npt.NDArray[S]:
    """Return a read-only view; kernels are compiled for read-only arrays, and again for writable ones."""
    view = array.view()
    view.flags.writeable = False
    return view


def inlined(function: F) -> F:
    """Compile a small function into the kernels that call it."""
    return numba.njit(inline="always")(function)  # type: ignore[no-any-return]


@intrinsic  # type: ignore[untyped-decorator]
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Compute a * b + c with a single rounding in a kernel, on every processor."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), generate
