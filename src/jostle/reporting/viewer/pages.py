"""Data of the viewer's pages: runs, cells, videos under a cell, and the gallery of corruptions."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np

from jostle.core.types.boxes import Boxes
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Entry, Spec, own_entry, profiles
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.comparison import chance_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis, processed_videos
from jostle.evaluation.tasks.views import (
    BoxedFrame,
    BoxesView,
    ClassScoresView,
    Detection,
    FrameAnswer,
    FrameSetAnswers,
    FrameSetsView,
    ItemTableView,
    TimelineView,
)
from jostle.io.formats.boxes import boxes_to_lists
from jostle.metrics.frame_sets import frame_number
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.breaking_points import describe_probe, frail_item, probe_of
from jostle.reporting.analysis.labels import grid_of, short_name
from jostle.reporting.analysis.language import baseline_rows
from jostle.reporting.analysis.loss_steps import step_of
from jostle.reporting.analysis.verdict import percent, verdict_of
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished, Waiting, cell_key

VIDEOS_PER_PAGE = 200  # videos of a cell by default


def _page(kind: str, title: str, **content: Any) -> dict[str, Any]:
    return {"format": 1, "page": kind, "title": title, **content}


def index_page(collection: RunCollection) -> dict[str, Any]:
    """Return the list of runs."""
    runs = []
    for key in collection.folders:
        try:
            runs.append(_in_a_line(key, collection.run(key)))
        except DataError as error:
            runs.append({"key": key, "message": str(error)})
    return _page("index", "Runs", runs=runs)


def unfinished_page(run: Unfinished) -> dict[str, Any]:
    """A run that has no scores yet."""
    about = {"key": run.key, "benchmark": run.about.benchmark, "model": run.about.display_name}
    return _page("unfinished", str(run.about.benchmark), run=about, message=run.why, done=run.done, of=run.of)


def waiting_page(snapshot: Snapshot, waiting: Waiting) -> dict[str, Any]:
    """Return the page displayed while a run is being analysed."""
    return _page("waiting", "Scoring", run=heading(snapshot), done=waiting.done, of=waiting.of)


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
    return _page(
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
    return _page(
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


OWN = "jostle"  # what jostle's own table is called among the profiles
VIDEOS = 1000  # that are offered
CLEAN_EXCERPT = "clean"


def gallery_page(snapshot: Snapshot) -> dict[str, Any]:
    """Return the videos and corruptions to choose from."""
    videos = processed_videos(snapshot.record)
    return _page(
        "gallery",
        "Gallery of corruptions",
        run=heading(snapshot),
        videos=[{"key": snapshot.videos.of(name), "id": name} for name in videos[:VIDEOS]],
        of=len(videos),
        profiles=gallery_profiles(),
        clean=CLEAN_EXCERPT,
        media=f"/excerpts/{snapshot.key}",
    )


@cache
def gallery_profiles() -> list[dict[str, Any]]:
    """Every table of corruptions, jostle's own first."""
    own = {name: own_entry(name) for name in corruptions}
    profiles_listed = [_profile(OWN, "jostle's own table", None, own)]
    for name in profiles:
        profiles_listed.append(_profile(name, profiles[name].summary, name, dict(profiles[name].entries)))
    return profiles_listed


@cache
def spec_of(key: str) -> Spec | None:
    """The spec of a key of the gallery, `<corruption>:<severity>` by its key; None if there is no such."""
    return _specs().get(key)


@cache
def _specs() -> dict[str, Spec]:
    specs = {}
    for profile in gallery_profiles():
        for entry in profile["corruptions"]:
            for severity in range(1, entry["severities"] + 1):
                specs[f"{entry['key']}-{severity}"] = Spec.parse(f"{entry['spec']}:{severity}")
    return specs


def _profile(key: str, summary: str, prefix: str | None, entries: dict[str, Entry]) -> dict[str, Any]:
    listed = []
    for name, entry in sorted(entries.items()):
        spec = f"{prefix}/{name}" if prefix else name
        corruption = corruptions[entry.corruption]
        listed.append(
            {
                "key": cell_key(spec),
                "spec": spec,
                "title": short_name(name),
                "family": corruption.family,
                "level": corruption.level,
                "summary": corruption.summary,
                "severities": len(entry.values),
                "placements": None if entry.placements is None else list(entry.placements),
            }
        )
    return {"key": key, "summary": summary, "corruptions": listed}


MOST_FRAMES = 1000  # of damage on a page
ITEMS = 1000  # of a probe that are listed, those that break first


def probe_page(snapshot: Snapshot) -> dict[str, Any]:
    """Return the breaking points of a run, the smallest first, each with its frailty curve."""
    record, probe = snapshot.record, probe_of(snapshot.record)
    if probe is None:
        raise DataError("this run was not probed; `jostle probe` finds its breaking points")
    points = sorted(probe.breaking_points, key=lambda one: (one.frames is None, one.frames or 0, one.video, one.item))
    found = [frail_item(record, point) for point in points[:ITEMS]]
    return _page(
        "probe",
        "Breaking points",
        run=heading(snapshot),
        summary=describe_probe(probe),
        rule=probe.full_rule,
        threshold=probe.threshold,
        kinds=[{"key": cell_key(kind), "kind": kind, "title": short_name(kind)} for kind in probe.kinds],
        items=[
            {
                **asdict(one.point),
                "text": one.item.text,
                "key": snapshot.videos.of(one.point.video),
                "fps": one.fps,
                "clean": one.item.score,
                "curve": {"positions": one.curve.positions, "scores": one.curve.scores, "lost": one.curve.lost},
            }
            for one in found
        ],
        of=len(points),
        clean=CLEAN_EXCERPT,
        media=f"/probes/{snapshot.key}",
    )


def trial_of(snapshot: Snapshot, key: str) -> tuple[Spec | None, int, int] | None:
    """Return the damage of a key `<kind>-<severity>-<first>-<frames>` of a probe; None if there is no such."""
    probe, parts = probe_of(snapshot.record), key.rsplit("-", 3)
    if probe is None or len(parts) != 4 or not all(part.isascii() and part.isdecimal() for part in parts[1:]):
        return None
    severity, first, frames = (int(part[:9]) for part in parts[1:])
    if not 1 <= frames <= MOST_FRAMES:
        return None
    if parts[0] == CLEAN_EXCERPT:
        return None, first, frames
    kind = next((kind for kind in probe.kinds if cell_key(kind) == parts[0]), None)
    if kind is None or severity not in probe.kinds[kind]:
        return None
    return Spec.parse(f"{kind}:{severity}"), first, frames


DETECTIONS = 2000  # a side, the most confident ones
BOXES = 40  # of a frame, the most confident ones


def video_page(snapshot: Snapshot, cell: str, video: str, *, tiou: float | None = None) -> dict[str, Any]:
    """A video under a cell; a detection is right from an overlap of `tiou`, by default the benchmark's middle one."""
    key = snapshot.videos.of(video)
    content: dict[str, Any] = {
        "format": 1,
        "page": "video",
        "title": video,
        "run": heading(snapshot),
        "cell": cell_heading(snapshot, cell),
        "video": {"key": key, "id": video},
        "media": {
            "clean": f"/media/{snapshot.key}/{cell_key(CLEAN)}/{key}",
            "corrupted": None if cell == CLEAN else f"/media/{snapshot.key}/{cell_key(cell)}/{key}",
        },
        "cells": _cells(snapshot),
        **_place(snapshot, cell, video),
    }
    return content | _draw(snapshot.record, cell, video, tiou)


def _draw(record: RunRecord, cell: str, video: str, tiou: float | None) -> dict[str, Any]:
    """Return what the page draws of a video, by the kind of its view; nothing where there is none."""
    match record.view(video, cell, tiou=tiou):
        case TimelineView() as view:
            return _timeline(record, cell, view)
        case ClassScoresView() as view:
            return {"answers": {"format": 1, **asdict(view)}}
        case ItemTableView() as view:
            return {"questions": [asdict(item) for item in view.items]}
        case FrameSetsView() as view:
            return {"sets": [_frame_set(one) for one in view.sets], "k": view.k}
        case BoxesView() as view:
            frames = [_boxed_frame(frame, cell) for frame in view.frames]
            return {"objects": {"classes": view.classes, "frames": frames, "k": view.k}}
        case _:
            return {}


def _timeline(record: RunRecord, cell: str, view: TimelineView) -> dict[str, Any]:
    """Return actions and detections along a video, the frames found damaged, and how many detections are left out."""
    length = finite(view.length)
    return {
        "duration": max(view.end, length or 0.0) if view.by_sentence or length is None else length,
        "tiou": view.tiou,
        "tious": view.tious,
        "score": view.threshold,
        "by_sentence": view.by_sentence,
        "actions": [asdict(action) for action in view.actions],
        "clean": _most_confident(view.clean),
        "corrupted": [] if cell == CLEAN else _most_confident(view.corrupted),
        "found_struck": record.found_struck(view.video, cell),
        "left_out": max(len(view.clean) - DETECTIONS, len(view.corrupted) - DETECTIONS, 0),
    }


def _most_confident(detections: tuple[Detection, ...]) -> list[dict[str, Any]]:
    if len(detections) > DETECTIONS:
        least = np.sort([one.score for one in detections])[-DETECTIONS]
        detections = tuple(one for one in detections if one.score >= least)[:DETECTIONS]
    return [asdict(one) for one in detections]


def _frame_set(one: FrameSetAnswers) -> dict[str, Any]:
    return {"anchor": _frame(one.anchor), "neighbours": [_frame(frame) for frame in one.neighbours]}


def _frame(answer: FrameAnswer) -> dict[str, Any]:
    right = {"right_clean": answer.right_clean, "right_corrupted": answer.right_corrupted}
    name, number = answer.frame.rpartition("/")[2], frame_number(answer.frame)[1]
    return {**asdict(answer), **right, "name": name, "number": number}


def _boxed_frame(frame: BoxedFrame, cell: str) -> dict[str, Any]:
    return {
        "name": frame.frame.rpartition("/")[2],
        "number": frame_number(frame.frame)[1],
        "anchor": frame.anchor,
        "true": boxes_to_lists(frame.true),
        "clean": _most_confident_boxes(frame.clean),
        "corrupted": [] if cell == CLEAN else _most_confident_boxes(frame.corrupted),
    }


def _most_confident_boxes(boxes: Boxes | None) -> list[list[float]]:
    """Return rows of class, x1, y1, x2, y2 and score, the most confident first."""
    if boxes is None:
        return []
    order = np.argsort(-boxes.sure, kind="stable")[:BOXES]
    rows = np.column_stack([boxes.label, boxes.box.round(1), boxes.sure.round(4)])
    best: list[list[float]] = rows[order].tolist()
    return best


def _cells(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The cells a reader can change to, clean first, in the order of the heat map."""
    grid = grid_of(snapshot.record.cells, snapshot.record.counted)
    named = [CLEAN, *(cell for row in grid.rows for cell in row.cells.values())]
    return [{"key": cell_key(cell), "title": title_of(cell)} for cell in named]


def _place(snapshot: Snapshot, cell: str, video: str) -> dict[str, Any]:
    """Return the position of the video among those of the cell, or nothing until the run is analysed."""
    try:
        drops = snapshot.drops(cell)
    except DataError:
        drops = []
    names = [] if isinstance(drops, Waiting) else [drop.name for drop in drops]
    if isinstance(drops, Waiting) or video not in names:
        waits = isinstance(drops, Waiting)
        return {"surveyed": not waits, "rank": None, "of": None, "value": None, "before": None, "after": None}
    at = names.index(video)
    before, after = names[at - 1] if at else None, names[at + 1] if at + 1 < len(names) else None
    return {
        "surveyed": True,
        "rank": at + 1,
        "of": len(names),
        "value": {"clean": finite(drops[at].clean), "corrupted": finite(drops[at].corrupted)},
        "before": None if before is None else snapshot.videos.of(before),
        "after": None if after is None else snapshot.videos.of(after),
    }
