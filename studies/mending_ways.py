"""Other ways to use known damaged frames: robustness of detectors with each.

    python -m studies.mending_ways [--films 4] [--jobs 2]

The features of a film are extracted once in every cell; every way starts from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.columns import Flags
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video import VideoSource
from jostle.evaluation.inference.feature_detection import FeatureGrid, submit_detection
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.features.interpolation import RowInterpolation, interpolate_rows, nearest_undamaged
from jostle.features.video import VideoFeatures
from jostle.mending.finders.known import KnownDamage
from jostle.mending.repair import MendedSource
from studies.detection import DETECTORS, EXTRACTOR, load_trained
from studies.feature_states import STRIDE, WINDOW
from studies.harness import STUDIES, Record, map_in_processes, parse_arguments, run_module, write_records
from studies.mending import select_films

RESULTS = STUDIES / "mending_ways.jsonl"
BENCHMARK = "puppets-c"
Features = npt.NDArray[np.float32]
Find = Callable[[Features], Segments]
Detections = dict[tuple[str, str, str], Segments]  # by detector, way and cell
TRAINING_FILMS = 4  # that interpolation is fitted to
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
def load_networks() -> tuple[Any, dict[str, Any]]:
    """Load the shipped extractor and detectors."""
    from jostle.models.checkpoints import read_weights
    from jostle.models.loading.extractors import load_extractor
    from jostle.models.weights.packaged import trained_weights, weights_file

    detectors = {
        name: load_trained(f"{name}_puppets", trained_weights(f"{name}_puppets", "clean")).eval() for name in DETECTORS
    }
    return load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR))), detectors


class LearnedInterpolation:
    """Interpolation learned from clean video: weights of two undamaged frames on each side, by gap length and position.

    Args:
        films: features of the frames of each training film.
    """

    def __init__(self, films: list[Features]) -> None:
        self._films = films

    @cache  # noqa: B019  (one of them lives as long as the process)
    def weights(self, length: int, position: int) -> npt.NDArray[np.float64]:
        """Return (4,) weights by least squares over all gaps of the films, the same for all features."""
        left, right = [], []
        for features in self._films:
            last = np.arange(1, len(features) - length - 2)
            around = [features[last - 1], features[last], features[last + length + 1], features[last + length + 2]]
            left.append(np.stack([one.ravel() for one in around], 1).astype(np.float64))
            right.append(features[last + 1 + position].ravel().astype(np.float64))
        rows, target = np.concatenate(left), np.concatenate(right)
        weights: npt.NDArray[np.float64] = np.linalg.solve(rows.T @ rows, rows.T @ target)
        return weights

    def fill(self, features: Features, damaged: Flags) -> Features:
        """Replace features of damaged frames; linearly where a side lacks two undamaged frames."""
        out, bridge = interpolate_rows(features, damaged), RowInterpolation.over(damaged)
        for t, a, b in zip(bridge.lost, bridge.before, bridge.after, strict=True):
            inside = a >= 1 and b + 1 < len(features) and a < t < b and b - a - 1 <= LONGEST
            if inside and not damaged[a - 1] and not damaged[b + 1]:
                weights = self.weights(int(b - a - 1), int(t - a - 1))
                out[t] = (weights @ features[[a - 1, a, b, b + 1]].astype(np.float64)).astype(np.float32)
        return out


@cache
def fit_interpolation() -> LearnedInterpolation:
    """Fit interpolation to the first training films."""
    from jostle.api.catalogue import DataSpec
    from jostle.io.video.decode import Reader

    data = DataSpec(None, None, "training", None).load(benchmarks[BENCHMARK])
    films = []
    for path in list(data.videos.values())[:TRAINING_FILMS]:
        with Reader(path) as reader:
            features = VideoFeatures(reader, load_networks()[0]).clean().seen
            assert features is not None
            films.append(features)
    return LearnedInterpolation(films)


def leave_out(find: Find, features: Features, lost: Flags, fps: float) -> Segments:
    """Detect without the rows that contain a damaged frame, and map times back to the whole video."""
    intact = np.flatnonzero(~lost)
    segments = find(features[intact])
    here, there = ((rows * STRIDE + WINDOW / 2) / fps for rows in (np.arange(len(intact)), intact))

    def back(times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        inside = np.interp(times, here, there)
        beyond = np.maximum(times - here[-1], 0) + np.minimum(times - here[0], 0)
        return inside + beyond

    ends = np.stack([back(segments.start), back(segments.end)])
    return Segments(np.maximum(ends[0], 0), ends[1], segments.label, segments.score, segments.classes)


def weight_scores(segments: Segments, lost: Flags, fps: float) -> Segments:
    """Weight the score of each segment by its share of rows without damage."""
    assert segments.score is not None
    times = (np.arange(len(lost)) * STRIDE + WINDOW / 2) / fps
    inside = (times >= segments.start[:, None]) & (times <= segments.end[:, None])
    share = (inside & lost).sum(1) / np.maximum(inside.sum(1), 1)
    return replace(segments, score=segments.score * (1 - share))


def detect_film(film: tuple[str, Path, Segments]) -> Detections:
    """Return the segments of a film by detector, way and cell."""
    from jostle.io.video.decode import Reader

    (name, path, actions), (extractor, detectors) = film, load_networks()
    detections: Detections = {}
    with Reader(path) as reader:
        known: dict[str, Any] = {
            "video_id": name,
            "segments": actions,
            "path": reader.coded_path,
            "bit_rate": reader.facts.bit_rate,
        }
        plain = VideoFeatures(reader, extractor, **known)
        mended = VideoFeatures(reader, extractor, clean=plain.clean(), finder=RecordingOracle(), **known)
        rows = np.arange(len(plain))[:, None] * STRIDE + np.arange(WINDOW)
        for cell in select_cells(benchmarks[BENCHMARK]):
            clean = cell.name == CLEAN
            as_is = plain.clean() if clean else plain.under(cell.parsed, cell.placement)
            line = mended.clean() if clean else mended.under(cell.parsed, cell.placement)
            assert as_is.seen is not None
            assert line.mended is not None
            damaged, frame_features = line.mended.damaged, as_is.seen
            lost = damaged[rows].any(1)
            repaired = np.array(frame_features)
            if damaged.any():
                video = MendedSource(RecordingOracle.last, damaged, "blend")
                frames = [video.block(t, t + 1)[0] for t in np.flatnonzero(damaged).tolist()]
                repaired[damaged] = extractor.see(np.stack(frames))
            features: dict[str, Features] = {
                "as is": as_is.features,
                "line, seen": line.features,
                "learned, seen": extractor.join(fit_interpolation().fill(frame_features, damaged)[rows]),
                "pictures": extractor.join(repaired[rows]),
                "line, rows": interpolate_rows(as_is.features, lost),
                "hold, rows": as_is.features[nearest_undamaged(lost)],
                "nothing, rows": np.where(lost[:, None], np.float32(0), as_is.features),
            }
            for model, detector in detectors.items():
                find = partial(_detect, detector, {"name": name, "fps": plain.fps, "duration": reader.end_s})
                own = {way: find(some) for way, some in features.items()}
                own["left out, rows"] = leave_out(find, as_is.features, lost, plain.fps)
                own["weighted scores"] = weight_scores(own["as is"], lost, plain.fps)
                detections |= {(model, way, cell.name): segments for way, segments in own.items()}
    return detections


def _detect(detector: Any, facts: dict[str, Any], features: Features) -> Segments:
    return submit_detection(detector, np.array(features, np.float32), FeatureGrid(STRIDE, WINDOW), **facts)()


class RecordingOracle:
    """Oracle of the damaged frames, which keeps the corrupted video so that its pictures can be mended."""

    name, fingerprint = "known", None
    last: Any = None

    def finder_for(self, clean: VideoSource) -> RecordingOracle:
        return self

    def find_damaged(self, top: VideoSource, came_from: npt.NDArray[np.int64]) -> Flags:
        RecordingOracle.last = top
        return KnownDamage().finder_for(top).find_damaged(top, came_from)


def main() -> None:
    """Measure every way, and write the records beside this file."""
    arguments = parse_arguments(__doc__, folder=False, films=4, jobs=1)
    data = select_films(jostle.load_dataset("puppets", subset="test", jobs=arguments.jobs), arguments.films)
    actions, names = data.truth.actions, list(data.videos)
    films = [(name, path, actions[name]) for name, path in data.videos.items()]
    detections = dict(zip(names, map_in_processes(detect_film, films, arguments.jobs), strict=True))
    truth = data.truth.of_videos(names)
    write_records(RESULTS, [score_way(*key, detections, truth) for key in product(DETECTORS, WAYS)])


def score_way(model: str, way: str, detections: Mapping[str, Detections], truth: Truth) -> Record:
    """Score a way of a detector in every cell."""
    cells = {}
    for cell in select_cells(benchmarks[BENCHMARK]):
        segments = {name: one[model, way, cell.name] for name, one in detections.items()}
        score = jostle.score(Predictions.from_segments(segments), truth, protocol="thumos14", tious=(0.5,))
        cells[cell.name] = float(score.map[0])
    corrupted = float(np.mean([value for name, value in cells.items() if name != CLEAN]))
    run = {"detector": model, "way": way, "films": len(detections)}
    return {"run": run, "relative": corrupted / cells[CLEAN], "cells": cells}


if __name__ == "__main__":
    run_module("studies.mending_ways")
