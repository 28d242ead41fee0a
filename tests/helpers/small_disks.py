"""Disks that are full, or nearly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(disk: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of so many kilobytes."""
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "jostle-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True).returncode != 0:
        pytest.skip("no right to mount a small file system; test_a_full_disk_loses_nothing does it by fault points")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path, left: int) -> Path:
    """Fill a disk but for so many bytes."""
    ballast = disk / "ballast"
    state = os.statvfs(disk)
    ballast.write_bytes(b"x" * max(state.f_bavail * state.f_frsize - left, 0))
    return ballast
