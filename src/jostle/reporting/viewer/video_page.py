"""Data of the page of a video under a cell: both videos, and the model's predictions for them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from jostle.core.types.boxes import Boxes
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.io.formats.boxes import boxes_to_lists
from jostle.metrics.frame_sets import frame_number
from jostle.reporting.analysis.answers import answers_of, frame_answers
from jostle.reporting.analysis.grid import grid_of
from jostle.reporting.analysis.timeline import Detection, operating_score, timeline_of
from jostle.reporting.viewer.run_pages import cell_heading, finite, heading, title_of
from jostle.reporting.viewer.runs import Snapshot, Waiting
from jostle.reporting.viewer.urls import cell_key

DETECTIONS = 2000  # a side, the surest ones
BOXES = 40  # of a frame, the surest ones


def video_page(snapshot: Snapshot, cell: str, video: str, *, tiou: float | None = None) -> dict[str, Any]:
    """A video under a cell.

    Args:
        tiou: the overlap from which a detection is right; by default the middle one of the benchmark.
    """
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
    makers = {"detection": _detection, "recognition": _recognition, "frames": _frames, "objects": _objects}
    return content | makers[snapshot.record.task](snapshot, cell, video, tiou)


def _detection(snapshot: Snapshot, cell: str, video: str, tiou: float | None) -> dict[str, Any]:
    record = snapshot.record
    timeline = timeline_of(record, video, cell, tiou=tiou)
    at = record.truth.videos.index(video)
    known = finite(float(record.truth.duration[at]))
    return {
        "duration": known if known is not None else timeline.end,
        "tiou": timeline.tiou,
        "tious": record.about.content.tious,
        "score": operating_score(record),
        "actions": [asdict(action) for action in timeline.actions],
        "clean": _surest(timeline.clean),
        "corrupted": [] if cell == CLEAN else _surest(timeline.corrupted),
        "found_struck": record.found_struck(video, cell),
        "left_out": max(len(timeline.clean) - DETECTIONS, len(timeline.corrupted) - DETECTIONS, 0),
    }


def _surest(detections: tuple[Detection, ...]) -> list[dict[str, Any]]:
    if len(detections) > DETECTIONS:
        least = np.sort([one.score for one in detections])[-DETECTIONS]
        detections = tuple(one for one in detections if one.score >= least)[:DETECTIONS]
    return [asdict(one) for one in detections]


def _recognition(snapshot: Snapshot, cell: str, video: str, _: float | None) -> dict[str, Any]:
    return {"answers": answers_of(snapshot.record, video, cell).to_dict()}


def _frames(snapshot: Snapshot, cell: str, video: str, _: float | None) -> dict[str, Any]:
    sets = []
    for one in frame_answers(snapshot.record, video, cell):
        content = one.to_dict()
        for frame in (content["anchor"], *content["neighbours"]):
            frame["name"] = frame["frame"].rpartition("/")[2]
            frame["number"] = frame_number(frame["frame"])[1]
        sets.append(content)
    return {"sets": sets, "k": snapshot.record.about.content.k}


def _objects(snapshot: Snapshot, cell: str, video: str, _: float | None) -> dict[str, Any]:
    """Return the boxes in the evaluated frames of a video: true, detected clean, detected in the cell."""
    record = snapshot.record
    frames = [frame for frame in record.objects.frames if frame.rpartition("/")[0] == video]
    boxes = {name: record.boxes(name)[0] for name in dict.fromkeys((CLEAN, cell))}
    content = [
        {
            "name": frame.rpartition("/")[2],
            "number": frame_number(frame)[1],
            "anchor": frame in record.objects.sets,
            "true": boxes_to_lists(record.objects.boxes[frame]),
            "clean": _surest_boxes(boxes[CLEAN].get(frame)),
            "corrupted": [] if cell == CLEAN else _surest_boxes(boxes[cell].get(frame)),
        }
        for frame in frames
    ]
    return {"objects": {"classes": record.objects.classes, "frames": content, "k": record.about.content.k}}


def _surest_boxes(boxes: Boxes | None) -> list[list[float]]:
    """Return rows of class, x1, y1, x2, y2 and score, the most confident first."""
    if boxes is None:
        return []
    order = np.argsort(-boxes.sure, kind="stable")[:BOXES]
    rows = np.column_stack([boxes.label, boxes.box.round(1), boxes.sure.round(4)])
    surest: list[list[float]] = rows[order].tolist()
    return surest


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
