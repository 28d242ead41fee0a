"""Reconstruction of a video as the model received it: which frames a cell corrupts, and their pixels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from jostle.core.types.clip import Times
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.placement import parse_placement as parse_placement
from jostle.corruptions.engine.spec import Spec
from jostle.errors import DataError, JostleError
from jostle.evaluation.inference.footage import Footage, open_footage
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN, CLEAN_CELL, Cell
from jostle.evaluation.results.record import RunRecord

WHOLE = "everywhere"


def cell_of(record: RunRecord, name: str) -> Cell:
    """A cell of a run, ready to be applied.

    Raises:
        DataError: if this version of jostle does something else under that name than the run did.
    """
    if name == CLEAN:
        return CLEAN_CELL
    known = record.about.content.cell(name)
    if known is None:
        has = ", ".join(one.cell for one in record.about.content.cells)
        raise DataError(f"{record.folder}: no cell {name!r}; it has {has}")
    done = known.done
    try:
        specs = [Spec.parse(step.spec) for step in done]
        for step in done:
            parse_placement(step.placement)
    except JostleError as error:
        raise DataError(f"{record.folder}: {name} cannot be made again: {error}", fault="F110") from None
    for spec, step in zip(specs, done, strict=True):
        now = [spec.entry.corruption, _plain(spec.value), _plain(dict(spec.entry.options))]
        if now != [step.corruption, _plain(step.value), _plain(step.options)]:
            raise DataError(f"{record.folder}: {spec} stood for something else in the version that ran it")
    places = {step.placement for step in done}
    own = [spec.placement for spec in specs] == [step.placement for step in done]
    return Cell(name, tuple(map(str, specs)), None if own else places.pop(), known.group, known.counted)


def order_for(record: RunRecord, video: str, cell: str) -> VideoJob:
    """Return the job that a worker was given for a video.

    Raises:
        DataError: if the video is not where it was, or the run does not record where the cell applies.
    """
    path = record.sources.get(video)
    if path is None or not path.exists():
        raise DataError(f"{video}: the video is no longer at {path}" if path else f"{video}: no video of this run")
    cells, actions = (cell_of(record, cell),), _actions(record, video, cell)
    return VideoJob(video, path, cells, record.about.seed, actions, fps=record.rates.get(video))


@contextmanager
def screened(record: RunRecord, video: str, cell: str) -> Iterator[tuple[Footage, Cell]]:
    """A video of a run, open: `footage.clean` are its frames, `footage.under(cell)` those that the model saw."""
    order = order_for(record, video, cell)
    with open_footage(order) as footage:
        yield footage, order.cells[0]


def corrupted_mask(record: RunRecord, video: str, cell: str, pts: Times, fps: Fraction) -> Mask:
    """Return a (frames,) mask of the frames of a video, at `pts` seconds, that a cell corrupts."""
    selected = cell_of(record, cell)
    actions = _actions(record, video, cell)
    timeline = Timeline.of(pts, fps, actions, seed=record.about.seed, video_id=video)
    corrupted = np.zeros(len(pts), np.bool_)
    for mask in masks_for(selected.parsed, selected.placement, timeline):
        corrupted |= mask
    return corrupted


def spans_of(mask: Mask, pts: Times, fps: Fraction) -> list[tuple[float, float]]:
    """Struck frames as half-open stretches in seconds.

    >>> spans_of(np.array([False, True, True, False]), np.array([0.0, 0.5, 1.0, 1.5]), Fraction(2))
    [(0.5, 1.5)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    display_ends = np.append(pts[1:], pts[-1:] + float(1 / fps))
    return [(float(pts[a]), float(display_ends[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _actions(record: RunRecord, video: str, cell: str) -> Segments | None:
    known = record.about.content.cell(cell)
    if known is None or all(step.placement == WHOLE for step in known.done):
        return None
    spans = record.task.truth.spans
    if spans is None:
        raise DataError(
            f"{cell}: this run does not say where in {video} the action is; delete {record.folder / 'truth.json'}, and "
            "the same `jostle run` writes it anew"
        )
    return spans.get(video)


def _plain(value: Any) -> Any:
    """A value as JSON would give it back."""
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value
