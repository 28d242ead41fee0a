"""Runs of questions and moments as tables: kinds of answers, what corruption changes, baselines, types and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jostle.core.formatting import between, percent
from jostle.core.tables import Column, Table, Value
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.scores import BASELINES, BaselineScore, CellScore, FurtherScores
from jostle.metrics.answers import AnswerShare
from jostle.metrics.moments import MomentMeanAP

TIOU = "0.5"  # overlap of the value of a cell, as a key of `recall`
NEEDS_ORDER = "needs order"  # row of all questions that need the order of events


@dataclass(frozen=True)
class Baseline:
    """Clean score of the model with less than the video, or why there is none."""

    key: str
    name: str
    score: BaselineScore

    @property
    def text(self) -> str:
        """The baseline and its score in words."""
        value = self.score.score
        if value is None:
            return f"{self.name} no score ({self.score.failed or 'not measured'})"
        ends = between(self.score.interval, 1)
        return f"{self.name} {percent(value, 1)}{f' {ends}' if ends else ''}"


def baselines_of(record: RunRecord) -> list[Baseline]:
    """Return the baselines in the scores of a run; none for other tasks."""
    known = record.scores.clean_more.baselines or {}
    return [Baseline(key, name, known[key]) for key, name in BASELINES.items() if key in known]


def describe_baselines(record: RunRecord) -> str:
    """Say in a sentence what the model scores with less than the video; empty for other tasks.

    A clean score whose interval holds that of the blind model owes nothing certain to the video.
    """
    baselines = baselines_of(record)
    if not baselines:
        return ""
    chance = record.scores.clean_more.chance
    levels = [*((f"chance {percent(chance, 1)}",) if chance else ()), *(one.text for one in baselines)]
    text = f"Levels to hold the clean {record.scores.metric} of {percent(record.scores.clean, 1)} against: "
    text += f"{', '.join(levels)}."
    blind = next((one.score.score for one in baselines if one.key == "blind"), None)
    ends = record.scores.clean_more.interval
    if blind is not None and ends is not None and ends[0] <= blind:
        text += " Its interval reaches down to the score without video: that the model uses the video is not certain."
    return text


def baseline_rows(record: RunRecord) -> list[tuple[str, float | None, tuple[float, float] | None]]:
    """Return the name, score and interval of each baseline, as rows for tables of cells."""
    return [(one.name, one.score.score, one.score.interval) for one in baselines_of(record)]


def answers_table(record: RunRecord, name: str) -> Table | None:
    """Return the kinds of answers and their calibration in every cell; None where runs have none."""
    if record.scores.clean_more.unreadable is None:
        return None
    rows: list[tuple[Value, ...]] = []
    count = record.scores.clean_more.count or 1
    for cell, value, more in _cells(record):
        unreadable, missing = (more.unreadable or 0) / count, (more.missing or 0) / count
        sure = more.calibration
        rows.append(
            (cell, value, more.interval, max(1 - value - unreadable - missing, 0.0), unreadable, missing)
            + ((None, None) if sure is None else (sure.brier, sure.ece))
        )
    for one in baselines_of(record):
        right = one.score.score
        parts = [None if part is None else part / count for part in (one.score.unreadable, one.score.missing)]
        wrong = None if right is None else max(1 - right - sum(part or 0 for part in parts), 0.0)
        rows.append((one.name, right, one.score.interval, wrong, *parts, None, None))
    columns = (
        Column("cell"),
        Column("right", "percent"),
        Column("95 % interval", "interval"),
        Column("wrong", "percent"),
        Column("unreadable", "percent"),
        Column("missing", "percent"),
        Column("Brier", "decimal"),
        Column("ECE", "decimal"),
    )
    return Table(f"Answers, {name}{_levels(record)}", columns, tuple(rows))


def changes_table(record: RunRecord, name: str) -> Table | None:
    """Return what each cell changes in the answers; None for other tasks, and without cells."""
    rows: list[tuple[Value, ...]] = []
    for cell, value, more in _cells(record):
        if more.change is not None:
            change, order = more.change, more.temporal_sensitivity
            rows.append(
                (
                    cell,
                    value,
                    change.relative,
                    change.resist_rate,
                    change.resist_interval,
                    change.corrective_flips,
                    change.corrective_interval,
                    "" if order is None else order.value,
                    "" if order is None else order.interval,
                    change.became_unreadable,
                )
            )
    if not rows:
        return None
    columns = (
        Column("cell"),
        Column("accuracy", "percent"),
        Column("of clean", "percent"),
        Column("resist rate", "percent"),
        Column("95 % interval", "interval"),
        Column("corrective flips", "percent"),
        Column("95 % interval", "interval"),
        Column("temporal sensitivity", "percent"),
        Column("95 % interval", "interval"),
        Column("became unreadable", "count"),
    )
    return Table(f"Changes, {name}{_levels(record)}", columns, tuple(rows))


def types_table(record: RunRecord, name: str) -> Table | None:
    """Return accuracy by type of question, clean and as a mean over the cells that count; None for other tasks."""
    groups = _groups(record.scores.clean_more)
    if not groups:
        return None
    corrupted = [_groups(one) for one in record.scores.cells]
    baselines = {one.key: _groups(one.score) for one in baselines_of(record)}
    rows: list[tuple[Value, ...]] = []
    for kind, clean in groups.items():
        values = [one[kind].accuracy for one in corrupted if kind in one]
        mean = sum(values) / len(values) if values else None
        worst = min(record.scores.cells, key=lambda one: _accuracy(one, kind)) if values else None
        blind = [
            share.accuracy if (share := baselines.get(key, {}).get(kind)) else None for key in ("blind", "one_frame")
        ]
        rows.append(
            (kind, clean.count, clean.chance, *blind, clean.accuracy, clean.interval, mean)
            + (None if mean is None else mean - clean.accuracy,)
            + (("", None) if worst is None else (worst.cell, _accuracy(worst, kind)))
        )
    columns = (
        Column("type"),
        Column("questions", "count"),
        Column("chance", "percent"),
        Column("without video", "percent"),
        Column("one frame", "percent"),
        Column("clean", "percent"),
        Column("95 % interval", "interval"),
        Column("corrupted", "percent"),
        Column("change", "points"),
        Column("least under"),
        Column("there", "percent"),
    )
    return Table(f"Types of question, {name}", columns, tuple(rows))


def windows_table(record: RunRecord, name: str) -> Table | None:
    """Return R@1, mean IoU and mAP in every cell; None where runs have none."""
    if record.scores.clean_more.recall is None:
        return None
    tious = list(record.scores.clean_more.recall)
    rows: list[tuple[Value, ...]] = []
    for cell, _, more in _cells(record):
        recall, ends = more.recall or {}, more.recall_intervals or {}
        both = (part for tiou in tious for part in (recall.get(tiou), ends.get(tiou)))
        means = (more.mean_iou, more.mean_iou_interval, more.average_map, more.average_map_interval)
        rows.append((cell, *both, *means, more.empty, more.missing))
    by_map = isinstance(record.metric, MomentMeanAP)
    for one in baselines_of(record):
        none: list[Value] = [None] * (2 * len(tious))
        average: tuple[Value, Value] = (None, None)
        if by_map:
            average = (one.score.score, one.score.interval)
        elif TIOU in tious:
            at = 2 * tious.index(TIOU)
            none[at : at + 2] = [one.score.score, one.score.interval]
        rows.append((one.name, *none, one.score.mean_iou, None, *average, None, None))
    columns = (
        Column("cell"),
        *(
            column
            for tiou in tious
            for column in (Column(f"R@1, IoU {tiou}", "percent"), Column("95 % interval", "interval"))
        ),
        Column("mean IoU", "percent"),
        Column("95 % interval", "interval"),
        Column("mAP", "percent"),
        Column("95 % interval", "interval"),
        Column("no window", "count"),
        Column("missing", "count"),
    )
    return Table(f"Windows, {name}", columns, tuple(rows))


def _cells(record: RunRecord) -> Iterable[tuple[str, float, FurtherScores]]:
    """Yield the name, value and further scores of every cell, the clean one first."""
    yield CLEAN, record.scores.clean, record.scores.clean_more
    for one in record.scores.listed:
        yield one.cell, one.value, one


def _levels(record: RunRecord) -> str:
    """Return chance level and baselines in brackets, for titles of tables."""
    chance = record.scores.clean_more.chance
    levels = [f"chance {percent(chance, 1)}"] if chance else []
    levels += [f"{name} {percent(value, 1)}" for name, value, _ in baseline_rows(record) if value is not None]
    return f" ({', '.join(levels)})" if levels else ""


def _groups(more: FurtherScores | BaselineScore) -> Mapping[str, AnswerShare]:
    order = {} if more.order is None else {NEEDS_ORDER: more.order}
    return (more.by_type or {}) | order


def _accuracy(cell: CellScore, kind: str) -> float:
    groups = _groups(cell)
    return groups[kind].accuracy if kind in groups else 1.0
