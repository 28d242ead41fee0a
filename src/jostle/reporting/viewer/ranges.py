"""Parts of files over HTTP: one range at a time, read in small blocks, so that memory and handles stay bounded."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from email.utils import formatdate
from pathlib import Path

from anyio import to_thread
from starlette.responses import PlainTextResponse, Response, StreamingResponse

BLOCK = 64 * 2**10
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(Exception):
    """A range that lies outside of the file."""


def parse_range(text: str | None, size: int) -> tuple[int, int] | None:
    """The half-open part of a file that a Range header asks for; None for all of it.

    What is no single range of bytes counts as no range at all, as RFC 9110 allows.

    >>> parse_range("bytes=2-4", 10), parse_range("bytes=-3", 10), parse_range("bytes=8-99", 10)
    ((2, 5), (7, 10), (8, 10))
    >>> parse_range("bytes=0-1,4-5", 10) is parse_range("lines=1-2", 10) is None
    True
    """
    match = _RANGE.fullmatch(text.strip()) if text else None
    if not match or not (match[1] or match[2]):
        return None
    if not match[1]:
        first, last = max(size - int(match[2]), 0), size - 1
        if not int(match[2]):
            raise Unsatisfiable
    else:
        first, last = int(match[1]), min(int(match[2]), size - 1) if match[2] else size - 1
        if match[2] and int(match[2]) < first:
            return None
    if first >= size:
        raise Unsatisfiable
    return first, last + 1


async def file_response(path: Path, headers: Mapping[str, str], *, kind: str, head: bool = False) -> Response:
    """Return a file or the requested range of it: 200, 206, 304, 404 or 416.

    Args:
        headers: of the request.
        kind: the media type.
        head: whether only the headers are wanted.
    """
    try:
        state = await to_thread.run_sync(os.stat, path)
    except OSError:
        return PlainTextResponse("this file is no longer there", 404)
    size, tag = state.st_size, f'"{state.st_ino:x}-{state.st_size:x}-{state.st_mtime_ns:x}"'
    fields = {
        "accept-ranges": "bytes",
        "etag": tag,
        "last-modified": formatdate(state.st_mtime, usegmt=True),
        "cache-control": "private, no-cache",
    }
    if tag in [one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=fields)
    range_text = headers.get("range")
    if headers.get("if-range", tag) != tag:
        range_text = None  # the part is of another state of the file
    try:
        part = parse_range(range_text, size)
    except Unsatisfiable:
        return Response(status_code=416, headers=fields | {"content-range": f"bytes */{size}"})
    first, end = part or (0, size)
    fields["content-length"] = str(end - first)
    if part:
        fields["content-range"] = f"bytes {first}-{end - 1}/{size}"
    status = 206 if part else 200
    if head:
        return Response(status_code=status, headers=fields, media_type=kind)
    return StreamingResponse(_blocks(path, tag, first, end), status, fields, kind)


async def _blocks(path: Path, tag: str, first: int, end: int) -> AsyncIterator[bytes]:
    """The bytes of a part. A file is open only while a block of it is read: a slow client holds no handle."""
    while first < end:
        block = await to_thread.run_sync(_read, path, tag, first, min(BLOCK, end - first))
        first += len(block)
        yield block


def _read(path: Path, tag: str, first: int, count: int) -> bytes:
    handle = os.open(path, os.O_RDONLY)
    try:
        state = os.fstat(handle)
        if tag != f'"{state.st_ino:x}-{state.st_size:x}-{state.st_mtime_ns:x}"':
            raise OSError(f"{path.name} was replaced while it was sent")
        block = os.pread(handle, count, first)
    finally:
        os.close(handle)
    if not block:
        raise OSError(f"{path.name} ended early")
    return block
