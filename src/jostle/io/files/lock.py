"""One process at a time in a folder. The lock of the system counts; a note beside it says whose it is."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import time
from pathlib import Path
from typing import Self

from jostle.errors import DataError, ResourceError

NOTE = ".owner"


class Ownership:
    """A folder that no other process may work in meanwhile, made if it is not there; use it as a context.

    The lock is on the folder itself, so that no file has to outlive the work, and the end of the process is the end
    of the lock.

    Raises:
        ResourceError: if another process works there, or the disk is full.
        DataError: if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / NOTE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ResourceError(f"no room on the disk for {folder}; free some, then run again") from None
            raise DataError(f"{folder}: cannot be used ({error.strerror}); name another folder") from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise ResourceError(
                f"{folder}: another process works in this folder{self._owner()}; wait for it, or end it", fault="F74"
            ) from None
        except OSError:  # some network file systems know no locks
            pass
        with contextlib.suppress(OSError):  # a note that a killed process left is written over
            self._note.write_text(f"{platform.node()} {os.getpid()} {time.strftime('%Y-%m-%dT%H:%M:%S%z')}\n")

    def _owner(self) -> str:
        try:
            host, process, since = self._note.read_text().split()
        except (OSError, ValueError):
            return ""
        return f" (process {process} on {host}, since {since})"

    def give_up(self) -> None:
        """Let others in."""
        with contextlib.suppress(OSError):
            self._note.unlink()
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_up()
