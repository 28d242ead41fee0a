"""Other ways to use the knowledge of which frames were struck, the frames being known: what each leaves of the score.

    python -m studies.mending_ways [--films 4] [--jobs 2]

The features of a film are made once in every cell, and each way begins from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.columns import Flags
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.stages import PipelineSource
from jostle.evaluation.inference.feature_detection import FeatureGrid, submit_detection
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.features.engine import VideoFeatures
from jostle.features.interpolation import RowInterpolation, interpolate_rows, nearest_undamaged
from jostle.mending.damage_finders import Mending
from jostle.mending.repair import MendedSource
from studies.detection import DETECTORS, EXTRACTOR, load_trained
from studies.harness import parse_arguments, use_one_thread
from studies.mending import films_of

RESULTS = Path(__file__).with_name("mending_ways.jsonl")
BENCHMARK = "puppets-c"
Features = npt.NDArray[np.float32]
Find = Callable[[Features], Segments]
STRIDE, WINDOW = 4, 16
TAUGHT = 4  # training films that the learned fill-in is fitted to
LONGEST = 24  # frames of a gap that it is fitted to
WAYS = (
    "as is",
    "line, seen",
    "learned, seen",
    "pictures",
    "line, rows",
    "hold, rows",
    "nothing, rows",
    "left out, rows",
    "weighted scores",
)


@cache
def networks() -> tuple[Any, dict[str, Any]]:
    from jostle.models.checkpoints import read_weights
    from jostle.models.extractors.extractor import load_extractor
    from jostle.models.weights.shipped import trained_weights, weights_file

    detectors = {
        name: load_trained(f"{name}_puppets", trained_weights(f"{name}_puppets", "clean")).eval() for name in DETECTORS
    }
    return load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR))), detectors


class Taught:
    """A fill-in learned from clean video: weights of two sound frames on each side, by length of the gap and place."""

    def __init__(self, seen: list[Features]) -> None:
        self._seen = seen

    @cache  # noqa: B019  (one of them lives as long as the process)
    def weights(self, length: int, place: int) -> npt.NDArray[np.float64]:
        """(4,) by least squares over all places of the films, all features alike."""
        left, right = [], []
        for seen in self._seen:
            last = np.arange(1, len(seen) - length - 2)
            around = [seen[last - 1], seen[last], seen[last + length + 1], seen[last + length + 2]]
            left.append(np.stack([one.ravel() for one in around], 1).astype(np.float64))
            right.append(seen[last + 1 + place].ravel().astype(np.float64))
        rows, wanted = np.concatenate(left), np.concatenate(right)
        found: npt.NDArray[np.float64] = np.linalg.solve(rows.T @ rows, rows.T @ wanted)
        return found

    def filled(self, seen: Features, struck: Flags) -> Features:
        """What was seen with struck frames filled in; on a line where a side has no two sound frames."""
        out, bridge = interpolate_rows(seen, struck), RowInterpolation.over(struck)
        for t, a, b in zip(bridge.lost, bridge.before, bridge.after, strict=True):
            inside = a >= 1 and b + 1 < len(seen) and a < t < b and b - a - 1 <= LONGEST
            if inside and not struck[a - 1] and not struck[b + 1]:
                weights = self.weights(int(b - a - 1), int(t - a - 1))
                out[t] = (weights @ seen[[a - 1, a, b, b + 1]].astype(np.float64)).astype(np.float32)
        return out


@cache
def taught() -> Taught:
    from jostle.api.catalogue import DataSpec
    from jostle.io.video.decode import Reader

    data = DataSpec(None, None, "training", None).load(benchmarks[BENCHMARK])
    seen = []
    for path in list(data.videos.values())[:TAUGHT]:
        with Reader(path) as reader:
            made = VideoFeatures(reader, networks()[0]).clean().seen
            assert made is not None
            seen.append(made)
    return Taught(seen)


def left_out(find: Find, features: Features, lost: Flags, fps: float) -> Segments:
    """Rows that a struck frame is in are masked everywhere: as if they were not there; times are put back after."""
    sound = np.flatnonzero(~lost)
    found = find(features[sound])
    here, there = ((rows * STRIDE + WINDOW / 2) / fps for rows in (np.arange(len(sound)), sound))

    def back(times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        inside = np.interp(times, here, there)
        beyond = np.maximum(times - here[-1], 0) + np.minimum(times - here[0], 0)
        return inside + beyond

    ends = np.stack([back(found.start), back(found.end)])
    return Segments(np.maximum(ends[0], 0), ends[1], found.label, found.score, found.classes)


def weighted(found: Segments, lost: Flags, fps: float) -> Segments:
    """Scores by the share of a segment that no struck frame is in."""
    assert found.score is not None
    times = (np.arange(len(lost)) * STRIDE + WINDOW / 2) / fps
    inside = (times >= found.start[:, None]) & (times <= found.end[:, None])
    share = (inside & lost).sum(1) / np.maximum(inside.sum(1), 1)
    return Segments(found.start, found.end, found.label, found.score * (1 - share), found.classes)


def looked_at(film: tuple[str, Path], segments: Segments) -> dict[tuple[str, str, str], Segments]:
    """What is found in a film by each detector, in each way and cell."""
    from jostle.io.video.decode import Reader

    (name, path), (extractor, detectors) = film, networks()
    found: dict[tuple[str, str, str], Segments] = {}
    with Reader(path) as reader:
        known = {"video_id": name, "segments": segments, "path": reader.coded_path, "bit_rate": reader.facts.bit_rate}
        plain = VideoFeatures(reader, extractor, **known)
        mended = VideoFeatures(reader, extractor, clean=plain.clean(), finder=_Kept(), **known)
        rows = np.arange(len(plain))[:, None] * STRIDE + np.arange(WINDOW)
        for cell in select_cells(benchmarks[BENCHMARK]):
            clean = cell.name == CLEAN
            as_is = plain.clean() if clean else plain.under(cell.parsed, cell.placement)
            line = mended.clean() if clean else mended.under(cell.parsed, cell.placement)
            assert as_is.seen is not None
            assert line.mended is not None
            struck, seen = line.mended.damaged, as_is.seen
            lost = struck[rows].any(1)
            pictures = np.array(seen)
            if struck.any():
                shown = MendedSource(_Kept.last, struck, "blend")
                frames = [shown.block(t, t + 1)[0] for t in np.flatnonzero(struck)]
                pictures[struck] = extractor.see(np.stack(frames))
            features: dict[str, Features] = {
                "as is": as_is.features,
                "line, seen": line.features,
                "learned, seen": extractor.join(taught().filled(seen, struck)[rows]),
                "pictures": extractor.join(pictures[rows]),
                "line, rows": interpolate_rows(as_is.features, lost),
                "hold, rows": as_is.features[nearest_undamaged(lost)],
                "nothing, rows": np.where(lost[:, None], np.float32(0), as_is.features),
            }
            for model, detector in detectors.items():
                facts = {"name": name, "fps": plain.fps, "duration": reader.end_s}
                find = partial(_found, detector, facts)
                for way, some in features.items():
                    found[model, way, cell.name] = find(some)
                found[model, "left out, rows", cell.name] = left_out(find, as_is.features, lost, plain.fps)
                scored = weighted(found[model, "as is", cell.name], lost, plain.fps)
                found[model, "weighted scores", cell.name] = scored
    return found


def _found(detector: Any, facts: dict[str, Any], features: Features) -> Segments:
    return submit_detection(detector, np.array(features, np.float32), FeatureGrid(STRIDE, WINDOW), **facts)()


class _Kept:
    """Frames are known, and the corrupted video stays at hand for those who look at its pictures."""

    name, fingerprint = "known", None
    last: Any = None

    def of(self, clean: PipelineSource) -> _Kept:
        return self

    def find_damaged(self, top: PipelineSource, came_from: npt.NDArray[np.int64]) -> Flags:
        _Kept.last = top
        return Mending().finder_for(top).find_damaged(top, came_from)


def main() -> None:
    arguments = parse_arguments(__doc__, folder=False, films=4, jobs=1)
    data = films_of(jostle.load_dataset("puppets", subset="test", jobs=arguments.jobs), arguments.films)
    films = list(data.videos.items())
    actions = data.truth.actions
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn"), initializer=use_one_thread) as pool:
        looked = list(pool.map(looked_at, films, [actions[name] for name, _ in films]))
    truth = data.truth.of_videos([name for name, _ in films])
    records = []
    for model in DETECTORS:
        for way in WAYS:
            cells = {}
            for cell in select_cells(benchmarks[BENCHMARK]):
                found = {name: one[model, way, cell.name] for (name, _), one in zip(films, looked, strict=True)}
                scored = jostle.score(Predictions.from_segments(found), truth, protocol="thumos14", tious=(0.5,))
                cells[cell.name] = float(scored.map[0])
            corrupted = float(np.mean([value for name, value in cells.items() if name != CLEAN]))
            run = {"detector": model, "way": way, "films": len(films)}
            records.append({"run": run, "relative": corrupted / cells[CLEAN], "cells": cells})
    RESULTS.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


if __name__ == "__main__":
    from studies import mending_ways  # by this name worker processes find it

    mending_ways.main()
