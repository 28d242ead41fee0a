"""Compiling a kernel: by one process for all, and not in silence when it takes long."""

from __future__ import annotations

import fcntl
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
