"""Atomic writing: files appear under their name only when they are complete."""

from __future__ import annotations

import contextlib
import errno
import gzip
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from jostle.errors import BadValue, DataError, JostleError, ResourceError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
STALE_S = 3600.0  # age from which a temporary file counts as abandoned
TRANSIENT_ERRORS = (errno.EBUSY, errno.ESTALE, errno.EAGAIN)
_counter = itertools.count()


def write_text(path: Path, pieces: Iterable[str]) -> None:
    """Write text as UTF-8 atomically, gzipped if the name ends in `.gz`."""
    write_bytes(path, (_encode(piece) for piece in pieces))


def write_bytes(path: Path, pieces: Iterable[bytes]) -> None:
    """Write bytes atomically, gzipped if the name ends in `.gz`."""
    with _temporary_path(path) as temporary:
        _write(temporary, pieces, zipped=path.suffix.lower() == ".gz")


def write_folder(path: Path, files: dict[str, str]) -> None:
    """Write a folder of text files atomically; raises DataError if the target is not empty."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise DataError(f"{path}: is not empty; name a new or an empty folder")
    with _temporary_path(path) as temporary:
        temporary.mkdir()
        for name, text in files.items():
            _write(temporary / name, [_encode(text)], zipped=False)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 20) : error.end]
        raise BadValue(f"{around!a} is not Unicode text and cannot be written here; write JSON instead") from None


def _write(path: Path, pieces: Iterable[bytes], *, zipped: bool) -> None:
    with path.open("xb") as plain:
        # The gzip header holds neither a name nor a time, so that equal content gives equal bytes.
        if zipped:
            with gzip.GzipFile("", "wb", fileobj=plain, mtime=0) as packed:
                for piece in pieces:
                    packed.write(piece)
        else:
            plain.writelines(pieces)
        plain.flush()
        os.fsync(plain.fileno())


@contextlib.contextmanager
def _temporary_path(path: Path) -> Iterator[Path]:
    """Yield the temporary path of `replacing`, and name the target in the error of a disk."""
    try:
        if not path.parent.is_dir():
            raise DataError(f"{path}: its folder does not exist; create {path.parent}", fault="F65")
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise disk_error(error, path, "written", "nothing was kept", "F65") from None


def temporary_for(path: Path) -> Path:
    """Return a path next to the target that no other process or thread uses, and that `remove_leftovers` knows."""
    return path.parent / f".{path.name[:80]}.part-{os.getpid()}-{next(_counter)}"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces the target at the end, on the disk, or is removed after an error.

    What is written there, a file or a folder, appears under its name when it is complete. Raises the OSError of a disk.
    """
    temporary = temporary_for(path)
    try:
        yield temporary
        sync(temporary)
        replace_and_sync(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink()


def disk_error(error: OSError, path: Path, problem: str, remedy: str, fault: str = "") -> JostleError:
    """Return the error of a path that cannot be read, written or used; a full disk is a lack of resources."""
    if error.errno in _FULL:
        return ResourceError(f"no space left on the disk for {path}; free some, then run again")
    return DataError(f"{path}: cannot be {problem} ({error.strerror}); {remedy}", fault=fault)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders that killed processes left in a folder long ago."""
    for left in folder.glob(".*.part-*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - STALE_S:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def refuse_output_in(source: Path, out: Path) -> None:
    """Raise a BadValue if an output is the input, or lies in the input folder, where it would count as input."""
    target, origin = out.resolve(), source.resolve()
    if target == origin or (out.exists() and source.exists() and out.samefile(source)):  # samefile: also hard links
        raise BadValue(f"{out} is the input itself; write somewhere else", fault="F139")
    if source.is_dir() and target.is_relative_to(origin):
        raise BadValue(f"{out} lies in the input folder {source}; write somewhere else", fault="F139")


def refuse_existing(out: Path, overwrite: bool) -> None:
    """Raise a BadValue if an output exists that may not be replaced."""
    if out.exists() and not overwrite:
        raise BadValue(f"{out} exists; pass --overwrite to replace it")


def replace_and_sync(temporary: Path, path: Path) -> None:
    """Rename a complete file to its final name, and sync the folder."""
    _replace(temporary, path)
    sync(path.parent)


def _replace(temporary: Path, path: Path) -> None:
    """Rename a file, with retries for network disks."""
    for wait_s in (0.05, 0.2, 0.8):
        try:
            os.replace(temporary, path)
            return
        except OSError as error:
            if error.errno not in TRANSIENT_ERRORS:
                raise
            time.sleep(wait_s)
    os.replace(temporary, path)


def sync(path: Path) -> None:
    """Make the content of a file durable, or the names of new files in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
