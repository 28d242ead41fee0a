"""Disk cache of coded streams, so that a video is encoded once for all severities and models.

A file holds the payloads, an index and a checksum. A damaged file counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import av

from jostle.io.files.atomic import temporary_for
from jostle.io.video.codec import Codec, Coded

FORMAT = 2  # raise it when the same frames and settings give another file
BLOCK = 2**20
_TAIL = struct.Struct("<Q32s")  # length of the index, and the checksum of all before the tail


@dataclass(frozen=True)
class Stream:
    """A coded stream read from the cache."""

    size: tuple[int, int]  # (height, width) of the frames that went in
    count: int  # how many they were
    packets: Iterator[Coded]  # in coding order


class PacketStore:
    """Folder of coded streams with a quota in bytes; the least recently used streams are removed first."""

    def __init__(self, folder: Path, quota: int) -> None:
        self._folder, self._quota = folder, quota
        self._added = quota  # so that the first stream triggers a check of the folder

    def read(self, key: str) -> Stream | None:
        """Return the stream with this key, or None if it is missing or damaged."""
        path = self._folder / key
        if not path.is_file():  # opening a pipe might never end
            return None
        try:
            file = path.open("rb")
        except OSError:
            return None
        try:
            index = _read_index(file)
            if index is None:
                file.close()
                return None
            os.utime(path)
            height, width = index["size"]
            return Stream((height, width), index["count"], _payloads(file, index["packets"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            file.close()
            return None

    def keep(
        self, key: str, packets: Iterator[Coded], facts: Callable[[], tuple[tuple[int, int], int]]
    ) -> Iterator[Coded]:
        """Yield the same packets while storing them; a stream is kept only if it is consumed to its end.

        Args:
            facts: gives the size and number of frames, once the packets have ended.
        """
        temporary = temporary_for(self._folder / key)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = temporary.open("xb")
        except OSError:  # a full or read-only disk: go on without the cache
            yield from packets
            return
        writer = _PacketWriter(file)
        try:
            with file:
                for number, payload in packets:
                    writer.add(number, payload)
                    yield number, payload
                writer.finish(*facts())
            if writer.complete and writer.written <= self._quota // 2:
                os.replace(temporary, self._folder / key)
                self._evict(writer.written)
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _evict(self, added: int) -> None:
        self._added += added
        if self._added < self._quota // 20:  # listing the folder is slow
            return
        self._added = 0
        files = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if not path.name.startswith("."):
                    state = path.stat()
                    files.append((state.st_mtime_ns, state.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._quota:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


@dataclass(frozen=True)
class StreamCache:
    """Coded streams of one video in a `PacketStore`."""

    store: PacketStore  # folder of the streams
    fingerprint: Callable[[], str]  # returns the fingerprint of the video

    @cached_property
    def _source(self) -> str:
        return self.fingerprint()

    def read(self, codec: Codec, fps: Fraction) -> Stream | None:
        """Return the cached stream of the video for a codec, or None."""
        return self.store.read(self._key(codec, fps))

    def keep(
        self, packets: Iterator[Coded], codec: Codec, fps: Fraction, facts: Callable[[], tuple[tuple[int, int], int]]
    ) -> Iterator[Coded]:
        """Yield the packets of a codec while storing them."""
        return self.store.keep(self._key(codec, fps), packets, facts)

    def _key(self, codec: Codec, fps: Fraction) -> str:
        facts = [FORMAT, av.__version__, self._source, asdict(codec), str(fps)]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class _PacketWriter:
    """Writer of a packet file; a full disk stops the file, but not the caller."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._sha, self._index = file, hashlib.sha256(), list[list[int]]()
        self.written, self.complete, self._broken = 0, False, False

    def add(self, number: int, payload: bytes) -> None:
        self._index.append([number, len(payload)])
        self._write(payload)

    def finish(self, size: tuple[int, int], count: int) -> None:
        index = json.dumps({"size": size, "count": count, "packets": self._index}).encode()
        self._write(index)
        self._write(_TAIL.pack(len(index), self._sha.digest()))
        self.complete = not self._broken

    def _write(self, data: bytes) -> None:
        self._sha.update(data)
        self.written += len(data)
        if not self._broken:
            try:
                self._file.write(data)
            except OSError:
                self._broken = True


def _read_index(file: BinaryIO) -> dict[str, Any] | None:
    end = file.seek(0, os.SEEK_END) - _TAIL.size
    if end < 0:
        return None
    file.seek(end)
    length, expected = _TAIL.unpack(file.read(_TAIL.size))
    if length > end:
        return None
    file.seek(0)
    sha, left = hashlib.sha256(), end
    while left:
        block = file.read(min(BLOCK, left))
        if not block:
            return None
        sha.update(block)
        left -= len(block)
    if sha.digest() != expected:
        return None
    file.seek(end - length)
    index: dict[str, Any] = json.loads(file.read(length))
    file.seek(0)
    return index


def _payloads(file: BinaryIO, index: list[list[int]]) -> Iterator[Coded]:
    with file:
        for number, length in index:
            yield number, file.read(length)
