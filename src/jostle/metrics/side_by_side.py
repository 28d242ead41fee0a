"""Scores of one file of predictions, or of two side by side with what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jostle.core.results import Result, plain
from jostle.core.tables import Table
from jostle.errors import BadValue
from jostle.metrics.answers import AnswerChange, AnswerScore
from jostle.metrics.diagnosis.comparison import Change
from jostle.metrics.diagnosis.diagnosis import Diagnosis
from jostle.metrics.diagnosis.numbers import diagnosis_tables
from jostle.metrics.moments import MomentScore, moments_table
from jostle.metrics.score import Comparison, Score, score_tables, truth_facts


def file_names(paths: Sequence[Path], text: str | None = None) -> list[str]:
    """Return display names of files: given by the user, separated by commas, or taken from the paths.

    >>> file_names([Path("a/clean.json"), Path("b/clean.json")]), file_names([Path("x.json")], "ours")
    (['a/clean', 'b/clean'], ['ours'])
    """
    if text is not None:
        names = [name.strip() for name in text.split(",")]
        if len(names) != len(paths) or not all(names) or len(set(names)) < len(names):
            raise BadValue(f"give {len(paths)} names with commas between them, each another; got {text!r}")
        return names
    stems = [path.stem for path in paths]
    if len(set(stems)) < len(stems):
        stems = [f"{path.resolve().parent.name}/{path.stem}" for path in paths]
    return stems if len(set(stems)) == len(stems) else [f"{stem} ({i})" for i, stem in enumerate(stems, 1)]


@dataclass(frozen=True, eq=False)
class _SideBySide(Result):
    """Results of one file, or of two; the JSON of the second and of the change lies within that of the first."""

    names: Sequence[str]  # display names of the files

    def results(self) -> Sequence[Result]:
        """Return the result of each file."""
        raise NotImplementedError

    def changes(self) -> dict[str, Any]:
        """Return what JSON has besides the result of each file, such as what changed, by key."""
        return {}

    def notes(self) -> tuple[str, ...]:
        """Return the notes of each file under its name; one that holds for both is there once."""
        notes = [one.notes() for one in self.results()]
        shared = set(notes[0]).intersection(*notes[1:])
        own = [
            f"{name}: {note}"
            for name, some in zip(self.names, notes, strict=True)
            for note in some
            if note not in shared
        ]
        return (*own, *(note for note in notes[0] if note in shared))

    def to_dict(self) -> dict[str, Any]:
        """Return the first result as plain values for JSON, with the second as `against`."""
        first, *others = (one.to_dict() for one in self.results())
        return first | ({"against": others[0]} if others else {}) | self.changes()


@dataclass(frozen=True, eq=False)
class ScoredFiles(_SideBySide):
    """Scores of one file of detections, or of two."""

    scores: Sequence[Score]
    difference: Comparison | None = None
    variant: str | None = None  # known variant of the data set that the ground truth is
    per_class: bool = False  # whether the tables have the classes

    def results(self) -> Sequence[Result]:
        return self.scores

    def changes(self) -> dict[str, Any]:
        truth = {"truth": truth_facts(self.scores[0].truth) | {"variant": self.variant}}
        return truth | ({} if self.difference is None else {"difference": self.difference.to_dict()})

    def tables(self) -> tuple[Table, ...]:
        """Return mean average precision at every threshold, and by class if that was requested."""
        tables = score_tables(self.names, self.scores, self.difference, variant=self.variant)
        return tables if self.per_class else tables[:1]


@dataclass(frozen=True, eq=False)
class DiagnosedFiles(_SideBySide):
    """Diagnoses of one file of detections, or of two."""

    diagnoses: Sequence[Diagnosis]
    change: Change | None = None

    def results(self) -> Sequence[Result]:
        return self.diagnoses

    def changes(self) -> dict[str, Any]:
        return {} if self.change is None else {"change": self.change.to_dict()}

    def tables(self) -> tuple[Table, ...]:
        """Return the numbers of the diagnoses."""
        return diagnosis_tables(self.names, [one.to_dict() for one in self.diagnoses])


@dataclass(frozen=True, eq=False)
class AnsweredFiles(_SideBySide):
    """Scores of one file of answers, or of two."""

    scores: Sequence[AnswerScore]
    change: AnswerChange | None = None

    def results(self) -> Sequence[Result]:
        return self.scores

    def changes(self) -> dict[str, Any]:
        return {} if self.change is None else {"change": plain(self.change)}

    def tables(self) -> tuple[Table, ...]:
        """Return accuracy by type of each file, and what changed."""
        tables = [
            replace(table, title=f"{name}: {table.title}")
            for name, score in zip(self.names, self.scores, strict=True)
            for table in score.tables()
        ]
        return (*tables, *(() if self.change is None else self.change.tables()))


@dataclass(frozen=True, eq=False)
class MomentFiles(_SideBySide):
    """Scores of one file of windows, or of two."""

    scores: Sequence[MomentScore]

    def results(self) -> Sequence[Result]:
        return self.scores

    def tables(self) -> tuple[Table, ...]:
        """Return the shares of each file side by side."""
        return (moments_table(self.names, self.scores),)
