"""Mending in front of recognisers: clips damaged in part and throughout, as they are, mended, and with known damage.

    python -m studies.mending_recognition WORK [--clips 15] [--jobs 12]

The recognisers and the inspector are those that come with jostle. A clip is corrupted once for all of them; WORK's
`clips.jsonl` has a line for each, so that a study that was stopped goes on, and `recognition.jsonl` the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.corruptions.engine.stages import gather, origins
from jostle.datasets.puppets.film import CLASSES
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.sampling import Sampling, sample_frames
from jostle.features.caches import CachedFrames
from jostle.features.interpolation import nearest_undamaged
from jostle.models.weights.packaged import TREATMENTS
from studies import harness
from studies.feature_states import AS_IS, KNOWN, MENDED, WAYS, counts
from studies.recognition import SHIPPED_RECOGNISERS

SETTINGS = harness.load_settings("mending")["recognition"]
KINDS: list[str] = SETTINGS["kinds"]
PLACES: dict[str, str] = SETTINGS["places"]


@dataclass(frozen=True)
class TestClip:
    """Clip that recognisers are tested on."""

    name: str
    path: str
    label: int


def list_cells() -> tuple[Cell, ...]:
    """Return the clean cell, and every kind in every place."""
    corrupted = [
        Cell(f"{kind} {word}", (f"{kind}:{SETTINGS['severity']}",), place, "corrupted", True)
        for kind in KINDS
        for word, place in PLACES.items()
    ]
    return (CLEAN_CELL, *corrupted)


def main() -> None:
    """Measure the clips that are missing, and sum up all of them."""
    arguments = harness.parse_arguments(
        __doc__, clips=15, classes=len(CLASSES), recognisers=SHIPPED_RECOGNISERS, weights=TREATMENTS, jobs=harness.CORES
    )
    from jostle.training.clips import list_videos
    from jostle.training.recognition_config import ClipsConfig

    _, videos = list_videos(ClipsConfig(jobs=arguments.jobs), "test", seeds=(0,))
    chosen = [
        TestClip(video.name, str(video.path), video.label)
        for number in range(arguments.clips)  # class by class, so that a part is a fair sample
        for label in range(arguments.classes)
        for video in [v for v in videos if v.label == label][number : number + 1]
    ]
    lines = arguments.work / "clips.jsonl"
    models = tuple((name, weights) for name in arguments.recognisers for weights in arguments.weights)
    measure = partial(measure_clip, models=models)
    failed = harness.run_grid(chosen, measure, lines, at_once=arguments.jobs, summarise=lambda record: "")
    harness.write_records(arguments.work / "recognition.jsonl", sum_clips(harness.read_records(lines)))
    harness.finish(failed)


@cache
def load_models(models: tuple[tuple[str, str], ...]) -> tuple[Any, dict[str, Any]]:
    """Load finders of damaged frames, by way, and the recognisers."""
    import cv2

    from jostle.mending.loading import MendingOptions
    from jostle.models.loading.recognisers import load_recogniser

    cv2.setNumThreads(1)
    device = harness.get_device()
    finders = {way: MendingOptions(mend).get(device) for way, mend in WAYS.items() if mend is not None}
    return finders, {
        f"{name} {weights}": load_recogniser(name, weights=weights, device=device) for name, weights in models
    }


def measure_clip(clip: TestClip, models: tuple[tuple[str, str], ...]) -> harness.Record:
    """Return the answer of each recogniser for a clip, in every cell and way."""
    finders, recognisers = load_models(models)
    job = VideoJob(clip.name, Path(clip.path), list_cells(), seed=0)
    inputs: dict[bytes, tuple[int, Frames]] = {}  # frames by their bytes; many ways and cells give the same
    place: dict[str, dict[str, int]] = {way: {} for way in WAYS}
    detections: dict[str, list[int]] = {}
    with open_footage(job) as footage:
        spec, rng = next(iter(recognisers.values())).spec, rng_for(0, "clips", clip.name)
        (row,) = sample_frames(Sampling(spread="even"), spec, footage.clean.pts, footage.clean.fps, rng)
        by_way = {way: finder.finder_for(footage.clean) for way, finder in finders.items()}
        for cell in job.cells:
            corrupted = footage.under(cell)
            top, came_from = CachedFrames(corrupted), origins(corrupted)
            damaged = {way: finder.find_damaged(top, came_from) for way, finder in by_way.items()}
            detections[cell.name] = counts(damaged[MENDED], damaged[KNOWN])
            for way in WAYS:
                sampled = gather(top, row if way == AS_IS else nearest_undamaged(damaged[way])[row])
                place[way][cell.name] = inputs.setdefault(sampled.tobytes(), (len(inputs), sampled))[0]
    frames = np.stack([sampled for _, sampled in inputs.values()])
    answers = {name: recogniser(frames).argmax(1).tolist() for name, recogniser in recognisers.items()}
    return {"told": answers, "place": place, "found": detections}


def sum_clips(clips: list[harness.Record]) -> list[harness.Record]:
    """Return the accuracy of each recogniser in every cell and way, and the counts of detected frames."""
    if not clips:
        return []
    first, *_ = clips
    records: list[harness.Record] = []
    for name in first["told"]:
        scores: dict[str, dict[str, float]] = {way: {} for way in WAYS}
        for way in WAYS:
            for cell in first["place"][way]:
                right = [clip["told"][name][clip["place"][way][cell]] == clip["run"]["label"] for clip in clips]
                scores[way][cell] = round(float(np.mean(right)), 5)
        model, weights = name.split()
        run = {"recogniser": model, "weights": weights}
        records.append({"study": "recognition", "run": run, "clips": len(clips), "scores": scores})
    detections = {cell: np.sum([clip["found"][cell] for clip in clips], 0).tolist() for cell in first["found"]}
    return [*records, {"study": "recognition found", "found": detections}]


if __name__ == "__main__":
    harness.run_module("studies.mending_recognition")
