"""Reading, writing and conversion of annotations and predictions in any known format, recognised by content."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.core.results import Result
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError, UnknownName
from jostle.io.files.class_numbers import THUMOS14_IDS, name_classes, number_classes
from jostle.io.files.format import (
    KIND_NAMES,
    Format,
    Kind,
    find_lost_labels,
    find_lost_predictions,
    find_lost_truth,
    formats,
    recognise_format,
)
from jostle.io.files.source import Source
from jostle.io.files.truth_table import TruthOptions, check_subset
from jostle.io.files.video_ids import normalize_id, quote_name

PathLike = str | os.PathLike[str]


def read_truth(path: PathLike, *, subset: str | None = None, fix: bool = False) -> Truth:
    """Read ground truth from a file, or from a folder of THUMOS14's text files.

    Rows, videos and classes are in the order of the file. Segments of zero length are kept, for the protocol to
    decide; any other invalid segment is refused.

    Args:
        subset: only videos of this subset, ignoring case.
        fix: drop invalid segments, clip a start before the video, and count both in `left_out`.

    Raises:
        DataError: if the file is not ground truth, is broken, or has no instance in the subset.
    """
    source = Source(path)
    _, format, _ = recognise_format(source, "truth")
    assert format.read_truth is not None
    return format.read_truth(source, TruthOptions(subset=subset, fix=fix))


def read_predictions(path: PathLike, *, fix: bool = False) -> Predictions:
    """Read detections from a file, in its order.

    Scores may be any finite numbers, but not text. Reversed, empty and late segments are kept, because scorers count
    them.

    Args:
        fix: drop rows that are not finite, incomplete, or cut off, and count them in `left_out`.

    Raises:
        DataError: if the file does not hold predictions, or is broken.
    """
    source = Source(path)
    _, format, _ = recognise_format(source, "predictions")
    assert format.read_predictions is not None
    return format.read_predictions(source, fix)


def read_video_labels(path: PathLike, *, subset: str | None = None) -> VideoLabels:
    """Read classes of whole videos: a recognition list, predictions without segments, or ground truth.

    Args:
        subset: only videos of this subset, where the file has subsets.

    Raises:
        DataError: if the file holds no labels, or is broken.
    """
    source = Source(path)
    _, format, _ = recognise_format(source, "labels")
    assert format.read_labels is not None
    return format.read_labels(source, subset)


def segments_of(path: PathLike, video_id: str, *, subset: str | None = None) -> Segments:
    """Read the actions of one video from a ground truth file; other videos are not checked.

    Raises:
        UnknownName: if the file does not name the video.
        DataError: if the file is not ground truth, a segment is not one or has no length, or the video is in
            another subset.
    """
    source = Source(path)
    _, format, _ = recognise_format(source, "truth")
    assert format.read_truth is not None
    wanted_id = normalize_id(video_id)
    truth = format.read_truth(source, TruthOptions(only=wanted_id))
    if wanted_id not in truth.videos:
        raise UnknownName(f"video in {path}", video_id, _suggest_ids(wanted_id, truth.videos))
    own = truth.subsets[truth.videos.index(wanted_id)]
    if subset is not None and own.casefold() != subset.casefold():
        check_subset(path, Counter(truth.subsets), subset)
        raise DataError(
            f"{path}: video {quote_name(wanted_id)} is in subset {own!r}, not in {subset!r}; name its subset, or none",
            fault="F29",
        )
    empty = np.flatnonzero(truth.start == truth.end)
    if len(empty):
        raise DataError(
            f"{path}: video {quote_name(wanted_id)}: the segment of annotation {empty[0]} has no length: it starts and "
            f"ends at {truth.start[empty[0]]}; a corruption would affect no frame; correct or remove it",
            fault="F30",
        )
    return Segments(truth.start, truth.end, truth.label.astype(np.int64), classes=truth.classes)


def write_truth(truth: Truth, path: PathLike, *, format: str | None = None) -> None:
    """Write ground truth atomically, gzipped if the name ends in `.gz`.

    Args:
        format: name of a registered format; None chooses by the suffix of the path.

    Raises:
        BadValue: if the format cannot store it, or the suffix is unknown.
    """
    target = Path(path)
    chosen = formats[_choose_format(target, "truth", format)]
    assert chosen.write_truth is not None
    chosen.write_truth(truth, target)


def write_predictions(predictions: Predictions, path: PathLike, *, format: str | None = None) -> None:
    """Write predictions in the same way as `write_truth`."""
    target = Path(path)
    chosen = formats[_choose_format(target, "predictions", format)]
    assert chosen.write_predictions is not None
    chosen.write_predictions(predictions, target)


def write_video_labels(labels: VideoLabels, path: PathLike, *, format: str | None = None) -> None:
    """Write classes of whole videos; see `write_truth`."""
    target = Path(path)
    chosen = formats[_choose_format(target, "labels", format)]
    assert chosen.write_labels is not None
    chosen.write_labels(labels, target)


@dataclass(frozen=True)
class Conversion(Result):
    """Summary of what a conversion did."""

    out: Path  # the file written
    kind: Kind  # "truth", "predictions" or "labels"
    source_format: str  # the format read
    target_format: str  # the format written
    rows: int  # how many were written
    left_out: Mapping[str, int]  # what reading dropped or clipped, and how often
    lost: tuple[str, ...]  # what the target format cannot represent

    def written(self) -> tuple[Path, ...]:
        """Return the path of the file written."""
        return (self.out,)

    def notes(self) -> tuple[str, ...]:
        """Return what was written and what was not kept."""
        return (str(self),)

    def __str__(self) -> str:
        summary = f"{self.rows} rows of {KIND_NAMES[self.kind]}, {self.source_format} to {self.target_format}"
        dropped = "".join(f"; {count} {why}" for why, count in self.left_out.items())
        return summary + dropped + (f"; not kept: {', '.join(self.lost)}" if self.lost else "")


def convert(
    source: PathLike,
    target: PathLike,
    *,
    to: str | None = None,
    truth: PathLike | Truth | None = None,
    subset: str | None = None,
    fix: bool = False,
) -> Conversion:
    """Convert a file of ground truth, predictions or labels to another format.

    Args:
        to: the format to write; None chooses by the suffix of `target`.
        truth: ground truth that names class numbers, or numbers class names, where predictions need it.
        subset: only videos of this subset, of ground truth and labels.
        fix: drop what cannot be used instead of refusing the file.
    """
    source_file, path = Source(source), Path(target)
    name, format, match = recognise_format(source_file)
    kind = match.kind
    chosen_name = _choose_format(path, kind, to)
    chosen = formats[chosen_name]
    if kind == "truth":
        assert format.read_truth is not None
        assert chosen.write_truth is not None
        ground_truth = format.read_truth(source_file, TruthOptions(subset=subset, fix=fix))
        chosen.write_truth(ground_truth, path)
        return Conversion(
            Path(target),
            kind,
            name,
            chosen_name,
            len(ground_truth),
            ground_truth.left_out,
            find_lost_truth(ground_truth, chosen),
        )
    if kind == "predictions":
        if subset is not None:
            raise BadValue(f"{source_file.path} holds predictions, which have no subsets; leave the subset out")
        assert format.read_predictions is not None
        assert chosen.write_predictions is not None
        predictions = format.read_predictions(source_file, fix)
        converted = predictions if truth is None else _match_classes(predictions, truth, chosen)
        chosen.write_predictions(converted, path)
        lost = find_lost_predictions(converted, chosen)
        return Conversion(Path(target), kind, name, chosen_name, len(predictions), predictions.left_out, lost)
    assert format.read_labels is not None
    assert chosen.write_labels is not None
    labels = format.read_labels(source_file, subset)
    chosen.write_labels(labels, path)
    return Conversion(Path(target), kind, name, chosen_name, len(labels), {}, find_lost_labels(labels, chosen))


def _match_classes(predictions: Predictions, truth: PathLike | Truth, target: Format) -> Predictions:
    """Convert classes to names, or to numbers where the target has no names."""
    known = truth if isinstance(truth, Truth) else read_truth(truth)
    named = name_classes(predictions, known)
    if "names" in target.holds:
        return named
    if target is formats["thumos14-text"] and set(named.classes) <= set(THUMOS14_IDS):
        return named  # its writer has the official numbers
    return number_classes(named, dict(zip(known.classes, known.label_ids or (), strict=False)))


def _choose_format(path: Path, kind: Kind, name: str | None) -> str:
    able = [known for known in formats if formats[known].can_write(kind)]
    if name is not None:
        formats[name]  # raises UnknownName with suggestions
        if name not in able:
            raise BadValue(f"{KIND_NAMES[kind]} cannot be written as {name!r}; name one of {', '.join(able)}")
        return name
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    suffix = inner.suffix.lower()
    for known in able:
        if suffix in formats[known].writes.get(kind, ()):
            return known
    raise BadValue(
        f"{path}: the suffix {suffix or '(none)'} is of no format for {KIND_NAMES[kind]}; name one of {', '.join(able)}"
    )


def _suggest_ids(video_id: str, known: Iterable[str]) -> list[str]:
    """Return ids to suggest in place of an unknown one: close ones, or the first few."""
    names = sorted(known)
    close = difflib.get_close_matches(video_id, names, n=3, cutoff=0.6)
    if close or len(names) <= 5:
        return close or names
    return [*names[:4], f"{names[4]} and {len(names) - 5} more"]
