"""Supervision of child processes, so that none outlives this process.

A child notices that its parent died when their socket closes, but only while it runs Python code, not during a long
call into a compiled library. So a small shell script waits beside the children. It reads their process ids from a pipe
that only this process holds open; when the pipe closes, this process has ended, and the script kills the children.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable

ORPHAN_GRACE_S = 1.0  # for orphans to remove partial files
_SHELL = "/bin/sh"  # present on every POSIX system, and starts in a millisecond
# The last line read is in force. Signals from the terminal are left to the parent.
_SCRIPT = f"""
trap '' INT TERM HUP QUIT
children=
while read -r line; do children=$line; done
sleep {ORPHAN_GRACE_S + 0.25} || sleep {ORPHAN_GRACE_S + 1:.0f}
[ -z "$children" ] || kill -KILL $children
"""


class OrphanSupervisor:
    """Kills the watched child processes when this process ends.

    Raises:
        OSError: if the supervisor process cannot be started.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [_SHELL, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def watch(self, children: Iterable[int]) -> None:
        """Watch these process ids in place of the previous ones.

        Remove an id before waiting for its process: afterwards the system may reuse it.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the supervisor was killed; children still notice the closed socket
            self._process.stdin.write(" ".join(map(str, children)).encode() + b"\n")
            self._process.stdin.flush()

    def stop(self) -> None:
        """Stop the supervisor, once no child is left."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()
