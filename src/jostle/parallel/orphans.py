"""Children that end with this process, however it ends and whatever they are busy with.

A child that is told of its parent's end by a closed socket has to be running Python to hear it: one in a long call of
a compiled library is not. So a shell of a few lines waits beside them. It reads the numbers of the children from a pipe
that nobody but this process holds open; the end of the pipe is the end of this process, and then it ends theirs.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable

FAREWELL_S = 1.0  # for orphans to remove what they have half-written
_SHELL = "/bin/sh"  # every POSIX system has one there, and it starts in a millisecond
# The last line that was read is in force. Signals of a terminal are for the parent, which decides what comes of them.
_WARDEN = f"""
trap '' INT TERM HUP QUIT
children=
while read -r line; do children=$line; done
sleep {FAREWELL_S + 0.25} || sleep {FAREWELL_S + 1:.0f}
[ -z "$children" ] || kill -KILL $children
"""


class Lifeline:
    """Holds children to this process's life.

    Raises:
        OSError: if no process can be started.
    """

    def __init__(self) -> None:
        self._warden = subprocess.Popen(
            [_SHELL, "-c", _WARDEN], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def hold(self, children: Iterable[int]) -> None:
        """These processes, and no longer those that were named before, end with this one.

        A number must be taken back before its process is waited for: after that it may be somebody else's.
        """
        assert self._warden.stdin is not None
        with contextlib.suppress(OSError):  # somebody ended the warden; the children still have their sockets
            self._warden.stdin.write(" ".join(map(str, children)).encode() + b"\n")
            self._warden.stdin.flush()

    def release(self) -> None:
        """End it, once no child is left."""
        self._warden.kill()
        with contextlib.suppress(OSError):
            self._warden.communicate()
