"""Data of the viewer's pages on runs and their cells, and what every page begins with."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.comparison import chance_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.breaking_points import probe_of
from jostle.reporting.analysis.labels import grid_of, short_name
from jostle.reporting.analysis.language import baseline_rows
from jostle.reporting.analysis.loss_steps import step_of
from jostle.reporting.analysis.verdict import percent, verdict_of
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished, Waiting, cell_key

VIDEOS_PER_PAGE = 200  # videos of a cell by default


def page(kind: str, title: str, **content: Any) -> dict[str, Any]:
    return {"format": 1, "page": kind, "title": title, **content}


def index_page(collection: RunCollection) -> dict[str, Any]:
    """Return the list of runs."""
    runs = []
    for key in collection.folders:
        try:
            runs.append(_in_a_line(key, collection.run(key)))
        except DataError as error:
            runs.append({"key": key, "message": str(error)})
    return page("index", "Runs", runs=runs)


def unfinished_page(run: Unfinished) -> dict[str, Any]:
    """A run that has no scores yet."""
    about = {"key": run.key, "benchmark": run.about.benchmark, "model": run.about.display_name}
    return page("unfinished", str(run.about.benchmark), run=about, message=run.why, done=run.done, of=run.of)


def waiting_page(snapshot: Snapshot, waiting: Waiting) -> dict[str, Any]:
    """Return the page displayed while a run is being analysed."""
    return page("waiting", "Scoring", run=heading(snapshot), done=waiting.done, of=waiting.of)


def heading(snapshot: Snapshot) -> dict[str, Any]:
    """Return the heading of every page of a run."""
    record = snapshot.record
    return {
        "key": snapshot.key,
        "benchmark": record.about.benchmark,
        "model": record.about.display_name,
        "folder": record.folder.resolve().name,
        "task": record.task.name,
        "metric": record.scores.metric,
    }


def run_page(snapshot: Snapshot) -> dict[str, Any]:
    """The verdict and the heat map; intervals are null until they are worked out, and the verdict does without."""
    record, scores = snapshot.record, snapshot.record.scores
    problem, analysis = None, None
    try:
        result = snapshot.analysis()
        analysis = result if isinstance(result, RunAnalysis) else None
    except DataError as error:
        problem = str(error)
    grid = grid_of(record.cells, record.counted)
    return page(
        "run",
        f"{record.about.display_name} on {record.about.benchmark}",
        run=heading(snapshot),
        verdict=_verdict(record if analysis is None else analysis, record.about.display_name),
        numbers={
            "clean": _number(scores.clean, None if analysis is None else analysis.of(CLEAN)),
            "corrupted": _number(scores.mean_corrupted, None if analysis is None else analysis.corrupted()),
            "relative": _number(scores.relative_robustness, None if analysis is None else analysis.relative()),
        },
        chance=_chance(record if analysis is None else analysis),
        intervals="" if analysis is None else analysis.interval_text,
        surveyed=analysis is not None or problem is not None,
        message=problem,
        coverage=asdict(scores.coverage),
        counted=asdict(scores.counted),
        severities=list(grid.severities),
        rows=[
            {
                "corruption": row.corruption,
                "title": row.name,
                "counted": row.counted,
                "cells": [
                    None if severity not in row.cells else _square(snapshot, analysis, row.cells[severity])
                    for severity in ([None] if None in row.cells else grid.severities)
                ],
            }
            for row in grid.rows
        ],
        failures=[{"video": one.video, "message": one.message} for one in record.failures],
        seed=record.about.seed,
        probed=probe_of(record) is not None,
        clean_cell=cell_key(CLEAN),
    )


def _verdict(run: RunAnalysis | RunRecord, model: str) -> str:
    try:
        return verdict_of(run, model)
    except DataError:  # a file is gone: the page says which, and shows what is left
        return ""


def _chance(run: RunAnalysis | RunRecord) -> str:
    record = run if isinstance(run, RunRecord) else run.record
    try:
        levels = [chance_of(run).text]
    except DataError:  # as above
        levels = []
    levels += [f"{name} {percent(value)}" for name, value, _ in baseline_rows(record) if value is not None]
    return ", ".join(level for level in levels if level)


def cell_page(snapshot: Snapshot, cell: str, *, show: int = VIDEOS_PER_PAGE) -> dict[str, Any]:
    """The videos of a cell, largest loss first."""
    analysis = snapshot.analysis()
    if isinstance(analysis, Waiting):
        return waiting_page(snapshot, analysis)
    drops = snapshot.drops(cell)
    assert not isinstance(drops, Waiting)  # the analysis is done
    family = _family(snapshot, cell)
    columns = [analysis.place[one["cell"]] for one in family]
    place = {name: i for i, name in enumerate(analysis.videos)}
    rows = [
        {
            "video": drop.name,
            "key": snapshot.videos.of(drop.name),
            "clean": finite(drop.clean),
            "corrupted": finite(drop.corrupted),
            "loss": finite(drop.loss),
            "by_severity": [finite(float(analysis.by_video[column, place[drop.name]])) for column in columns],
        }
        for drop in drops[:show]
    ]
    return page(
        "cell",
        title_of(cell),
        run=heading(snapshot),
        cell=cell_heading(snapshot, cell),
        family=family,
        videos=rows,
        of=len(drops),
        unscored=len(analysis.videos) - len(drops),
    )


def cell_heading(snapshot: Snapshot, cell: str) -> dict[str, Any]:
    """Return the heading of every page of a cell, with its position in the benchmark and its corruptions."""
    record = snapshot.record
    known = record.about.content.cell(cell)
    value, clean = record.values.get(cell), record.values.get(CLEAN)
    return {
        "key": cell_key(cell),
        "cell": cell,
        "title": title_of(cell),
        "clean": cell == CLEAN,
        "value": value,
        "relative": value / clean if value is not None and clean else None,
        "done": [{"spec": step.spec, "placement": step.placement} for step in (known.done if known else ())],
    }


def title_of(cell: str) -> str:
    """A cell as a heading.

    >>> title_of("thumos14-c/black_frame:3"), title_of("clean")
    ('Black frame, severity 3', 'Clean')
    """
    corruption, severity = split_cell(cell) if cell != CLEAN else (cell, None)
    name = short_name(corruption if severity is not None else cell)
    return name[:1].upper() + name[1:] + (f", severity {severity}" if severity is not None else "")


def finite(value: float | None) -> float | None:
    """A number, or None for what is none: JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None


def _family(snapshot: Snapshot, cell: str) -> list[dict[str, Any]]:
    """The clean cell, and the severities of the corruption of a cell."""
    for row in grid_of(snapshot.record.cells, snapshot.record.counted).rows:
        if cell in row.cells.values():
            members = [CLEAN, *(row.cells[key] for key in sorted(row.cells, key=lambda key: key or 0))]
            return [_member(one) for one in members]
    return [_member(CLEAN)]


def _member(cell: str) -> dict[str, Any]:
    severity = None if cell == CLEAN else split_cell(cell)[1]
    return {"key": cell_key(cell), "cell": cell, "title": title_of(cell), "severity": severity}


def _square(snapshot: Snapshot, analysis: RunAnalysis | None, cell: str) -> dict[str, Any]:
    value, clean = snapshot.record.values.get(cell), snapshot.record.values.get(CLEAN)
    return {
        "key": cell_key(cell),
        "cell": cell,
        "title": title_of(cell),
        "value": value,
        "relative": value / clean if value is not None and clean else None,
        "step": step_of(value / clean if value is not None and clean else None),
        "interval": None if analysis is None else analysis.of(cell).interval,
    }


def _number(value: float | None, estimated: Estimate | None) -> dict[str, Any]:
    return {"value": value, "interval": None if estimated is None else estimated.interval}


def _in_a_line(key: str, run: Snapshot | Unfinished | None) -> dict[str, Any]:
    if isinstance(run, Snapshot):
        scores = run.record.scores
        return heading(run) | {
            "clean": scores.clean,
            "corrupted": scores.mean_corrupted,
            "relative": scores.relative_robustness,
        }
    assert run is not None  # its key comes from the collection
    return {
        "key": key,
        "benchmark": run.about.benchmark,
        "model": run.about.display_name,
        "message": f"{run.why}: {run.done} of {run.of} videos are done",
    }
