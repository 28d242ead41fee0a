"""File formats: their registry, recognition by content, and what each cannot represent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from jostle.core.formatting import describe
from jostle.core.registry import Registry
from jostle.core.types.columns import Indices
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.files.truth_table import TruthOptions


def find_lost_truth(truth: Truth, format: Format) -> tuple[str, ...]:
    """Describe what of `truth` the format cannot represent."""
    contents = {
        "subset": ("the subsets of videos", any(truth.subsets)),
        "duration": ("the durations of videos", bool(np.isfinite(truth.duration).any())),
        "fps": ("the rates of videos", bool(np.isfinite(truth.fps).any())),
        "label_ids": ("the numbers of classes", truth.label_ids is not None),
        "characteristics": (f"the characteristics {', '.join(truth.characteristics)}", bool(truth.characteristics)),
        "all_segments": ("the segments of several annotators", truth.all_segments is not None),
        "ambiguous": (f"{len(truth.ambiguous)} ambiguous stretches", len(truth.ambiguous) > 0),
    }
    lost = [description for name, (description, has) in contents.items() if has and name not in format.holds]
    mentioned = {*truth.video.tolist(), *(truth.ambiguous.video.tolist() if "ambiguous" in format.holds else ())}
    return (*lost, *_lost_of_rows(len(truth.videos), mentioned, truth.video, format))


def find_lost_predictions(predictions: Predictions, format: Format) -> tuple[str, ...]:
    """Describe what of `predictions` the format cannot represent."""
    lost = []
    if not predictions.numbered and "names" not in format.holds:
        lost.append("the names of classes")
    if predictions.numbered and "numbers" not in format.holds:
        lost.append("that labels are numbers")
    mentioned = set(predictions.video.tolist())
    return (*lost, *_lost_of_rows(len(predictions.videos), mentioned, predictions.video, format))


def find_lost_labels(labels: VideoLabels, format: Format) -> tuple[str, ...]:
    """Describe what of `labels` the format cannot represent."""
    contents = {
        "paths": ("the paths of videos", bool(labels.paths)),
        "frames": ("the frames of videos", len(labels.frames) > 0),
        "scores": ("the scores", labels.score is not None),
        "true": ("that labels are true, not scored", labels.score is None),
        "numbers": ("that labels are numbers", labels.numbered),
    }
    return tuple(description for name, (description, has) in contents.items() if has and name not in format.holds)


def _lost_of_rows(videos: int, mentioned: set[int], video: Indices, format: Format) -> list[str]:
    lost = []
    empty = videos - len(mentioned)
    if empty and "empty_videos" not in format.holds:
        lost.append(f"{empty} video(s) without a row")
    if "row_order" not in format.holds and len(video) and (np.diff(video) < 0).any():
        lost.append("the order of rows across videos")
    return lost


Kind = Literal["truth", "predictions", "labels"]

KIND_NAMES: dict[Kind, str] = {
    "truth": "ground truth",
    "predictions": "predictions",
    "labels": "labels of whole videos",
}
_REQUESTED: dict[Kind, str] = {"truth": "the annotations", "predictions": "the predictions", "labels": "the labels"}


@dataclass(frozen=True)
class FormatMatch:
    """Result of recognising a file.

    Attributes:
        kind: what it holds.
        because: the evidence, for messages: `it has 'results', not 'database'`.
    """

    kind: Kind
    because: str


@dataclass(frozen=True)
class Format:
    """A file format; functions that it does not support are None.

    Attributes:
        about: description in one line.
        recognise: returns a match if a file is of this format, given the required kind, or None.
        writes: lower-case suffixes that select this format by kind; an empty one is a folder.
        holds: what it stores besides segments, labels and scores, by the names in `jostle.io.files.format`.
    """

    about: str
    recognise: Callable[[Source, Kind | None], FormatMatch | None]
    read_truth: Callable[[Source, TruthOptions], Truth] | None = None
    read_predictions: Callable[[Source, bool], Predictions] | None = None
    read_labels: Callable[[Source, str | None], VideoLabels] | None = None
    write_truth: Callable[[Truth, Path], None] | None = None
    write_predictions: Callable[[Predictions, Path], None] | None = None
    write_labels: Callable[[VideoLabels, Path], None] | None = None
    writes: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()

    def reads(self, kind: Kind, content: Kind) -> bool:
        """Return whether a file with this content can be read as `kind`; ground truth may be read as labels."""
        return content == kind or (kind == "labels" and content == "truth" and self.read_labels is not None)

    def can_write(self, kind: Kind) -> bool:
        """Return whether the format can store this kind."""
        return {"truth": self.write_truth, "predictions": self.write_predictions, "labels": self.write_labels}[
            kind
        ] is not None


formats: Registry[Format] = Registry("format", "jostle.io.formats")


def format(name: str) -> Callable[[Callable[[], Format]], Callable[[], Format]]:
    """Register the `Format` that the decorated function returns."""

    def register(function: Callable[[], Format]) -> Callable[[], Format]:
        formats.add(name, function())
        return function

    return register


def recognise_format(source: Source, kind: Kind | None = None) -> tuple[str, Format, FormatMatch]:
    """Recognise the format of a file; return its name, the format and the match.

    Args:
        kind: required kind; any if None.

    Raises:
        DataError: F28 if no format fits, or if the file holds another kind.
    """
    names = sorted(formats, key=lambda name: formats.part(name) is not None)  # plugins come last
    matches = [(name, match) for name in names if (match := formats[name].recognise(source, kind))]
    if kind is not None:
        fitting = [(name, match) for name, match in matches if formats[name].reads(kind, match.kind)]
        if matches and not fitting:
            like = matches[0][1]
            verb = "is" if like.kind == "truth" else "are"
            raise DataError(
                f"{source.path}: not {KIND_NAMES[kind]}: it looks like {KIND_NAMES[like.kind]} ({like.because}); give "
                f"{_REQUESTED[kind]} here, and this file where {KIND_NAMES[like.kind]} {verb} asked for",
                fault="F28",
            )
        matches = fitting
    if not matches:
        raise DataError(
            f"{source.path}: not {KIND_NAMES[kind] if kind else _ANY}: {_describe_source(source)}", fault="F28"
        )
    name, match = matches[0]
    return name, formats[name], match


_ANY = "ground truth, predictions or labels in any known format"


def _describe_source(source: Source) -> str:
    if source.is_folder:
        return "it is a folder without files such as 'Diving_test.txt'; give a file, or a folder of THUMOS14's"
    if source.is_json:
        return f"it has no 'database'; it holds {describe(source.document)}"
    if source.is_pickle:
        return "it is a pickle without the columns 'video-id', 't-start', 't-end', 'label', 'score'"
    first = " ".join(source.words)
    return (
        f"its first line is {first[:80]!r}; a table needs a header such as video_id,t_start,t_end,label,score, "
        "a list needs 'path label' in each line"
    )
