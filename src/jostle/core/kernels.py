"""Compiling a kernel: by one process for all, and not in silence when it takes long."""

from __future__ import annotations

import fcntl
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

PATIENCE_S = 2.0  # less compiling than that says nothing
WAIT_S = 60.0  # for another process's turn, which is one kernel and takes seconds; one that was stopped holds up nobody
LOOK_EVERY_S = 0.02
REMARK = "compiling kernels for this machine, which is done once"

_say: Callable[[str], None] | None = None
_spent = 0.0
_timer: threading.Timer | None = None


def tell(say: Callable[[str], None] | None) -> None:
    """Who is told, once, when this process will have compiled for two seconds. Nobody is, unless asked for."""
    global _say, _spent
    _say, _spent = say, 0.0


def told() -> bool:
    """Whether somebody would be told now."""
    return _say is not None


@contextmanager
def at_work() -> Iterator[None]:
    """While kernels are compiled; those that call others compile them within.

    The compiler makes a million small things that live until it is done. Looking through them for garbage, time and
    again, took a tenth of the whole.
    """
    global _spent, _timer
    if _timer is not None:
        yield
        return
    begin, collecting = time.monotonic(), gc.isenabled()
    _timer = threading.Timer(max(PATIENCE_S - _spent, 0.0), _remark)
    _timer.daemon = True
    _timer.start()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        _timer.cancel()
        _timer = None
        _spent += time.monotonic() - begin


def _remark() -> None:
    global _say
    if _say is not None:
        _say(REMARK)
        _say = None


@contextmanager
def turn(place: str) -> Iterator[None]:
    """Hold a file's lock, having waited for whoever holds it. Where files cannot be locked, all go at once."""
    try:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield
        return
    try:
        _wait(handle)
        yield
    finally:
        os.close(handle)  # which lets go


def _wait(handle: int) -> None:
    # A record lock, not flock's: a process that is forked meanwhile would keep that one.
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except (BlockingIOError, PermissionError):  # both mean that it is held
            time.sleep(LOOK_EVERY_S)
        except OSError:
            return


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
