"""Which images of a folder are the frames of its video, and in which order: by the numbers in their names."""

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

from jostle.core.types.clip import checked_rate
from jostle.errors import BadValue, MediaError
from jostle.io.video.validation import Identity, Limits, PathLike, checked_file, shown_name

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")

_DIGITS = re.compile(r"([0-9]+)")
_LISTED = 3  # stretches of missing numbers, or names, in a message
_SPARSE = 2  # with less than one number in this many there, numbers are an order and no clock


@dataclass(frozen=True)
class Series:
    """The frames among the files of a folder.

    Attributes:
        names: file names in the order in which they are shown.
        numbers: the number in each name; none where names have no single one.
        places: where each stands on an even clock that begins at 0: numbers that are missing leave gaps.
        missing: places that no image stands at.
        notes: what was left out, and what is missing.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    places: tuple[int, ...]
    missing: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def is_image_name(name: str) -> bool:
    """Whether a file is called like an image, and is neither hidden nor the resource fork of another.

    >>> is_image_name("img_00001.JPG"), is_image_name("._00001.jpg"), is_image_name("times.json")
    (True, False, False)
    """
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def series_of(names: Iterable[str], where: str) -> Series:
    """The frames among images of these names.

    The number is the one group of digits that varies from name to name: `frame_1`, `img_00001`, `v_g01_c02_0007`.
    Images of optical flow and images without a number are left out where there are others; of two series that could
    both be the video, nothing is guessed.

    Args:
        where: what messages call the folder.

    Raises:
        MediaError: F4 if there is no such series, F20 if there are several, or a number is there twice.

    >>> series_of(["img_10.jpg", "img_9.jpg", "flow_x_9.jpg", "flow_x_10.jpg"], "v").names
    ('img_9.jpg', 'img_10.jpg')
    >>> series_of(["1.png", "2.png", "5.png"], "v").places
    (0, 1, 4)
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        plain = _DIGITS.sub("#", os.path.splitext(name)[0])
        groups.setdefault(plain if "#" in plain else "", []).append(name)
    if not groups:
        raise MediaError(f"{where}: holds no images; they end in {', '.join(IMAGE_SUFFIXES)}", fault="F4")
    chosen, notes = _chosen(groups, where)
    ordered = sorted(groups[chosen], key=_natural)
    numbers = _numbers(ordered)
    if not numbers:
        if len(ordered) > 1:
            notes.append("names hold no single number that counts; images are shown in the order of their names")
        return Series(tuple(ordered), (), tuple(range(len(ordered))), (), tuple(notes))
    ordered = [name for _, name in sorted(zip(numbers, ordered, strict=True))]
    numbers = sorted(numbers)
    for (a, one), (b, other) in pairwise(zip(numbers, ordered, strict=True)):
        if a == b:
            raise MediaError(
                f"{where}: two images have number {a}, {shown_name(one)} and {shown_name(other)}; take one away",
                fault="F20",
            )
    places, missing = _clock(numbers, notes)
    return Series(tuple(ordered), tuple(numbers), places, missing, tuple(notes))


def _chosen(groups: dict[str, list[str]], where: str) -> tuple[str, list[str]]:
    """The group that is the video, and what is to be said of the others."""
    if len(groups) == 1:
        return next(iter(groups)), []
    counted = [plain for plain in groups if plain]
    pictures = [plain for plain in counted if not _is_flow(plain)] or counted
    if len(pictures) > 1:
        listed = " and ".join(f"{_pattern(plain, groups[plain])} ({len(groups[plain])})" for plain in sorted(pictures))
        raise MediaError(
            f"{where}: holds more than one series of images, {listed}; put each into a folder of its own", fault="F20"
        )
    left = [_pattern(plain, groups[plain]) for plain in sorted(groups) if plain != pictures[0]]
    more = f" and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
    taken = _pattern(pictures[0], groups[pictures[0]])
    return pictures[0], [f"the frames are {taken}; left out: {', '.join(left[:_LISTED])}{more}"]


def _is_flow(plain: str) -> bool:
    words = [word for word in re.split("[^a-z]+", plain.lower()) if word]
    return any(word.startswith("flow") for word in words) or (bool(words) and set(words) <= {"u", "v", "x", "y"})


def _pattern(plain: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return shown_name(names[0])
    ending = os.path.splitext(names[0])[1]
    return shown_name(f"{plain.replace('#', '*')}{ending}") if plain else f"{len(names)} images without a number"


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Numbers as numbers: 9.jpg before 10.jpg."""
    stem = os.path.splitext(name)[0]
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(stem)], name


def _numbers(names: Sequence[str]) -> list[int]:
    """The number in each name, where one group of digits varies and no other; otherwise nothing."""
    digits = [tuple(map(int, _DIGITS.findall(os.path.splitext(name)[0]))) for name in names]
    if not digits[0]:
        return []
    varying = [place for place, column in enumerate(zip(*digits, strict=True)) if len(set(column)) > 1]
    if len(varying) > 1:
        return []
    place = varying[0] if varying else -1
    return [groups[place] for groups in digits]


def _clock(numbers: Sequence[int], notes: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where images of these numbers stand in time, and where one is missing."""
    first = numbers[0]
    step = gcd(*(number - first for number in numbers)) or 1
    places = tuple((number - first) // step for number in numbers)
    if step > 1:
        notes.append(f"numbers go up in steps of {step}; each step is one frame")
    if places[-1] + 1 > _SPARSE * len(numbers):
        notes.append(
            f"{len(numbers)} images are numbered from {first} to {numbers[-1]}: numbers are taken for an order, and "
            "images are shown one after the other"
        )
        return tuple(range(len(numbers))), ()
    gaps = [(a + 1, b - 1) for a, b in pairwise(places) if b > a + 1]
    if not gaps:
        return places, ()
    spelled = [(first + a * step, first + b * step) for a, b in gaps]
    listed = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in spelled[:_LISTED])
    more = f" and {len(gaps) - _LISTED} more stretches" if len(gaps) > _LISTED else ""
    count = sum(b - a + 1 for a, b in gaps)
    numbered = "number is" if count == 1 else "numbers are"
    notes.append(f"{count} {numbered} missing ({listed}{more}); the other images keep their times")
    return places, tuple(place for a, b in gaps for place in range(a, b + 1))


TIMES = "times.json"  # what `jostle corrupt` puts beside the images it writes
USUAL_FPS = Fraction(30)  # where nothing says how fast the images are shown
TIMES_BYTES = 64 << 20  # the times of two million images
_MOST_FPS = 1_000_000  # and at least one image in as many seconds
_LARGEST_TICK = 2**53
_FRACTION = re.compile(r"(\d{1,9})(?:/(\d{1,9}))?", re.ASCII)
_PIXEL_BYTES = 8  # of a file; no format that is read here stores more for each pixel
_HEADER_BYTES = 1 << 20  # thumbnails and colour profiles


@dataclass(frozen=True)
class Clock:
    """What says when images are shown.

    Attributes:
        fps: the nominal rate.
        time_base: seconds in a tick.
        ticks: of each image in order; None where they follow from their places.
        notes: what is to be said of it.
    """

    fps: Fraction
    time_base: Fraction
    ticks: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


class FrameFolder:
    """The images of a folder, of which one series is the video; links to regular files are followed, as for a file.

    Attributes:
        path: absolute path of the folder.
        series: which of its images are frames, in order.
        identity: what tells one state from another: the size is that of all frames together, the time stands for the
            names, sizes and times of all.
        most: bytes that an image may have.
    """

    def __init__(self, path: PathLike, limits: Limits) -> None:
        self.path = os.path.abspath(os.fsdecode(path))
        self.most, shown = limits.max_pixels * _PIXEL_BYTES + _HEADER_BYTES, shown_name(self.path)
        files: dict[str, tuple[int, int]] = {}
        times = None
        try:
            facts = os.stat(self.path)
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name == TIMES:
                        times = _state(entry)
                    elif is_image_name(entry.name) and not entry.is_dir():
                        files[entry.name] = _state(entry)
        except OSError as error:
            raise MediaError(f"{shown}: cannot be read ({error.strerror})", fault="F18") from None
        if len(files) > limits.max_frames:
            raise MediaError(f"{shown}: holds more than {limits.max_frames} images; split it", fault="F99")
        self.series: Series = series_of(files, shown)
        self._sizes = tuple(files[name][0] for name in self.series.names)
        self._has_times = times is not None
        told = [(name, *files[name]) for name in self.series.names] + ([] if times is None else [(TIMES, *times)])
        text = "\n".join(f"{name}\0{size}\0{changed}" for name, size, changed in told)
        mark = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        total = sum(size for _, size, _ in told)
        self.identity = Identity(facts.st_dev, facts.st_ino, total, int.from_bytes(mark, "big") >> 1)

    def _read(self, name: str, first: int | None = None) -> bytes:
        with self._opened(name) as file:
            return file.read(-1 if first is None else first)

    @contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        path = os.path.join(self.path, name)
        try:
            # Should it have become a pipe since it was looked at, this does not wait for a writer.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb", buffering=0) as file:
                yield file
        except OSError as error:
            raise MediaError(f"{path}: cannot be read ({error.strerror})", fault="F18") from None

    def __len__(self) -> int:
        return len(self.series.names)

    def where(self, place: int) -> str:
        """What messages call an image."""
        return os.path.join(self.path, self.series.names[place])

    def content(self, place: int, first: int | None = None) -> bytes:
        """The bytes of an image, or as many of the first; an empty one has none."""
        if self._sizes[place] > self.most:
            raise MediaError(f"{self.where(place)}: is larger than {self.most} bytes; take it out", fault="F99")
        return self._read(self.series.names[place], first)

    def tail(self, place: int, count: int) -> bytes:
        """The last bytes of an image."""
        with self._opened(self.series.names[place]) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - count, 0))
            return file.read(count)

    def clock(self, fps: Fraction | None) -> Clock:
        """When images are shown: by `times.json`, else at the rate given, else at the usual one.

        Raises:
            MediaError: F98 if `times.json` is damaged.
        """
        if not self._has_times:
            if fps is not None:
                return Clock(fps, 1 / fps)
            note = f"nothing says how fast the images are shown: {USUAL_FPS} frames a second are taken; --fps says it"
            return Clock(USUAL_FPS, 1 / USUAL_FPS, notes=(note,))
        path = os.path.join(self.path, TIMES)
        content = self._read(TIMES, TIMES_BYTES + 1)
        if len(content) > TIMES_BYTES:
            raise MediaError(f"{path}: is larger than {TIMES_BYTES} bytes; take it out", fault="F99")
        try:
            return self._told(json.loads(content), fps)
        except _BadTimes as error:
            why = str(error)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            why = f"'fps' is no number between 1/{_MOST_FPS} and {_MOST_FPS}"
        raise MediaError(
            f"{path}: is damaged: {why}; take the file out, and the rate is that of --fps, or {USUAL_FPS}",
            fault="F98",
        )

    def _told(self, times: dict[str, object], asked: Fraction | None) -> Clock:
        fps = _rate(times["fps"])
        differs = asked is not None and asked != fps
        notes = (f"{TIMES} says {float(fps):g} frames a second, and goes before any other word",) if differs else ()
        ticks = times.get("ticks")
        if ticks is None:
            return Clock(fps, 1 / fps, notes=notes)
        base = 1 / fps if "time_base" not in times else _time_base(times["time_base"])
        if not isinstance(ticks, list) or not all(type(tick) is int and abs(tick) < _LARGEST_TICK for tick in ticks):
            raise _BadTimes("'ticks' is no list of whole numbers")
        numbers = tuple(range(len(self)))
        if len(ticks) != len(self) and self.series.numbers:
            numbers = self.series.numbers  # an image that was taken away leaves the others where they were
        if numbers[-1] >= len(ticks):
            raise _BadTimes(f"it has the times of {len(ticks)} images, and there is one of number {numbers[-1]}")
        return Clock(fps, base, tuple(ticks[number] for number in numbers), notes)

    def fingerprint(self) -> str:
        """`sha256:` and a hash of the names and contents of all frames, and of their times."""
        made = hashlib.sha256()
        for place, name in enumerate(self.series.names):
            own = hashlib.sha256(self.content(place)).hexdigest()
            made.update(f"{name}\0{own}\n".encode("utf-8", "surrogateescape"))
        if self._has_times:
            made.update(hashlib.sha256(self._read(TIMES, TIMES_BYTES)).digest())
        return f"sha256:{made.hexdigest()}"


class _BadTimes(BadValue):
    """What is wrong with `times.json`, other than its rate."""


def _state(entry: os.DirEntry[str]) -> tuple[int, int]:
    """(bytes, time of change) of a regular file."""
    try:
        facts = entry.stat()
    except OSError:
        facts = None
    if facts is None or not stat.S_ISREG(facts.st_mode):
        checked_file(entry.path)  # says what it is
        raise MediaError(f"{entry.path}: changed while it was being looked at; try again", fault="F19")
    return facts.st_size, facts.st_mtime_ns


def _time_base(said: object) -> Fraction:
    # Digits are counted, and there is no exponent: a fraction spells out every digit that one stands for.
    found = _FRACTION.fullmatch(said) if isinstance(said, str) else None
    if found is None or int(found[1]) == 0 or int(found[2] or 1) == 0:
        raise _BadTimes("'time_base' is no fraction of a second")
    return Fraction(int(found[1]), int(found[2] or 1))


def _rate(said: object) -> Fraction:
    fps = checked_rate(said)
    if not 1 <= fps * _MOST_FPS <= _MOST_FPS**2:
        raise BadValue(f"{fps} frames a second")
    return fps
