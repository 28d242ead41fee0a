"""Data of the viewer's page on a video under a cell, by the kind of its view."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from jostle.core.types.boxes import Boxes
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
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
from jostle.reporting.analysis.labels import grid_of
from jostle.reporting.viewer.pages import cell_heading, finite, heading, page, title_of
from jostle.reporting.viewer.runs import Snapshot, Waiting, cell_key

DETECTIONS = 2000  # a side, the most confident ones
BOXES = 40  # of a frame, the most confident ones


def video_page(snapshot: Snapshot, cell: str, video: str, *, tiou: float | None = None) -> dict[str, Any]:
    """A video under a cell; a detection is right from an overlap of `tiou`, by default the benchmark's middle one."""
    key = snapshot.videos.of(video)
    content = page(
        "video",
        video,
        run=heading(snapshot),
        cell=cell_heading(snapshot, cell),
        video={"key": key, "id": video},
        media={
            "clean": f"/media/{snapshot.key}/{cell_key(CLEAN)}/{key}",
            "corrupted": None if cell == CLEAN else f"/media/{snapshot.key}/{cell_key(cell)}/{key}",
        },
        cells=_cells(snapshot),
        **_place(snapshot, cell, video),
    )
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
