"""Compile times of kernels: a message when compiling takes long, and one compiling process at a time."""

from __future__ import annotations

import fcntl
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

REPORT_AFTER_S = 2.0  # of compile time
WAIT_S = 60.0  # for another process, which compiles one kernel in seconds; a stopped process blocks nobody for longer
POLL_S = 0.02
MESSAGE = "compiling kernels for this machine, which is done once"

_callback: Callable[[str], None] | None = None
_spent = 0.0
_timer: threading.Timer | None = None


def set_compile_callback(callback: Callable[[str], None] | None) -> None:
    """Set the function that is called once when this process has compiled for two seconds; None for no call."""
    global _callback, _spent
    _callback, _spent = callback, 0.0


def has_compile_callback() -> bool:
    """Return whether a compile callback is registered."""
    return _callback is not None


@contextmanager
def compiling() -> Iterator[None]:
    """Measure the compile time of the block, with the garbage collector off; blocks may be nested.

    The compiler allocates a million small objects that live until it is done; collecting garbage meanwhile took a tenth
    of the compile time.
    """
    global _spent, _timer
    if _timer is not None:
        yield
        return
    begin, collecting = time.monotonic(), gc.isenabled()
    _timer = threading.Timer(max(REPORT_AFTER_S - _spent, 0.0), _report)
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


def _report() -> None:
    global _callback
    if _callback is not None:
        _callback(MESSAGE)
        _callback = None


@contextmanager
def exclusive_lock(path: str) -> Iterator[None]:
    """Hold the lock of a file; where files cannot be locked, go on without."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield
        return
    try:
        _wait_for_lock(handle)
        yield
    finally:
        os.close(handle)  # releases the lock


def _wait_for_lock(handle: int) -> None:
    # A record lock, not flock's, which a forked process would inherit.
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except (BlockingIOError, PermissionError):  # both mean that the lock is held
            time.sleep(POLL_S)
        except OSError:
            return
