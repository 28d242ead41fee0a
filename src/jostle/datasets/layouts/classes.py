"""Classes of a data set: lists of them, one order, names compared by their letters."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from jostle.core.formatting import describe, join_names
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.files.text import read_json
from jostle.io.files.video_ids import quote_name

_NUMBERED = re.compile(r"(\d{1,6})[\s,]+(\S.*)", re.ASCII)
_NUMBER = re.compile(r"\d{1,6}", re.ASCII)
_HEADER = re.compile(r"\s*(id|index|label_id)\s*,\s*(name|label|class)\s*", re.IGNORECASE)

MAX_CLASSES = 1_000_000  # a number without a name makes room for all below it


def class_key(name: str) -> str:
    """Return the letters and digits of a class name, which its spellings share.

    >>> class_key("massaging_person's_head") == class_key("massaging person's head")
    True
    >>> class_key("Folding [something]") == class_key("Folding something")
    True
    """
    return "".join(c for c in name.casefold() if c.isalnum())


def read_numbers(path: Path) -> dict[int, str]:
    """Read class numbers: lines `name` (from 0), `number name` or `number,name`, or JSON `{name: number}`.

    Raises:
        DataError: F36 if a number or a name stands there twice, or the file is no such list.
    """
    source = Source(path)
    if source.is_json:
        pairs = [(_json_number(path, name, number), name) for name, number in read_json(path).items()]
    else:
        lines = [text for line in source.lines if (text := line.strip())]
        lines = lines[1:] if lines and _HEADER.fullmatch(lines[0]) else lines
        result = [_NUMBERED.fullmatch(line) for line in lines]
        if all(result):
            pairs = [(int(match[1]), match[2].strip('"')) for match in result if match]
        else:
            pairs = [(number, line.strip('"')) for number, line in enumerate(lines)]
    numbers = dict(pairs)
    if not pairs or len(numbers) < len(pairs) or len({class_key(name) for name in numbers.values()}) < len(pairs):
        raise DataError(f"{path}: not a list of classes: a number or a name is there twice, or none is", fault="F36")
    return numbers


def _json_number(path: Path, name: str, number: object) -> int:
    if isinstance(number, str) and _NUMBER.fullmatch(number):
        return int(number)
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MAX_CLASSES:
        return number
    raise DataError(f"{path}: class {quote_name(name)} has {describe(number)}, not a number", fault="F36")


def read_names(path: Path) -> tuple[str, ...]:
    """Read class names in the order of their numbers, which must begin at 0 or 1 without gaps."""
    numbers = read_numbers(path)
    first = min(numbers)
    if first not in (0, 1) or sorted(numbers) != list(range(first, first + len(numbers))):
        raise DataError(f"{path}: the numbers of classes go from {first} to {max(numbers)} with gaps", fault="F36")
    return tuple(numbers[number] for number in sorted(numbers))


def shipped_names(name: str) -> tuple[str, ...]:
    """Read a bundled list of classes; lines that begin with `#` state its origin."""
    text = files("jostle.datasets.layouts").joinpath(name).read_text("utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def in_order(labels: VideoLabels, names: Sequence[str] | None, where: object) -> VideoLabels:
    """Renumber labels by the class list of the data set.

    Args:
        names: the classes in order; if None, names go by the alphabet, and numbers stay without a name.
        where: what messages call the file.

    Raises:
        DataError: F35 or F36 if a class is not among `names`.
    """
    if labels.numbered:
        numbers = [int(name) for name in labels.classes]
        if max(numbers) >= MAX_CLASSES:
            raise DataError(f"{where}: {max(numbers)} is no class number; no data set has as many", fault="F107")
        order = tuple(map(str, range(max(numbers) + 1))) if names is None else tuple(names)
        if max(numbers) >= len(order):
            raise DataError(
                f"{where}: the class number {max(numbers)} has no name: the list of classes has {len(order)}; "
                "numbers begin at 0",
                fault="F36",
            )
        places = numbers
    else:
        order = tuple(sorted(labels.classes)) if names is None else tuple(names)
        known = {class_key(name): place for place, name in enumerate(order)}
        strange = [name for name in labels.classes if class_key(name) not in known]
        if strange:
            near = difflib.get_close_matches(strange[0], order, n=1, cutoff=0.0)
            raise DataError(
                f"{where}: {len(strange)} class(es) are not in the list of {len(order)}: "
                f"{join_names(map(quote_name, strange))}; the nearest to the first is {near[0] if near else 'none'}",
                fault="F35",
            )
        places = [known[class_key(name)] for name in labels.classes]
    return replace(
        labels,
        classes=order,
        label=np.array(places, np.int32)[labels.label],
        numbered=labels.numbered and names is None,
    )


def only_classes(labels: VideoLabels, names: Iterable[str], where: object) -> VideoLabels:
    """Keep the videos of some classes, which become the class list, in its order."""
    key_order = list(names)
    if labels.numbered:
        raise DataError(
            f"{where}: it gives class numbers, of which {len(key_order)} classes cannot be picked by name; "
            "put the list of classes beside it (classes.txt)",
            fault="F45",
        )
    keys: Mapping[str, int] = {class_key(name): place for place, name in enumerate(key_order)}
    places = np.array([keys.get(class_key(name), -1) for name in labels.classes], np.int32)[labels.label]
    rows = places >= 0
    row_numbers = sorted({int(video) for video in labels.video[rows]})
    if not row_numbers:
        raise DataError(f"{where}: no video is of one of the {len(key_order)} classes; check the list", fault="F35")
    own = replace(labels, classes=tuple(key_order), video=labels.video[rows], label=places[rows])
    return own.of_videos([labels.videos[video] for video in row_numbers])
