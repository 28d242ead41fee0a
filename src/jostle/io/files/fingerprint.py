"""Fingerprints of files and videos, by which changed sources are detected."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

from jostle.core.random import key_for
from jostle.errors import DataError
from jostle.io.video.source import identity_of, is_images


def source_state(path: Path, fps: Fraction | None = None) -> tuple[int, int]:
    """Return size and modification time in nanoseconds, which identify one state of a video.

    For a folder of images the second number is a hash of all names, sizes and times, and of the given frame rate.

    Raises:
        MediaError: if the file does not exist or the folder is empty.
    """
    _, identity = identity_of(path)
    if fps is None or not is_images(path):
        return identity.size, identity.mtime_ns
    return identity.size, key_for(identity.mtime_ns, "fps", str(fps)) >> 1


def file_fingerprint(path: Path) -> str:
    """Return the checksum of a file, prefixed with `sha256:`."""
    digest = sha256_of_file(path)
    if digest is None:
        raise DataError(f"{path}: cannot be read; check the path and its permissions")
    return f"sha256:{digest}"


def sha256_of_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
