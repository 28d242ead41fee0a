"""Coded streams kept on disk: what an encoder made of a video once need not be made for the next severity or model.

A file holds the payloads one after another, an index and a checksum. What is damaged counts as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
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

from jostle.io.video.codec import Codec, Coded

FORMAT = 2  # raise it when the same frames and settings give another file
BLOCK = 2**20
_TAIL = struct.Struct("<Q32s")  # length of the index, and the checksum of all before the tail
_counter = itertools.count()


@dataclass(frozen=True)
class Stream:
    """A coded stream that was kept.

    Attributes:
        size: (height, width) of the frames that went in.
        count: how many they were.
        packets: in coding order.
    """

    size: tuple[int, int]
    count: int
    packets: Iterator[Coded]


class PacketStore:
    """A folder of coded streams that does not grow beyond a quota: those that were not used for longest go first.

    Args:
        folder: it is made when the first stream is kept.
        quota: bytes.
    """

    def __init__(self, folder: Path, quota: int) -> None:
        self._folder, self._quota = folder, quota
        self._added = quota  # so that the first stream has the folder looked through

    def read(self, key: str) -> Stream | None:
        """The stream of a key, if it is there and whole."""
        path = self._folder / key
        try:
            file = path.open("rb")
        except OSError:
            return None
        try:
            index = _checked_index(file)
            if index is None:
                file.close()
                return None
            os.utime(path)
        except OSError:
            file.close()
            return None
        height, width = index["size"]
        return Stream((height, width), index["count"], _payloads(file, index["packets"]))

    def keep(
        self, key: str, packets: Iterator[Coded], facts: Callable[[], tuple[tuple[int, int], int]]
    ) -> Iterator[Coded]:
        """The same packets, written down on the way; only a stream that was taken to its end is kept.

        Args:
            facts: gives the size and number of frames, once the packets have ended.
        """
        temporary = self._folder / f".{key}.part-{os.getpid()}-{next(_counter)}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = temporary.open("xb")
        except OSError:  # a full or read-only disk: nothing is kept, and nothing is lost
            yield from packets
            return
        writing = _Writing(file)
        try:
            with file:
                for number, payload in packets:
                    writing.add(number, payload)
                    yield number, payload
                writing.finish(*facts())
            if writing.whole and writing.written <= self._quota // 2:
                os.replace(temporary, self._folder / key)
                self._make_room(writing.written)
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _make_room(self, added: int) -> None:
        self._added += added
        if self._added < self._quota // 20:  # looking through the folder takes a while
            return
        self._added = 0
        found = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if not path.name.startswith("."):
                    state = path.stat()
                    found.append((state.st_mtime_ns, state.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._quota:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


@dataclass(frozen=True)
class KeptStreams:
    """The coded streams of one video.

    Attributes:
        store: where they lie.
        fingerprint: gives what the video is known by.
    """

    store: PacketStore
    fingerprint: Callable[[], str]

    @cached_property
    def _source(self) -> str:
        return self.fingerprint()

    def read(self, codec: Codec, fps: Fraction) -> Stream | None:
        """What a codec made of the video before."""
        return self.store.read(self._key(codec, fps))

    def keep(
        self,
        packets: Iterator[Coded],
        codec: Codec,
        fps: Fraction,
        facts: Callable[[], tuple[tuple[int, int], int]],
    ) -> Iterator[Coded]:
        """The packets that a codec makes of the video, kept for the next time."""
        return self.store.keep(self._key(codec, fps), packets, facts)

    def _key(self, codec: Codec, fps: Fraction) -> str:
        facts = [FORMAT, av.__version__, self._source, asdict(codec), str(fps)]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class _Writing:
    """A file of packets under way; a full disk ends it and nothing else."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._sha, self._index = file, hashlib.sha256(), list[list[int]]()
        self.written, self.whole, self._broken = 0, False, False

    def add(self, number: int, payload: bytes) -> None:
        self._index.append([number, len(payload)])
        self._put(payload)

    def finish(self, size: tuple[int, int], count: int) -> None:
        index = json.dumps({"size": size, "count": count, "packets": self._index}).encode()
        self._put(index)
        self._put(_TAIL.pack(len(index), self._sha.digest()))
        self.whole = not self._broken

    def _put(self, data: bytes) -> None:
        self._sha.update(data)
        self.written += len(data)
        if not self._broken:
            try:
                self._file.write(data)
            except OSError:
                self._broken = True


def _checked_index(file: BinaryIO) -> dict[str, Any] | None:
    end = file.seek(0, os.SEEK_END) - _TAIL.size
    if end < 0:
        return None
    file.seek(end)
    length, wanted = _TAIL.unpack(file.read(_TAIL.size))
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
    if sha.digest() != wanted:
        return None
    file.seek(end - length)
    index: dict[str, Any] = json.loads(file.read(length))
    file.seek(0)
    return index


def _payloads(file: BinaryIO, index: list[list[int]]) -> Iterator[Coded]:
    with file:
        for number, length in index:
            yield number, file.read(length)
