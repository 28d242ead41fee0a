"""Sets of similar frames around anchors, as ImageNet-Vid-Robust and YTBB-Robust have them (Shankar et al. 2021).

A frame is named by its file, `val/<video>/000432.JPEG` or `<video>/frame-432.jpg`; the number gives the distance of two
frames of a video.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.core.types.columns import Ints
from jostle.errors import BadValue, DataError

Sets = Mapping[str, Sequence[str]]

MAX_NAMES = 3  # of frames, in messages
MAX_RADIUS = 100_000  # in frames
_NAME = re.compile(r".*?(\d{1,18})\D*?(?:\.[A-Za-z]\w*)?", re.DOTALL)
_NOT_SIMILAR = frozenset(
    [
        "dissimilar",
        "problematic",
        "incorrect",
        "dont-know",
        "deformation",
        "background-change",
        "occlusion-increased",
        "blur-increase",
        "bad-anchor",
    ]
)


def frame_number(key: str) -> tuple[str, int]:
    """Split a frame's name into its video and its number: the last number of the file name.

    >>> frame_number("val/ILSVRC2015_val_00000000/000432.JPEG")
    ('val/ILSVRC2015_val_00000000/', 432)
    >>> frame_number("-1LwdM0fM7I_45400/frame-1362.jpg")
    ('-1LwdM0fM7I_45400/frame-', 1362)
    """
    match = _NAME.fullmatch(key, key.rfind("/") + 1) if isinstance(key, str) else None
    if not match:
        raise DataError(f"{key!r}: the file name of a frame must hold its number, as in video/000432.JPEG")
    return key[: match.start(1)], int(match[1])


def video_of(key: str) -> str:
    """Return the video of a frame: its name up to its number.

    >>> video_of("val/ILSVRC2015_val_00000000/000432.JPEG"), video_of("kitchen_0005.jpg")
    ('val/ILSVRC2015_val_00000000', 'kitchen_')
    """
    return frame_number(key)[0].removesuffix("/")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Anchors and their neighbours as columns."""

    frames: tuple[str, ...]  # distinct frames, anchors first, in the order of the sets
    anchors: int  # number of anchors
    anchor: Ints  # (P,) int64, the anchor of each pair, an index into `frames`
    neighbour: Ints  # (P,) int64, its neighbour, an index into `frames`
    offset: Ints  # (P,) int64, the neighbour's frame number less the anchor's; never 0

    @property
    def set_sizes(self) -> Ints:
        """(A,) number of neighbours of each anchor."""
        return np.bincount(self.anchor, minlength=self.anchors)


def pairs_within(sets: Sets, k: int) -> Pairs:
    """Return the pairs at most `k` frames apart, without duplicates and without the anchor itself."""
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MAX_RADIUS:
        raise BadValue(f"k must be a whole number of frames from 0 to {MAX_RADIUS}, got {k!r}")
    if not sets:
        raise DataError("the sets hold no anchor; give {anchor: [neighbours]}")
    index = {anchor: i for i, anchor in enumerate(sets)}
    rows: list[tuple[int, int, int]] = []
    strangers = []
    for index_of_anchor, (anchor, neighbours) in enumerate(sets.items()):
        if isinstance(neighbours, str):
            raise DataError(f"{anchor}: its set must be a list of frames, got the text {neighbours!r}")
        video, number = frame_number(anchor)
        for neighbour in dict.fromkeys(neighbours):
            other, other_number = frame_number(neighbour)
            if other != video:
                strangers.append(f"{neighbour} in the set of {anchor}")
            elif 0 < abs(other_number - number) <= k:
                rows.append((index_of_anchor, index.setdefault(neighbour, len(index)), other_number - number))
    if strangers:
        raise DataError(
            f"{len(strangers)} neighbour(s) are of another video than their anchor, the first: {strangers[0]}; "
            "offsets are only defined within one video"
        )
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Pairs(tuple(index), len(sets), columns[:, 0], columns[:, 1], columns[:, 2])


def require_frames(frames: Iterable[str], known: Mapping[str, Any], what: str) -> None:
    """Raise a DataError with the count and the first names if frames are missing."""
    required = list(frames)
    missing = [frame for frame in required if frame not in known]
    if missing:
        more = ", ..." if len(missing) > MAX_NAMES else ""
        raise DataError(
            f"{len(missing)} of {len(required)} frames have no {what}, the first: "
            f"{', '.join(missing[:MAX_NAMES])}{more}; give every frame of the sets, or take these out of them"
        )


def without_frame_types(sets: Sets, types: Mapping[str, str], drop: str) -> dict[str, list[str]]:
    """Remove the frames that a codec stored as one type: `i`, `p` or `b`.

    Anchors of the type are removed, neighbours of the type are removed from their sets, and so is an anchor whose set
    becomes empty (one whose set was empty before stays). The paper's counts agree: 1109 anchors lose 5 without i-,
    694 without p- and 410 without b-frames, which add up to 1109.

    Args:
        types: the type of each frame, in either case.

    >>> sets = {"v/5.jpg": ["v/4.jpg", "v/6.jpg"], "w/5.jpg": ["w/6.jpg"]}
    >>> without_frame_types(sets, {"v/4.jpg": "B", "v/5.jpg": "P", "v/6.jpg": "P", "w/5.jpg": "P", "w/6.jpg": "B"}, "b")
    {'v/5.jpg': ['v/6.jpg']}
    """
    dropped = drop.lower()
    if dropped not in ("i", "p", "b"):
        raise BadValue(f"drop must be 'i', 'p' or 'b', got {drop!r}")
    require_frames(
        dict.fromkeys(frame for anchor, others in sets.items() for frame in (anchor, *others)), types, "type"
    )
    remaining = {}
    for anchor, neighbours in sets.items():
        left = [frame for frame in neighbours if types[frame].lower() != dropped]
        if types[anchor].lower() != dropped and (left or not neighbours):
            remaining[anchor] = left
    return remaining


def valid_pairs(review: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs of anchor and neighbour that reviewers marked as similar and without faults.

    Args:
        review: `{"labels": [names], "annotations": [{"key": "anchor,neighbour", "labels": [index], ...}]}`; of
            several entries with one key the last holds.

    >>> names = ["similar", "blur-increase"]
    >>> entries = [{"key": "v/5.jpg,v/4.jpg", "labels": [0]}, {"key": "v/5.jpg,v/6.jpg", "labels": [0, 1]}]
    >>> valid_pairs({"labels": names, "annotations": entries})
    [('v/5.jpg', 'v/4.jpg')]
    """
    marks = _parse_review(review)
    return [_split_pair(key) for key, names in marks.items() if "similar" in names and not names & _NOT_SIMILAR]


def valid_anchors(anchors: Mapping[str, Any], pairs: Mapping[str, Any]) -> list[str]:
    """Return the anchors marked as good, neither bad nor unsure, that no pair marks as a bad anchor.

    >>> anchors = {"labels": ["good", "unsure"], "annotations": [{"key": "v/5.jpg", "labels": [0]}]}
    >>> valid_anchors(anchors, {"labels": ["bad-anchor"], "annotations": []})
    ['v/5.jpg']
    """
    blamed = {_split_pair(key)[0] for key, names in _parse_review(pairs).items() if "bad-anchor" in names}
    return [
        key
        for key, names in _parse_review(anchors).items()
        if "good" in names and not names & {"bad", "unsure"} and key not in blamed
    ]


def reviewed_sets(anchors: Mapping[str, Any], pairs: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the valid anchors, each with the neighbours of its valid pairs."""
    sets: dict[str, list[str]] = {anchor: [] for anchor in valid_anchors(anchors, pairs)}
    for anchor, neighbour in valid_pairs(pairs):
        if anchor in sets:
            sets[anchor].append(neighbour)
    return sets


def _parse_review(review: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the marks of each key, normalized: `dont know` and `dont_know` are `dont-know`."""
    try:
        names = [re.sub(r"[\s_-]+", "-", name.strip().lower().replace("'", "")) for name in review["labels"]]
        return {entry["key"]: {names[i] for i in entry["labels"]} for entry in review["annotations"]}
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(
            'a review must be {"labels": [names], "annotations": [{"key": .., "labels": [index, ..]}]}; '
            f"this one is not: {type(error).__name__}: {error}"
        ) from error


def _split_pair(key: str) -> tuple[str, str]:
    anchor, comma, neighbour = key.partition(",")
    if not comma or "," in neighbour:
        raise DataError(f"{key!r}: the key of a pair must be 'anchor,neighbour'")
    return anchor, neighbour
