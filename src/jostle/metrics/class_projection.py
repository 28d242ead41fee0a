"""Projection of ImageNet's 1000 classes to those of ImageNet-Vid and YTBB (Shankar et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Floats
from jostle.errors import BadValue, UnknownName

Merge = Literal["max", "mean", "median", "sum"]
IMAGENET_CLASSES = 1000

_BIRD = "7-24,80-100,127-146"
_CAR = "407,436,468,511,609,627,656,661,751,817"

# In the order of the class numbers; without indices: ImageNet has no such class.
_TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "imagenet-vid": (
        ("airplane", "404"),
        ("antelope", "351-353"),
        ("bear", "294-297"),
        ("bicycle", "444,671"),
        ("bird", _BIRD),
        ("bus", "654,779,874"),
        ("car", _CAR),
        ("cattle", "345"),
        ("dog", "151-268"),
        ("domestic cat", "281-285"),
        ("elephant", "385-386"),
        ("fox", "277-280"),
        ("giant panda", "388"),
        ("hamster", "333"),
        ("horse", "339"),
        ("lion", "291"),
        ("lizard", "38-48"),
        ("monkey", "370-382"),
        ("motorcycle", "665"),
        ("rabbit", "330,332"),
        ("red panda", "387"),
        ("sheep", "348"),
        ("snake", "52-68"),
        ("squirrel", "335"),
        ("tiger", "292"),
        ("train", "466"),
        ("turtle", "33-37"),
        ("watercraft", "403,472,484,510,554,576,625,628,724,780,814,833,871,913,914"),
        ("whale", "147-148"),
        ("zebra", "340"),
    ),
    "ytbb": (
        ("person", "981-983"),
        ("bird", _BIRD),
        ("bicycle", "444,671"),
        ("boat", "472,554,576,625,814,914"),
        ("bus", "654,779,874"),
        ("bear", "294-297"),
        ("cow", ""),
        ("cat", "281-287"),
        ("giraffe", ""),
        ("potted plant", "985-986"),
        ("horse", "339"),
        ("motorcycle", "665"),
        ("knife", "499,623"),
        ("airplane", "404"),
        ("skateboard", ""),
        ("train", "466"),
        ("truck", "555,569,675,717,734,864,867"),
        ("zebra", "340"),
        ("toilet", ""),
        ("dog", "151-268"),
        ("elephant", "385-386"),
        ("umbrella", "879"),
        ("none", ""),
        ("car", _CAR),
    ),
}

_MERGES: dict[str, Callable[..., Any]] = {"max": np.max, "mean": np.mean, "median": np.median, "sum": np.sum}


def class_names(target: str) -> tuple[str, ...]:
    """Return the classes of `imagenet-vid` or `ytbb` in the order of their numbers.

    >>> class_names("ytbb")[22:]
    ('none', 'car')
    """
    return tuple(name for name, _ in _table(target))


def class_indices(target: str) -> tuple[tuple[int, ...], ...]:
    """Return the ImageNet classes of each target class; some of `ytbb` have none.

    >>> class_indices("imagenet-vid")[2]
    (294, 295, 296, 297)
    """
    return tuple(_parse_ranges(ranges) for _, ranges in _table(target))


def project_classes(scores: npt.ArrayLike, target: str, *, merge: Merge = "max") -> Floats:
    """Convert (.., 1000) scores of ImageNet classes to (.., C) scores of the target's classes.

    The score of a class is the largest of its ImageNet classes' scores, or their mean, median or sum (for smoothed
    models), in the precision of the scores; scores of other ImageNet classes are ignored. A class that
    ImageNet does not have gets -inf.

    >>> logits = np.arange(1000.0)
    >>> project_classes(logits, "imagenet-vid")[2], project_classes(logits, "imagenet-vid", merge="sum")[2]
    (np.float64(297.0), np.float64(1182.0))
    """
    if merge not in _MERGES:
        raise BadValue(f"merge must be one of {', '.join(_MERGES)}, got {merge!r}")
    values = np.asarray(scores)
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    if values.ndim == 0 or values.shape[-1] != IMAGENET_CLASSES:
        raise BadValue(f"scores must have {IMAGENET_CLASSES} classes along the last axis, got shape {values.shape}")
    columns = class_indices(target)
    projected = np.full((*values.shape[:-1], len(columns)), -np.inf)
    for column, indices in enumerate(columns):
        if indices:
            projected[..., column] = _MERGES[merge](values[..., list(indices)], axis=-1)
    return projected


def _table(target: str) -> tuple[tuple[str, str], ...]:
    if target not in _TABLES:
        raise UnknownName("set of classes", target, _TABLES)
    return _TABLES[target]


def _parse_ranges(ranges: str) -> tuple[int, ...]:
    indices: list[int] = []
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        indices += range(int(first), int(last or first) + 1)
    return tuple(indices)
