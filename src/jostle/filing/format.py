"""What a file format is to the house: how it is recognised, read and written, and what it can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jostle.errors import DataError
from jostle.filing.source import Source
from jostle.filing.text import describe
from jostle.filing.truth_table import Wanted
from jostle.registry import Registry
from jostle.types.predictions import Predictions
from jostle.types.truth import Truth
from jostle.types.video_labels import VideoLabels

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
        holds: what it keeps besides segments, labels and scores, by the names in `jostle.filing.losses`.
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


formats: Registry[Format] = Registry("format", "jostle.formats")


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
