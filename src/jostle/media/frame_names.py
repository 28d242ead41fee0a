"""Which images of a folder are the frames of its video, and in which order: by the numbers in their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from jostle.errors import MediaError
from jostle.media.door import shown_name

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
