"""What a format cannot hold of the things it is given, named so that nothing is lost unsaid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from jostle.core.registry import Registry
from jostle.core.types.columns import Indices
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.files.text import describe
from jostle.io.files.truth_table import Wanted


def lost_of_truth(truth: Truth, format: Format) -> tuple[str, ...]:
    """What `truth` has and the format cannot hold, as messages say it."""
    known = {
        "subset": ("the subsets of videos", any(truth.subsets)),
        "duration": ("the durations of videos", bool(np.isfinite(truth.duration).any())),
        "fps": ("the rates of videos", bool(np.isfinite(truth.fps).any())),
        "label_ids": ("the numbers of classes", truth.label_ids is not None),
        "characteristics": (f"the characteristics {', '.join(truth.characteristics)}", bool(truth.characteristics)),
        "all_segments": ("the segments of several annotators", truth.all_segments is not None),
        "ambiguous": (f"{len(truth.ambiguous)} ambiguous stretches", len(truth.ambiguous) > 0),
    }
    lost = [said for name, (said, has) in known.items() if has and name not in format.holds]
    mentioned = {*truth.video.tolist(), *(truth.ambiguous.video.tolist() if "ambiguous" in format.holds else ())}
    return (*lost, *_of_rows(len(truth.videos), mentioned, truth.video, format))


def lost_of_predictions(predictions: Predictions, format: Format) -> tuple[str, ...]:
    """What `predictions` has and the format cannot hold, as messages say it."""
    lost = []
    if not predictions.numbered and "names" not in format.holds:
        lost.append("the names of classes")
    if predictions.numbered and "numbers" not in format.holds:
        lost.append("that labels are numbers")
    mentioned = set(predictions.video.tolist())
    return (*lost, *_of_rows(len(predictions.videos), mentioned, predictions.video, format))


def lost_of_labels(labels: VideoLabels, format: Format) -> tuple[str, ...]:
    """What `labels` has and the format cannot hold, as messages say it."""
    known = {
        "paths": ("the paths of videos", bool(labels.paths)),
        "frames": ("the frames of videos", len(labels.frames) > 0),
        "scores": ("the scores", labels.score is not None),
        "true": ("that labels are true, not scored", labels.score is None),
        "numbers": ("that labels are numbers", labels.numbered),
    }
    return tuple(said for name, (said, has) in known.items() if has and name not in format.holds)


def _of_rows(videos: int, mentioned: set[int], video: Indices, format: Format) -> list[str]:
    lost = []
    empty = videos - len(mentioned)
    if empty and "empty_videos" not in format.holds:
        lost.append(f"{empty} video(s) without a row")
    if "row_order" not in format.holds and len(video) and (np.diff(video) < 0).any():
        lost.append("the order of rows across videos")
    return lost


Kind = Literal["truth", "predictions", "labels"]

SAID: dict[Kind, str] = {
    "truth": "ground truth",
    "predictions": "predictions",
    "labels": "labels of whole videos",
}
_ASKED: dict[Kind, str] = {
    "truth": "the annotations",
    "predictions": "the predictions",
    "labels": "the labels",
}


@dataclass(frozen=True)
class Likeness:
    """What a file looks like.

    Attributes:
        kind: what it holds.
        because: what gives it away, as messages say it: `it has 'results', not 'database'`.
    """

    kind: Kind
    because: str


@dataclass(frozen=True)
class Format:
    """One format; a missing function means that it cannot do that.

    Attributes:
        about: what it is, in one line.
        recognise: what a file looks like if it is of this format, given the kind asked for, or None.
        writes: the endings that mean this format when a kind is written, in lower case; an empty one is a folder.
        holds: what it keeps besides segments, labels and scores, by the names in `jostle.io.files.format`.
    """

    about: str
    recognise: Callable[[Source, Kind | None], Likeness | None]
    read_truth: Callable[[Source, Wanted], Truth] | None = None
    read_predictions: Callable[[Source, bool], Predictions] | None = None
    read_labels: Callable[[Source, str | None], VideoLabels] | None = None
    write_truth: Callable[[Truth, Path], None] | None = None
    write_predictions: Callable[[Predictions, Path], None] | None = None
    write_labels: Callable[[VideoLabels, Path], None] | None = None
    writes: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()

    def reads(self, kind: Kind, found: Kind) -> bool:
        """Whether a file that holds `found` can be read as `kind`: as what it is, or ground truth as its classes."""
        return found == kind or (kind == "labels" and found == "truth" and self.read_labels is not None)

    def can_write(self, kind: Kind) -> bool:
        """Whether this kind can be written in this format."""
        return {"truth": self.write_truth, "predictions": self.write_predictions, "labels": self.write_labels}[
            kind
        ] is not None


formats: Registry[Format] = Registry("format", "jostle.io.formats")


def recognised(source: Source, kind: Kind | None = None) -> tuple[str, Format, Likeness]:
    """The name of a file's format, the format, and what the file looks like.

    Args:
        kind: what is asked for; any if None.

    Raises:
        DataError: F28 if no format fits, or if the file holds another kind.
    """
    names = sorted(formats, key=lambda name: formats.part(name) is not None)  # no plugin claims what is known
    found = [(name, likeness) for name in names if (likeness := formats[name].recognise(source, kind))]
    if kind is not None:
        fitting = [(name, likeness) for name, likeness in found if formats[name].reads(kind, likeness.kind)]
        if found and not fitting:
            like = found[0][1]
            verb = "is" if like.kind == "truth" else "are"
            raise DataError(
                f"{source.path}: not {SAID[kind]}: it looks like {SAID[like.kind]} ({like.because}); give "
                f"{_ASKED[kind]} here, and this file where {SAID[like.kind]} {verb} asked for",
                fault="F28",
            )
        found = fitting
    if not found:
        raise DataError(f"{source.path}: not {SAID[kind] if kind else _ANY}: {_likeness(source)}", fault="F28")
    name, likeness = found[0]
    return name, formats[name], likeness


_ANY = "ground truth, predictions or labels in any known format"


def _likeness(source: Source) -> str:
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
