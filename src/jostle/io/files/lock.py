"""Exclusive locks on folders; a note beside the lock says which process holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import time
from pathlib import Path
from typing import Self

from jostle.errors import ResourceError
from jostle.io.files.atomic import disk_error

NOTE = ".owner"


class FolderLock:
    """Context manager that creates a folder and locks it against other processes.

    The lock is on the folder itself, so that no lock file remains, and it ends with the process.

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
            raise disk_error(error, folder, "used", "name another folder") from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise ResourceError(
                f"{folder}: another process works in this folder{self._owner()}; wait for it, or end it", fault="F74"
            ) from None
        except OSError:  # some network file systems have no locks
            pass
        with contextlib.suppress(OSError):  # overwrites the note of a killed process
            self._note.write_text(f"{platform.node()} {os.getpid()} {time.strftime('%Y-%m-%dT%H:%M:%S%z')}\n")

    def _owner(self) -> str:
        try:
            host, process, since = self._note.read_text().split()
        except (OSError, ValueError):
            return ""
        return f" (process {process} on {host}, since {since})"

    def release(self) -> None:
        """Release the lock and remove the note."""
        with contextlib.suppress(OSError):
            self._note.unlink()
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
