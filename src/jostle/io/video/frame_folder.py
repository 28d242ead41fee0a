"""Folders of images as videos: the series of frames by the numbers in file names, and its clock."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd
from typing import BinaryIO

from jostle.core.types.clip import check_rate
from jostle.errors import BadValue, MediaError
from jostle.io.video.validation import Identity, Limits, PathLike, check_file, printable_name

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")

_DIGITS = re.compile(r"([0-9]+)")
_MAX_EXAMPLES = 3  # of missing numbers or names, in messages
_SPARSE = 2  # with fewer than one in this many numbers present, numbers define an order but no times


@dataclass(frozen=True)
class Series:
    """The frames among the files of a folder."""

    names: tuple[str, ...]  # file names in display order
    numbers: tuple[int, ...]  # the number in each name; empty if names have no single one
    places: tuple[int, ...]  # position of each image on an even clock from 0; missing numbers leave gaps
    missing: tuple[int, ...] = ()  # positions without an image
    notes: tuple[str, ...] = ()  # remarks on omitted and missing images


def is_image_name(name: str) -> bool:
    """Return whether a file name is that of an image, and neither hidden nor a resource fork.

    >>> is_image_name("img_00001.JPG"), is_image_name("._00001.jpg"), is_image_name("times.json")
    (True, False, False)
    """
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def find_series(names: Iterable[str], where: str) -> Series:
    """Find the frames among images with these names.

    The number is the one group of digits that varies between names: `frame_1`, `img_00001`, `v_g01_c02_0007`.
    Images of optical flow and images without a number are omitted if there are others; two series that could both be
    the video are an error.

    Args:
        where: name of the folder for messages.

    Raises:
        MediaError: F4 if there is no such series, F20 if there are several, or a number appears twice.

    >>> find_series(["img_10.jpg", "img_9.jpg", "flow_x_9.jpg", "flow_x_10.jpg"], "v").names
    ('img_9.jpg', 'img_10.jpg')
    >>> find_series(["1.png", "2.png", "5.png"], "v").places
    (0, 1, 4)
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        plain = _DIGITS.sub("#", os.path.splitext(name)[0])
        groups.setdefault(plain if "#" in plain else "", []).append(name)
    if not groups:
        raise MediaError(f"{where}: holds no images; they end in {', '.join(IMAGE_SUFFIXES)}", fault="F4")
    chosen, notes = _choose_series(groups, where)
    ordered = sorted(groups[chosen], key=_natural)
    numbers = _numbers(ordered)
    if not numbers:
        if len(ordered) > 1:
            notes.append("names hold no single number that counts; images are displayed in the order of their names")
        return Series(tuple(ordered), (), tuple(range(len(ordered))), (), tuple(notes))
    ordered = [name for _, name in sorted(zip(numbers, ordered, strict=True))]
    numbers = sorted(numbers)
    for (a, one), (b, other) in pairwise(zip(numbers, ordered, strict=True)):
        if a == b:
            raise MediaError(
                f"{where}: two images have number {a}, {printable_name(one)} and {printable_name(other)}; remove one",
                fault="F20",
            )
    places, missing = _clock(numbers, notes)
    return Series(tuple(ordered), tuple(numbers), places, missing, tuple(notes))


def _choose_series(groups: dict[str, list[str]], where: str) -> tuple[str, list[str]]:
    """Choose the group of names that is the video, and describe those left out."""
    if len(groups) == 1:
        return next(iter(groups)), []
    counted = [plain for plain in groups if plain]
    pictures = [plain for plain in counted if not _is_flow(plain)] or counted
    if len(pictures) > 1:
        candidates = " and ".join(
            f"{_pattern(plain, groups[plain])} ({len(groups[plain])})" for plain in sorted(pictures)
        )
        raise MediaError(
            f"{where}: holds more than one series of images, {candidates}; put each into a folder of its own",
            fault="F20",
        )
    left = [_pattern(plain, groups[plain]) for plain in sorted(groups) if plain != pictures[0]]
    more = f" and {len(left) - _MAX_EXAMPLES} more" if len(left) > _MAX_EXAMPLES else ""
    chosen = _pattern(pictures[0], groups[pictures[0]])
    return pictures[0], [f"the frames are {chosen}; left out: {', '.join(left[:_MAX_EXAMPLES])}{more}"]


def _is_flow(plain: str) -> bool:
    words = [word for word in re.split("[^a-z]+", plain.lower()) if word]
    return any(word.startswith("flow") for word in words) or (bool(words) and set(words) <= {"u", "v", "x", "y"})


def _pattern(plain: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return printable_name(names[0])
    ending = os.path.splitext(names[0])[1]
    return printable_name(f"{plain.replace('#', '*')}{ending}") if plain else f"{len(names)} images without a number"


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key that compares numbers as numbers: 9.jpg before 10.jpg."""
    stem = os.path.splitext(name)[0]
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(stem)], name


def _numbers(names: Sequence[str]) -> list[int]:
    """Return the number in each name if exactly one group of digits varies; otherwise nothing."""
    digits = [tuple(map(int, _DIGITS.findall(os.path.splitext(name)[0]))) for name in names]
    if not digits[0]:
        return []
    varying = [index for index, column in enumerate(zip(*digits, strict=True)) if len(set(column)) > 1]
    if len(varying) > 1:
        return []
    index = varying[0] if varying else -1
    return [groups[index] for groups in digits]


def _clock(numbers: Sequence[int], notes: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the position of each image in time, and the positions of missing ones."""
    first = numbers[0]
    step = gcd(*(number - first for number in numbers)) or 1
    places = tuple((number - first) // step for number in numbers)
    if step > 1:
        notes.append(f"numbers go up in steps of {step}; each step is one frame")
    if places[-1] + 1 > _SPARSE * len(numbers):
        notes.append(
            f"{len(numbers)} images are numbered from {first} to {numbers[-1]}: numbers are taken for an order, and "
            "images are displayed one after the other"
        )
        return tuple(range(len(numbers))), ()
    gaps = [(a + 1, b - 1) for a, b in pairwise(places) if b > a + 1]
    if not gaps:
        return places, ()
    gap_numbers = [(first + a * step, first + b * step) for a, b in gaps]
    examples = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in gap_numbers[:_MAX_EXAMPLES])
    more = f" and {len(gaps) - _MAX_EXAMPLES} more stretches" if len(gaps) > _MAX_EXAMPLES else ""
    count = sum(b - a + 1 for a, b in gaps)
    numbered = "number is" if count == 1 else "numbers are"
    notes.append(f"{count} {numbered} missing ({examples}{more}); the other images keep their times")
    return places, tuple(place for a, b in gaps for place in range(a, b + 1))


TIMES = "times.json"  # written by `jostle corrupt` beside its images
DEFAULT_FPS = Fraction(30)  # of images without `times.json` and --fps
TIMES_BYTES = 64 << 20  # the times of two million images
_MAX_FPS = 1_000_000  # and the inverse is the minimum
_LARGEST_TICK = 2**53
_FRACTION = re.compile(r"(\d{1,9})(?:/(\d{1,9}))?", re.ASCII)
_PIXEL_BYTES = 8  # in a file: the maximum of all supported formats
_HEADER_BYTES = 1 << 20  # thumbnails and colour profiles


@dataclass(frozen=True)
class Clock:
    """Times of the images of a folder."""

    fps: Fraction  # the nominal rate
    time_base: Fraction  # seconds in a tick
    ticks: tuple[int, ...] | None = None  # of each image in order; None if they follow from their positions
    notes: tuple[str, ...] = ()  # remarks for the user


class FrameFolder:
    """Folder of images of which one series is the video; links to regular files are followed.

    Attributes:
        path: absolute path of the folder.
        series: the images that are frames, in order.
        identity: of the folder's state: the size is the total of all frames, the time a hash of all names, sizes and
            times.
        max_image_bytes: size limit of an image.
    """

    def __init__(self, path: PathLike, limits: Limits) -> None:
        self.path = os.path.abspath(os.fsdecode(path))
        self.max_image_bytes, folder_name = limits.max_pixels * _PIXEL_BYTES + _HEADER_BYTES, printable_name(self.path)
        files: dict[str, tuple[int, int]] = {}
        times = None
        try:
            facts = os.stat(self.path)
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name == TIMES:
                        times = _file_state(entry)
                    elif is_image_name(entry.name) and not entry.is_dir():
                        files[entry.name] = _file_state(entry)
        except OSError as error:
            raise MediaError(f"{folder_name}: cannot be read ({error.strerror})", fault="F18") from None
        if len(files) > limits.max_frames:
            raise MediaError(f"{folder_name}: holds more than {limits.max_frames} images; split it", fault="F99")
        self.series: Series = find_series(files, folder_name)
        self._sizes = tuple(files[name][0] for name in self.series.names)
        self._has_times = times is not None
        states = [(name, *files[name]) for name in self.series.names] + ([] if times is None else [(TIMES, *times)])
        text = "\n".join(f"{name}\0{size}\0{changed}" for name, size, changed in states)
        mark = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        total = sum(size for _, size, _ in states)
        self.identity = Identity(facts.st_dev, facts.st_ino, total, int.from_bytes(mark, "big") >> 1)

    def _read(self, name: str, first: int | None = None) -> bytes:
        with self._open(name) as file:
            return file.read(-1 if first is None else first)

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        path = os.path.join(self.path, name)
        try:
            # Does not block if the file has become a pipe since the check.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb", buffering=0) as file:
                yield file
        except OSError as error:
            raise MediaError(f"{path}: cannot be read ({error.strerror})", fault="F18") from None

    def __len__(self) -> int:
        return len(self.series.names)

    def where(self, index: int) -> str:
        """Return the path of an image for messages."""
        return os.path.join(self.path, self.series.names[index])

    def content(self, index: int, first: int | None = None) -> bytes:
        """Return the bytes of an image, or the first bytes."""
        if self._sizes[index] > self.max_image_bytes:
            raise MediaError(
                f"{self.where(index)}: is larger than {self.max_image_bytes} bytes; take it out", fault="F99"
            )
        return self._read(self.series.names[index], first)

    def tail(self, index: int, count: int) -> bytes:
        """Return the last bytes of an image."""
        with self._open(self.series.names[index]) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - count, 0))
            return file.read(count)

    def clock(self, fps: Fraction | None) -> Clock:
        """Return the times of the images: from `times.json`, else at the given or the default rate.

        Raises:
            MediaError: F98 if `times.json` is damaged.
        """
        if not self._has_times:
            if fps is not None:
                return Clock(fps, 1 / fps)
            note = (
                f"no frame rate is given for the images: {DEFAULT_FPS} frames per second are assumed; set it with --fps"
            )
            return Clock(DEFAULT_FPS, 1 / DEFAULT_FPS, notes=(note,))
        path = os.path.join(self.path, TIMES)
        content = self._read(TIMES, TIMES_BYTES + 1)
        if len(content) > TIMES_BYTES:
            raise MediaError(f"{path}: is larger than {TIMES_BYTES} bytes; take it out", fault="F99")
        try:
            return self._parse_times(json.loads(content), fps)
        except _BadTimes as error:
            reason = str(error)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            reason = f"'fps' is no number between 1/{_MAX_FPS} and {_MAX_FPS}"
        raise MediaError(
            f"{path}: is damaged: {reason}; take the file out, and the rate is that of --fps, or {DEFAULT_FPS}",
            fault="F98",
        )

    def _parse_times(self, times: dict[str, object], requested: Fraction | None) -> Clock:
        fps = _parse_rate(times["fps"])
        differs = requested is not None and requested != fps
        notes = (f"{TIMES} says {float(fps):g} frames per second, and takes precedence",) if differs else ()
        ticks = times.get("ticks")
        if ticks is None:
            return Clock(fps, 1 / fps, notes=notes)
        base = 1 / fps if "time_base" not in times else _parse_time_base(times["time_base"])
        if not isinstance(ticks, list) or not all(type(tick) is int and abs(tick) < _LARGEST_TICK for tick in ticks):
            raise _BadTimes("'ticks' is no list of whole numbers")
        numbers = tuple(range(len(self)))
        if len(ticks) != len(self) and self.series.numbers:
            numbers = self.series.numbers  # a removed image does not change the times of the others
        if numbers[-1] >= len(ticks):
            raise _BadTimes(f"it has the times of {len(ticks)} images, and there is one of number {numbers[-1]}")
        return Clock(fps, base, tuple(ticks[number] for number in numbers), notes)

    def fingerprint(self) -> str:
        """Return `sha256:` and a hash of the names and contents of all frames, and of their times."""
        digest = hashlib.sha256()
        for index, name in enumerate(self.series.names):
            own = hashlib.sha256(self.content(index)).hexdigest()
            digest.update(f"{name}\0{own}\n".encode("utf-8", "surrogateescape"))
        if self._has_times:
            digest.update(hashlib.sha256(self._read(TIMES, TIMES_BYTES)).digest())
        return f"sha256:{digest.hexdigest()}"


class _BadTimes(BadValue):
    """An error in `times.json` other than its rate."""


def _file_state(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Return (bytes, modification time) of a regular file."""
    try:
        facts = entry.stat()
    except OSError:
        facts = None
    if facts is None or not stat.S_ISREG(facts.st_mode):
        check_file(entry.path)  # raises an error that says what it is
        raise MediaError(f"{entry.path}: changed while it was being read; try again", fault="F19")
    return facts.st_size, facts.st_mtime_ns


def _parse_time_base(value: object) -> Fraction:
    # Without exponents, which a fraction would expand to any number of digits.
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) == 0 or int(match[2] or 1) == 0:
        raise _BadTimes("'time_base' is no fraction of a second")
    return Fraction(int(match[1]), int(match[2] or 1))


def _parse_rate(value: object) -> Fraction:
    fps = check_rate(value)
    if not 1 <= fps * _MAX_FPS <= _MAX_FPS**2:
        raise BadValue(f"{fps} frames a second")
    return fps
