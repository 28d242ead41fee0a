"""Gaps of a run: what a gate could not look at, and which conditions that concerns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jostle.core.formatting import join_names
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue, Tampered, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.comparison import check_comparable
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import processed_videos
from jostle.evaluation.run_folder.metadata import Content
from jostle.evaluation.runner.verification import StoredPredictions, check_predictions
from jostle.gate.budget import Condition


@dataclass(frozen=True)
class Gap:
    """Something that a gate could not look at."""

    reason: str
    cells: frozenset[str] | None = None  # whose conditions it concerns; None for all

    def concerns(self, cells: Collection[str]) -> bool:
        """Whether a condition on these cells is about something that is missing."""
        return self.cells is None or not self.cells.isdisjoint(cells)


@dataclass(frozen=True)
class Scope:
    """Cells that a gate is about, as the benchmark defines them."""

    content: Content
    cells: tuple[str, ...]  # the clean one, and those that the means are over

    @classmethod
    def of(cls, content: Content, chosen: Collection[str] | None = None) -> Scope:
        """Return all cells of a benchmark that count, or the chosen ones.

        Raises:
            UnknownName: if the benchmark has no such cell.
        """
        known = [one.cell for one in content.cells]
        for name in chosen or ():
            if name not in known:
                raise UnknownName(f"cell of {content.name}", name, known)
        counted = {one.cell for one in content.cells if one.counted} if chosen is None else {*chosen}
        return cls(content, tuple(name for name in known if name == CLEAN or name in counted))

    @property
    def corrupted(self) -> tuple[str, ...]:
        """Cells that the means are over."""
        return tuple(name for name in self.cells if name != CLEAN)

    def of_condition(self, condition: Condition) -> tuple[str, ...]:
        """Return the cells that a condition is about.

        Raises:
            UnknownName: if the benchmark has no such cell or family.
            BadValue: if it has no corrupted cell, and the condition is on their mean.
        """
        kind, _, part = condition.metric.partition(":")
        if kind == "clean":
            return (CLEAN,)
        if kind == "cell":
            known = [one.cell for one in self.content.cells if one.cell != CLEAN]
            if part not in known:
                raise UnknownName(f"cell of {self.content.name}", part, known)
            return (part,)
        cells = self.corrupted
        if kind == "family":
            families = {name: self._family(name) for name in cells}
            cells = tuple(name for name, family in families.items() if family == part)
            if not cells:
                raise UnknownName(f"family of corruptions in {self.content.name}", part, set(families.values()) - {""})
        if not cells:
            raise BadValue(f"{condition.metric} is a mean over corrupted cells, and there are none", fault="F150")
        return (CLEAN, *cells) if kind == "relative_robustness" else cells

    def _family(self, cell: str) -> str:
        """Return the family of a cell's corruptions; empty if they are of several, or of a plugin that is not here."""
        content = self.content.cell(cell)
        names = [] if content is None else [step.corruption for step in content.done]
        families = {corruptions[name].family if name in corruptions else "" for name in names}
        return families.pop() if len(families) == 1 else ""


def find_gaps(record: RunRecord, scope: Scope, also: Collection[str] = ()) -> list[Gap]:
    """Return what a run lacks of its benchmark.

    Args:
        scope: the cells that the gate is about.
        also: further cells that conditions name.

    Raises:
        Tampered: if predictions are not those that the run wrote.
    """
    stored = check_predictions(record.folder)
    if stored.altered:
        raise Tampered(
            f"{record.folder}: {stored.altered[0]}; nothing is decided on other predictions. Delete the file, and the "
            "same `jostle run` writes it anew",
            fault="F150",
        )
    _check_truth(record)
    gaps = _lacking_videos(record, stored)
    whole = stored.videos.get(CLEAN, frozenset())
    for name in dict.fromkeys((*scope.cells, *also)):
        if name not in record.cells or name not in stored.videos:
            gaps.append(
                Gap(
                    f"{record.folder} has no predictions for {name}; the same `jostle run` with this cell adds them",
                    frozenset({name}),
                )
            )
        elif lacking := whole - stored.videos[name]:
            gaps.append(
                Gap(
                    f"{record.folder} lacks {len(lacking)} videos in {name}; the same `jostle run` adds them",
                    frozenset({name}),
                )
            )
    return gaps


def _check_truth(record: RunRecord) -> None:
    """Raise Tampered where the annotations in a run folder are not those that the run was scored by."""
    if record.task.fingerprint != record.about.truth:
        raise Tampered(
            f"{record.folder}: truth.json is not what the run wrote; nothing is decided by other annotations. Delete "
            "it, and the same `jostle run` writes it anew",
            fault="F150",
        )


def _lacking_videos(record: RunRecord, stored: StoredPredictions) -> list[Gap]:
    """Return gaps for videos without a file, videos that failed, and videos that are still to be processed."""
    about, gaps = record.about, []
    if about.missing:
        gaps.append(
            Gap(
                f"{len(about.missing)} annotated {record.task.words.unit} of {record.folder} have no file: "
                f"{join_names(about.missing)}"
            )
        )
    if stored.state.failed:
        names = sorted(stored.state.failed)
        gaps.append(Gap(f"{len(names)} videos of {record.folder} could not be used: {join_names(names)}"))
    own = set(processed_videos(record))
    of = max(about.videos, record.scores.coverage.of)
    # A run that stopped early chose its videos at random, and says so.
    if len(own) < of and not gaps and about.stopped_early is None:
        gaps.append(
            Gap(
                f"{record.folder} has {len(own)} of {of} videos, and a part decides nothing about the benchmark; the "
                "same `jostle run` does the rest"
            )
        )
    return gaps


def find_unpaired(run: RunRecord, reference: RunRecord) -> list[Gap]:
    """Return gaps for videos that only one of two whole runs has.

    Raises:
        Incomparable: if they are runs of different benchmarks or ground truths.
    """
    check_comparable((run, reference))
    if run.about.stopped_early is not None or reference.about.stopped_early is not None:
        return []
    own, theirs = set(processed_videos(run)), set(processed_videos(reference))
    if own == theirs:
        return []
    names: Sequence[str] = sorted(own ^ theirs)
    return [Gap(f"only one of {run.folder} and {reference.folder} has {len(names)} videos: {join_names(names)}")]
