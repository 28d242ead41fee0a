"""Compiled functions: what is too slow in Python and too odd for NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from jostle.compiling import at_work, turn

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=np.generic)


def kernel(function: F) -> F:
    """Compile a kernel: kept on disk, free of the interpreter lock, run by one thread."""
    # Nobody calls a kernel by its address in memory, so it is not wrapped for that.
    compiled: Any = numba.njit(nogil=True, no_cfunc_wrapper=True)(function)
    try:
        store = _Store(function)
    except RuntimeError:  # no folder can be written to: every process compiles anew
        return compiled  # type: ignore[no-any-return]
    compile_alone = compiled.compile

    def compile_for_all(signature: Any) -> Any:
        # The threads of this process take turns first, so that none waits for another while that waits for it.
        with global_compiler_lock, store.work:
            return compile_alone(signature)

    compiled._cache, compiled.compile = store, compile_for_all
    return compiled  # type: ignore[no-any-return]


class _Store(FunctionCache):  # type: ignore[misc]
    """Where a kernel lies once it is compiled. One process does that; others wait, and then load it.

    Attributes:
        work: what is to be ended when the kernel is compiled, or cannot be.
    """

    def __init__(self, function: F) -> None:
        super().__init__(function)
        self.work = ExitStack()
        self._lock = os.path.join(self.cache_path, f"{self._impl.filename_base}.lock")

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, if it was; if not, it is now this process's turn."""
        found = super().load_overload(signature, context)
        if found is not None:
            return found
        self.work.enter_context(at_work())
        self.work.enter_context(turn(self._lock))
        return super().load_overload(signature, context)


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
