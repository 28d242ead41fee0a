"""What helps a detector on film: FrameDrop, adaptation of its extractor, mending, and some of them together.

    python -m studies.film_detection WORK weights features --networks lite0 --subsets training --footage FOOTAGE
    python -m studies.film_detection_adapted WORK detectors statistics features study record --footage FOOTAGE

`detectors` and `features` need a GPU. The benchmark is `studies/film_detection_adapted.toml`: four corruptions of whole
videos, and two of a tenth of each action. Features of a video are made once for each way, and serve every detector.
Steps and runs that are done already are skipped.
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.selection import load_benchmark, select_cells
from jostle.parallel.workers import map_unordered
from studies.film_detection import (
    DETECTORS,
    SEEDS,
    FilmDetectorRun,
    load_film_extractor,
    load_films,
    trained_detector,
    truth_files,
)
from studies.harness import (
    CORES,
    STUDIES,
    GridRun,
    Record,
    finish,
    parse_arguments,
    read_records,
    run_grid,
    use_one_thread,
)
from studies.mending_features import find_in_states

STEPS = ("detectors", "statistics", "features", "study", "puppets", "record")
RECIPE = STUDIES / "film_detection_adapted.toml"
RESULTS = STUDIES / "film_detection_adapted.jsonl"
PUPPETS = STUDIES / "puppet_detection_adapted.jsonl"
CELLS: dict[str, Cell] = {cell.name: cell for cell in select_cells(load_benchmark(RECIPE))}
TREATMENTS = ("clean", "drop")
NETWORK = "lite0"
TIOU = 0.5
VIDEOS = 12  # of the test videos
SOURCE_VIDEOS = 12  # of the training videos, for statistics of the source
STATISTICS = "film_vitta.npz"
read_results = partial(read_records, RESULTS)
read_puppets = partial(read_records, PUPPETS)


@dataclass(frozen=True)
class Way:
    """A way to make features: with or without mending, as the extractor is or adapted to the video."""

    mend: bool = False
    method: str | None = None
    protocol: Any = "episodic"


WAYS = {
    "as is": Way(),
    "bn, episodic": Way(method="bn"),
    "mended": Way(mend=True),
    "mended, bn, episodic": Way(mend=True, method="bn"),
    "bn, online": Way(method="bn", protocol="online"),
    "vitta, online": Way(method="vitta", protocol="online"),
}


@dataclass(frozen=True)
class HelpedRun(GridRun):
    """A trained detector on the features of a way."""

    detector: str
    treatment: str
    way: str
    seed: int

    @property
    def trained(self) -> FilmDetectorRun:
        """The run that trained the detector."""
        return FilmDetectorRun(self.detector, NETWORK, self.treatment, self.seed)


def study_runs() -> list[HelpedRun]:
    """Return every run."""
    return [
        HelpedRun(detector, treatment, way, seed)
        for way in WAYS
        for seed in SEEDS
        for treatment in TREATMENTS
        for detector in DETECTORS
    ]


def puppet_runs() -> list[HelpedRun]:
    """Return the runs on puppets, of a detector with the weights that come with jostle."""
    ways = [way for way in WAYS if "online" not in way]
    return [HelpedRun("actionformer", treatment, way, 0) for way in ways for treatment in TREATMENTS]


def main() -> None:
    """Do the steps that are arguments."""
    arguments = parse_arguments(
        __doc__, STEPS, footage=Path, jobs=CORES, at_once=CORES, videos=VIDEOS, seeds=list(SEEDS), ways=tuple(WAYS)
    )
    work, data = arguments.work, load_films(arguments.footage, arguments.jobs)
    truths = truth_files(data)
    runs = [run for run in study_runs() if run.seed in arguments.seeds and run.way in arguments.ways]
    if "detectors" in arguments.steps:
        missing = list(dict.fromkeys(run.trained for run in runs))
        with ProcessPoolExecutor(arguments.at_once, multiprocessing.get_context("spawn"), use_one_thread) as pool:
            list(pool.map(partial(train_missing, work=work, truth=truths["training"]), missing))
    actions = data["test"].truth.actions
    videos = {
        name: VideoJob(name, Path(path), (), 0, segments=actions[name])
        for name, path in list(data["test"].videos.items())[: arguments.videos]
    }
    if "statistics" in arguments.steps:
        source = [VideoJob(name, Path(path), (CLEAN_CELL,), 0) for name, path in data["training"].videos.items()]
        write_statistics(source[:SOURCE_VIDEOS], work)
    if "features" in arguments.steps:
        make_adapted_features(videos, arguments.ways, work, arguments.jobs)
    if "study" in arguments.steps:
        measure = partial(measure_run, work=work, truths=truths, videos=tuple(videos))
        finish(run_grid(runs, measure, work / RESULTS.name, at_once=arguments.at_once, summarise=summarise))
    if "puppets" in arguments.steps:
        measure = partial(measure_puppets, work=work, jobs=arguments.jobs)
        finish(run_grid(puppet_runs(), measure, work / PUPPETS.name, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        for path in (RESULTS, PUPPETS):
            shutil.copy(work / path.name, path)


def train_missing(run: FilmDetectorRun, work: Path, truth: Path) -> None:
    """Train a detector unless its weights are there."""
    begin = time.monotonic()
    trained_detector(run, work, truth)
    print(f"{run}: {time.monotonic() - begin:.0f} s", flush=True)


@dataclass
class FeatureKeeper:
    """Detector that finds nothing and keeps the features it is given, one array a cell in their order."""

    features: list[Any] = field(default_factory=list)

    def detect(self, features: Any, **facts: Any) -> Segments:
        """Keep the features."""
        self.features.append(np.array(features, np.float32))
        empty = np.empty(0)
        return Segments(empty, empty, empty, empty)


def load_way(way: Way, work: Path) -> Any:
    """Return a predictor whose detector is a `FeatureKeeper`, and that keeper."""
    from jostle.evaluation.inference.adaptation import AdaptedFeaturePredictor, OnlineStates
    from jostle.evaluation.inference.detection import FeatureDetectionPredictor
    from jostle.mending.loading import MendingOptions
    from jostle.models.adaptation.adapted_extractor import AdaptedExtractor
    from jostle.models.adaptation.options import AdaptationOptions
    from jostle.models.adaptation.state_files import read_state

    keeper = FeatureKeeper()
    mending = MendingOptions("jostle").get("cpu") if way.mend else None
    plain = FeatureDetectionPredictor(load_film_extractor(NETWORK, work), keeper, mending=mending)
    if way.method is None:
        return plain, keeper
    stored = read_state(work / STATISTICS) if way.method == "vitta" else None
    options = AdaptationOptions(way.method, way.protocol, source=None if stored is None else stored[1])
    adapted = AdaptedExtractor(plain.extractor, options)
    return AdaptedFeaturePredictor(plain, adapted, OnlineStates(way.protocol == "online")), keeper


def write_statistics(source: Sequence[VideoJob], work: Path) -> None:
    """Measure what ViTTA needs to know of clean videos."""
    from jostle.models.adaptation.state_files import write_state

    if not (work / STATISTICS).exists():
        predictor, _ = load_way(WAYS["vitta, online"], work)
        write_state(work / STATISTICS, "", predictor.measure_source(source))


Order = tuple[str, tuple[VideoJob, ...]]  # a way, and videos that one process takes in this order


def make_adapted_features(videos: Mapping[str, VideoJob], ways: Sequence[str], work: Path, jobs: int) -> None:
    """Write the features of every video in every cell and way; online, the videos of a cell follow each other."""
    from jostle.evaluation.runner.online_run import order_videos

    orders: list[Order] = []
    for way in ways:
        if WAYS[way].protocol == "online":
            order = [videos[name] for name in order_videos(list(videos), 0)]
            orders += [(way, tuple(replace(job, cells=(cell,)) for job in order)) for cell in CELLS.values()]
        else:
            orders += [(way, (replace(job, cells=tuple(CELLS.values())),)) for job in videos.values()]
    missing = [order for order in orders if not all(path.exists() for path in _files(order, work))]
    missing.sort(key=lambda order: -len(order[1]))  # the long ones first
    begin = time.monotonic()
    for count, (order, _) in enumerate(map_unordered(partial(_maker, work), missing, jobs), 1):
        print(f"{count} of {len(missing)}, {time.monotonic() - begin:.0f} s, {order[0]}", flush=True)


def feature_file(work: Path, way: str, cell: str, video: str) -> Path:
    """Return the path of the features of a video."""
    folder = f"{way.replace(', ', '-').replace(' ', '-')}-{list(CELLS).index(cell)}"
    return work / "features-adapted" / folder / f"{video}.npy"


def _files(order: Order, work: Path) -> list[Path]:
    way, jobs = order
    return [feature_file(work, way, cell.name, job.name) for job in jobs for cell in job.cells]


def _maker(work: Path) -> Callable[[Order], None]:
    import cv2

    cv2.setNumThreads(1)
    return partial(_write_features, work)


def _write_features(work: Path, order: Order) -> None:
    way, jobs = order
    predictor, keeper = load_way(WAYS[way], work)
    for job in jobs:
        keeper.features.clear()
        predictor(job)
        for cell, features in zip(job.cells, keeper.features, strict=True):
            path = feature_file(work, way, cell.name, job.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, features)


def measure_run(run: HelpedRun, work: Path, truths: Mapping[str, Path], videos: Sequence[str]) -> Record:
    """Score a detector on the test videos in every cell."""
    begin = time.monotonic()
    detector = trained_detector(run.trained, work, truths["training"])
    truth = jostle.load_truth(truths["test"], subset="test", protocol="thumos14").of_videos(videos)
    found: dict[str, dict[str, Segments]] = {cell: {} for cell in CELLS}
    for name, fps, duration in zip(truth.videos, truth.fps, truth.duration, strict=True):
        rows = [np.load(feature_file(work, run.way, cell, name)) for cell in CELLS]
        segments = find_in_states(detector, rows, fps=float(fps), duration=float(duration))
        for cell, own in zip(CELLS, segments, strict=True):
            found[cell][name] = own
    scores = {}
    for cell, of_films in found.items():
        result = jostle.score(Predictions.from_segments(of_films), truth, protocol="thumos14", tious=[TIOU])
        scores[cell] = round(float(result.map[0]), 5)
    return {"run": asdict(run), "videos": len(videos), "cells": scores, "seconds": round(time.monotonic() - begin, 1)}


def measure_puppets(run: HelpedRun, work: Path, jobs: int) -> Record:
    """Run the same corruptions on the test videos of the puppets."""
    begin, way = time.monotonic(), WAYS[run.way]
    done = jostle.run(
        RECIPE, dataset="puppets", subset="test", model=f"{run.detector}_puppets", out=work / "puppets" / run.folder,
        weights="clean" if run.treatment == "clean" else "robust", mend="jostle" if way.mend else None,
        adapt=way.method, jobs=jobs,
    )  # fmt: skip
    cells = {"clean": done.scores["clean"]} | {cell["cell"]: cell["value"] for cell in done.scores["cells"]}
    return {
        "run": asdict(run),
        "videos": done.scores["coverage"]["videos"],
        "cells": {cell: round(value, 5) for cell, value in cells.items()},
        "seconds": round(time.monotonic() - begin, 1),
    }


def summarise(record: Record) -> str:
    """Return the mAP in every cell, to be printed."""
    return " ".join(f"{100 * score:.1f}" for score in record["cells"].values())


if __name__ == "__main__":
    from studies import film_detection_adapted  # the name by which worker processes find the runs

    film_detection_adapted.main()
