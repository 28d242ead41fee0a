"""The door for annotations and predictions: any known format in, any out, told by content and never guessed."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError, UnknownName
from jostle.io.files.class_numbers import THUMOS14_IDS, named, numbered
from jostle.io.files.format import (
    SAID,
    Format,
    Kind,
    formats,
    lost_of_labels,
    lost_of_predictions,
    lost_of_truth,
    recognised,
)
from jostle.io.files.source import Source
from jostle.io.files.truth_table import Wanted, check_subset, variant_of
from jostle.io.files.video_ids import normal_id, shown

__all__ = [
    "Converted",
    "convert",
    "read_predictions",
    "read_truth",
    "read_video_labels",
    "segments_of",
    "variant_of",
    "write_predictions",
    "write_truth",
    "write_video_labels",
]

PathLike = str | os.PathLike[str]


def read_truth(path: PathLike, *, subset: str | None = None, fix: bool = False) -> Truth:
    """The ground truth in a file, or in a folder of THUMOS14's text files.

    Rows, videos and classes come in the order of the file. Segments without length are kept, for the protocol to
    decide on; anything else that is no segment is refused.

    Args:
        subset: only videos of this subset, whatever the case of its letters.
        fix: drop what is no segment, clip a start before the video, and count both in `left_out`.

    Raises:
        DataError: if the file is not ground truth, is broken, or has no instance in the subset.
    """
    source = Source(path)
    _, format, _ = recognised(source, "truth")
    assert format.read_truth is not None
    return format.read_truth(source, Wanted(subset=subset, fix=fix))


def read_predictions(path: PathLike, *, fix: bool = False) -> Predictions:
    """The detections in a file, in its order.

    Scores may be any finite numbers, whole ones too, but not text. Reversed, empty and late segments are kept:
    scorers count them.

    Args:
        fix: drop rows that are not finite, incomplete, or cut off, and count them in `left_out`.

    Raises:
        DataError: if the file does not hold predictions, or is broken.
    """
    source = Source(path)
    _, format, _ = recognised(source, "predictions")
    assert format.read_predictions is not None
    return format.read_predictions(source, fix)


def read_video_labels(path: PathLike, *, subset: str | None = None) -> VideoLabels:
    """The classes of whole videos: a recognition list, predictions without segments, or the classes in ground truth.

    Args:
        subset: only videos of this subset, where the file has subsets.

    Raises:
        DataError: if the file holds no such thing, or is broken.
    """
    source = Source(path)
    _, format, _ = recognised(source, "labels")
    assert format.read_labels is not None
    return format.read_labels(source, subset)


def segments_of(path: PathLike, video_id: str, *, subset: str | None = None) -> Segments:
    """The actions of one video in a file of ground truth. Other videos of the file are not checked.

    Raises:
        UnknownName: if the file does not name the video.
        DataError: if the file is not ground truth, a segment is not one or has no length, or the video is in
            another subset.
    """
    source = Source(path)
    _, format, _ = recognised(source, "truth")
    assert format.read_truth is not None
    wanted = normal_id(video_id)
    truth = format.read_truth(source, Wanted(only=wanted))
    if wanted not in truth.videos:
        raise UnknownName(f"video in {path}", video_id, _near(wanted, truth.videos))
    own = truth.subsets[truth.videos.index(wanted)]
    if subset is not None and own.casefold() != subset.casefold():
        check_subset(path, Counter(truth.subsets), subset)
        raise DataError(
            f"{path}: video {shown(wanted)} is in subset {own!r}, not in {subset!r}; name its subset, or none",
            fault="F29",
        )
    empty = np.flatnonzero(truth.start == truth.end)
    if len(empty):
        raise DataError(
            f"{path}: video {shown(wanted)}: the segment of annotation {empty[0]} has no length: it starts and ends "
            f"at {truth.start[empty[0]]}; a corruption has no frame to strike there; correct or remove it",
            fault="F30",
        )
    return Segments(truth.start, truth.end, truth.label.astype(np.int64), classes=truth.classes)


def write_truth(truth: Truth, path: PathLike, *, format: str | None = None) -> None:
    """Write ground truth; the target changes all at once, and is gzipped if its name ends in `.gz`.

    Args:
        format: a name among `jostle.io.files.format.formats`; None chooses by the ending of the path.

    Raises:
        BadValue: if the format cannot hold it, or the ending says nothing.
    """
    target = Path(path)
    chosen = formats[_format_for(target, "truth", format)]
    assert chosen.write_truth is not None
    chosen.write_truth(truth, target)


def write_predictions(predictions: Predictions, path: PathLike, *, format: str | None = None) -> None:
    """Write predictions; see `write_truth`."""
    target = Path(path)
    chosen = formats[_format_for(target, "predictions", format)]
    assert chosen.write_predictions is not None
    chosen.write_predictions(predictions, target)


def write_video_labels(labels: VideoLabels, path: PathLike, *, format: str | None = None) -> None:
    """Write classes of whole videos; see `write_truth`."""
    target = Path(path)
    chosen = formats[_format_for(target, "labels", format)]
    assert chosen.write_labels is not None
    chosen.write_labels(labels, target)


@dataclass(frozen=True)
class Converted:
    """What a conversion did.

    Attributes:
        kind: "truth", "predictions" or "labels".
        source_format: the format read.
        target_format: the format written.
        rows: how many were written.
        left_out: what reading dropped or clipped, and how often.
        lost: what the target cannot hold.
    """

    kind: Kind
    source_format: str
    target_format: str
    rows: int
    left_out: Mapping[str, int]
    lost: tuple[str, ...]

    def __str__(self) -> str:
        said = f"{self.rows} rows of {SAID[self.kind]}, {self.source_format} to {self.target_format}"
        dropped = "".join(f"; {count} {why}" for why, count in self.left_out.items())
        return said + dropped + (f"; not kept: {', '.join(self.lost)}" if self.lost else "")


def convert(
    source: PathLike,
    target: PathLike,
    *,
    to: str | None = None,
    truth: PathLike | Truth | None = None,
    subset: str | None = None,
    fix: bool = False,
) -> Converted:
    """Write a file of ground truth, predictions or labels in another format.

    Args:
        to: the format to write; None chooses by the ending of `target`.
        truth: ground truth that names class numbers, or numbers class names, where predictions need it.
        subset: only videos of this subset, of ground truth and labels.
        fix: drop what cannot be used instead of refusing the file.
    """
    given, path = Source(source), Path(target)
    name, format, likeness = recognised(given)
    kind = likeness.kind
    chosen_name = _format_for(path, kind, to)
    chosen = formats[chosen_name]
    if kind == "truth":
        assert format.read_truth is not None
        assert chosen.write_truth is not None
        read = format.read_truth(given, Wanted(subset=subset, fix=fix))
        chosen.write_truth(read, path)
        return Converted(kind, name, chosen_name, len(read), read.left_out, lost_of_truth(read, chosen))
    if kind == "predictions":
        if subset is not None:
            raise BadValue(f"{given.path} holds predictions, which have no subsets; leave the subset out")
        assert format.read_predictions is not None
        assert chosen.write_predictions is not None
        found = format.read_predictions(given, fix)
        written = found if truth is None else _classed(found, truth, chosen)
        chosen.write_predictions(written, path)
        lost = lost_of_predictions(written, chosen)
        return Converted(kind, name, chosen_name, len(found), found.left_out, lost)
    assert format.read_labels is not None
    assert chosen.write_labels is not None
    labels = format.read_labels(given, subset)
    chosen.write_labels(labels, path)
    return Converted(kind, name, chosen_name, len(labels), {}, lost_of_labels(labels, chosen))


def _classed(predictions: Predictions, truth: PathLike | Truth, target: Format) -> Predictions:
    """Predictions with names, or with numbers where the target has no names."""
    known = truth if isinstance(truth, Truth) else read_truth(truth)
    made = named(predictions, known)
    if "names" in target.holds:
        return made
    if target is formats["thumos14-text"] and set(made.classes) <= set(THUMOS14_IDS):
        return made  # its writer knows the official numbers
    return numbered(made, dict(zip(known.classes, known.label_ids or (), strict=False)))


def _format_for(path: Path, kind: Kind, name: str | None) -> str:
    able = [known for known in formats if formats[known].can_write(kind)]
    if name is not None:
        formats[name]  # or an error that says which there are
        if name not in able:
            raise BadValue(f"{SAID[kind]} cannot be written as {name!r}; name one of {', '.join(able)}")
        return name
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    ending = inner.suffix.lower()
    for known in able:
        if ending in formats[known].writes.get(kind, ()):
            return known
    raise BadValue(
        f"{path}: the ending {ending or 'that is missing'} says no format for {SAID[kind]}; name one of "
        f"{', '.join(able)}"
    )


def _near(video_id: str, known: Iterable[str]) -> list[str]:
    """The ids worth naming when `video_id` is not among them: near ones, or a few and how many more."""
    names = sorted(known)
    close = difflib.get_close_matches(video_id, names, n=3, cutoff=0.6)
    if close or len(names) <= 5:
        return close or names
    return [*names[:4], f"{names[4]} and {len(names) - 5} more"]
