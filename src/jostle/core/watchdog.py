"""Time limit on native calls in worker processes.

A decoder that hangs cannot be interrupted from Python; only its process can be ended. Without `limit_native_calls`,
as in a caller's own program, there is no limit.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_limit_s = 0


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
