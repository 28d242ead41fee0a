"""Signals that end the program, told apart from foreign code that tries to end it, and the time limit of native calls.

`sys.exit()` in a plugin or in a user's model would end the program with exit code 0 and nothing done, or end the
thread that serves a model. Signal handlers therefore raise `Stopped`, and other exceptions of the kind are errors.
A decoder that hangs cannot be interrupted from Python; only its process can be ended. Without `limit_native_calls`,
as in a caller's own program, there is no limit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from jostle.errors import ForeignExit

_limit_s = 0
end_process = os._exit  # jostle's own way out, which no guard replaces
_BELOW_OS: Any = sys.modules[end_process.__module__]  # `posix` or `nt`, which has the same function
_lock = threading.Lock()
_guarded: dict[int, int] = {}  # depth of guarded calls, by thread
_process = 0  # the one that is guarded: children that foreign code forks end as they like
FOREIGN_EXIT = 70  # of a process that foreign code ends from a thread of its own, in place of 0


class Stopped(BaseException):
    """A signal, raised where the process stands, so that temporary files are removed on the way out.

    Attributes:
        number: number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Turn SystemExit, `os._exit(0)`, KeyboardInterrupt and the like of foreign code into an error; signals pass.

    Raises:
        ForeignExit: F122 for each of them.
    """
    try:
        with _guarding():
            yield
    except (Exception, Stopped):
        raise
    except BaseException as error:
        if _is_signal(error):
            raise
        raise ForeignExit(
            f"{describe_exit(error)}: code that jostle only calls must not end the program; let it return, or raise an "
            "ordinary exception",
            fault="F122",
        ) from error


@contextmanager
def _guarding() -> Iterator[None]:
    """Replace `os._exit` within, which ends a process without a trace of what was left undone."""
    global _process
    thread = threading.get_ident()
    with _lock:
        _process = os.getpid()
        _guarded[thread] = _guarded.get(thread, 0) + 1
        os._exit = _BELOW_OS._exit = _refuse_exit
    try:
        yield
    finally:
        with _lock:
            _guarded[thread] -= 1
            if not _guarded[thread]:
                del _guarded[thread]
            if not _guarded:
                os._exit = _BELOW_OS._exit = end_process


def _refuse_exit(status: int) -> NoReturn:
    """Raise in place of ending the process with success; in a thread that nobody waits for, end it with an error.

    Another status is seen by whoever waits for the process.
    """
    if not status and os.getpid() == _process and threading.get_ident() in _guarded:
        raise SystemExit(f"os._exit({status})")
    end_process(status if os.getpid() != _process else status or FOREIGN_EXIT)


def describe_exit(error: BaseException) -> str:
    """Describe an exception and the line that raised it."""
    content = ": ".join(filter(None, [type(error).__name__, str(error)]))
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename != __file__]
    return f"{content} in {frames[-1].filename}, line {frames[-1].lineno}" if frames else content


def _is_signal(error: BaseException) -> bool:
    """Return whether a signal was the cause: Ctrl-C with Python's own handler, or Ray ending one of its workers."""
    if isinstance(error, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return hasattr(error, "ray_terminate_msg")


def limit_native_calls(seconds: int) -> None:
    """Let the system end this process by SIGALRM when one native call takes longer than this."""
    global _limit_s
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _limit_s = seconds


@contextmanager
def native_call() -> Iterator[None]:
    """Apply the limit to the native call within."""
    if _limit_s:
        signal.alarm(_limit_s)
    try:
        yield
    finally:
        if _limit_s:
            signal.alarm(0)
