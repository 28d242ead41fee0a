"""Feature-based detectors on film: videos joined from clips of UCF101, under the 15 cells of THUMOS14-C.

    python -m studies.film_detection WORK weights features study record --footage FOOTAGE --jobs 12

`features` and `study` need a GPU. Features are those of EfficientNet-Lite0 frame by frame (`lite0`), and of the network
with shifted channels that `studies.film_recognition` trained in the same WORK (`shifted`). Steps and runs that are done
already are skipped. FOOTAGE holds `ucf10/{train,test}/CLASS/*.avi`.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.core.config import make_settings
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.dataset import Dataset
from jostle.parallel.workers import map_unordered
from jostle.training.detection_config import TrainingConfig
from studies.detection import CELLS, PUPPETS_C, TIOUS, TREATMENTS, WEIGHT, train_detector
from studies.film_recognition import FilmRun
from studies.harness import CORES, STUDIES, GridRun, Record, finish, parse_arguments, read_records, run_grid
from studies.mending_features import AS_IS, KNOWN, MENDED, WAYS, counts, find_in_states

STEPS = ("weights", "features", "study", "record")
RESULTS, FOUND = STUDIES / "film_detection.jsonl", STUDIES / "film_found.jsonl"
DETECTORS = ("actionformer", "tridet", "temporalmaxer", "vsgn")
SEEDS = (0, 1, 2)
# FrameDrop draws anew in every epoch where features are of single frames; otherwise drops are drawn once.
TREATMENTS_OF = {
    "lite0": ("clean", "drop", "drop + TRC"),
    "shifted": ("clean", "fixed black_frame", "fixed black_frame + TRC"),
}
SETTINGS = {"input_dim": 1280, "classes": 7}
OPTIMISER: dict[str, Any] = {
    "lr": 1e-3,
    "warmup_epochs": 5,
    "epochs": 35,
    "weight_decay": 0.05,
    "batch": 8,
    "average": 0.98,
    "average_ramp": False,
}
read_results = partial(read_records, RESULTS)
read_found = partial(read_records, FOUND)


@dataclass(frozen=True)
class FilmDetectorRun(GridRun):
    """A detector on features of a network, under a treatment."""

    detector: str
    features: str
    treatment: str
    seed: int


def study_runs() -> list[FilmDetectorRun]:
    """Return every run, the networks of single frames first."""
    return [
        FilmDetectorRun(detector, features, treatment, seed)
        for features, treatments in TREATMENTS_OF.items()
        for treatment in treatments
        for detector in DETECTORS
        for seed in SEEDS
    ]


def main() -> None:
    """Do the steps that are arguments."""
    arguments = parse_arguments(
        __doc__, STEPS, footage=Path, jobs=CORES, at_once=CORES, networks=tuple(TREATMENTS_OF), seeds=list(SEEDS)
    )
    results, work = arguments.work / RESULTS.name, arguments.work
    if "weights" in arguments.steps:
        write_lite0(work / "film_lite0.safetensors")
    data = {
        subset: jostle.load_dataset("joined-clips", subset, root=arguments.footage / "ucf10", jobs=arguments.jobs)
        for subset in ("training", "test")
    }
    if "features" in arguments.steps:
        for network in arguments.networks:
            for subset, films in data.items():
                make_film_features(films, network, work, learn=subset == "training", jobs=arguments.jobs)
    if "study" in arguments.steps:
        truths = {subset: films.folder / f"{subset}.json" for subset, films in data.items()}
        measure = partial(measure_run, work=work, truths=truths)
        runs = [run for run in study_runs() if run.features in arguments.networks and run.seed in arguments.seeds]
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)
        found = [{"network": name, "found": sum_found(work / f"features-{name}" / "test")} for name in TREATMENTS_OF]
        FOUND.write_text("".join(json.dumps(one) + "\n" for one in found))


def write_lite0(path: Path) -> None:
    """Write the weights of EfficientNet-Lite0 as an extractor reads them."""
    from torch import nn

    from jostle.models.checkpoints import write_weights
    from studies.film_networks import load_lite

    network = load_lite("lite0")
    network._fc = nn.Identity()
    write_weights({f"network.{key}": value for key, value in network.state_dict().items()}, path)


def load_film_extractor(network: str, work: Path) -> Any:
    """Load an extractor of windows of 16 frames, four frames apart."""
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.extractors.extractor import as_extractor, load_extractor
    from jostle.models.recognition.recogniser import Recogniser
    from studies import film_networks, film_recognition  # noqa: F401  # the former registers an extractor

    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if network == "lite0":
        return load_extractor("film_lite0", weights=read_weights(work / "film_lite0.safetensors"), device=device)
    run = FilmRun("shifted", "clean", 0)
    module, spec = film_recognition.load_network(run, work / "runs" / run.folder / "last.safetensors")
    every_second = replace(spec, step=2, stride=4, spread="step", clips=None)
    return as_extractor(Recogniser(module.to(device).eval(), every_second, head="head"))


def make_film_features(data: Dataset, network: str, work: Path, *, learn: bool, jobs: int) -> None:
    """Write the features of every state of every video.

    States to learn from: `clean`, every frame black, and a black frame in every pair. To test with: the cells as they
    are, and those of THUMOS14-C also mended and with the damaged frames known.
    """
    out, actions = work / f"features-{network}" / data.subset, data.truth.actions
    orders = [(name, Path(path), actions[name]) for name, path in data.videos.items()]
    begin = time.monotonic()
    maker = partial(_maker, network, work, out, learn)
    for count, _ in enumerate(map_unordered(maker, orders, jobs), 1):
        print(f"{network} {data.subset}: {count} of {len(orders)}, {time.monotonic() - begin:.0f} s", flush=True)


Order = tuple[str, Path, Segments]


def _maker(network: str, work: Path, out: Path, learn: bool) -> Callable[[Order], None]:
    import cv2

    from jostle.mending.loading import MendingOptions

    cv2.setNumThreads(1)
    extractor = load_film_extractor(network, work)
    if learn:
        return partial(_write_training, extractor, out)
    finders = {KNOWN: MendingOptions("known").get("cpu"), MENDED: MendingOptions("jostle").get("cpu")}
    return partial(_write_test, extractor, finders, out)


def _open(extractor: Any, order: Order) -> tuple[Any, Any]:
    """Return the reader of a video, and a function that makes its features with some options."""
    from jostle.features.caches import CachedFrames
    from jostle.features.engine import VideoFeatures
    from jostle.io.video.decode import Reader

    name, path, segments = order
    reader = Reader(path, threads=1)
    frames = CachedFrames(reader)

    def video(**options: Any) -> VideoFeatures:
        return VideoFeatures(
            frames, extractor, video_id=name, segments=segments, path=reader.coded_path,
            bit_rate=reader.facts.bit_rate, **options,
        )  # fmt: skip

    return reader, video


def _save(folder: Path, name: str, values: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{name}.npy", values)


def _write_training(extractor: Any, out: Path, order: Order) -> None:
    name = order[0]
    reader, open_video = _open(extractor, order)
    with reader:
        video = open_video()
        clean = video.clean()
        _save(out / "clean", name, clean.features)
        black = [Spec.parse("thumos14-c/black_frame:1")]
        _save(out / "pair-black_frame", name, video.under(black, "pair").features)
        if clean.seen is not None:
            _save(out / "clean" / "frames", name, clean.seen)
            _save(out / "black_frame" / "frames", name, video.under(black, "everywhere").seen)


def _write_test(extractor: Any, finders: Mapping[str, Any], out: Path, order: Order) -> None:
    name = order[0]
    if (out / "found" / f"{name}.json").exists():
        return
    reader, open_video = _open(extractor, order)
    found: dict[str, dict[str, list[int]]] = {}
    known: dict[str, Any] = {}
    with reader:
        plain = open_video().plain()
        for way in WAYS:
            video = open_video(clean=plain, finder=finders.get(way))
            for cell in ("clean", *(CELLS if way == AS_IS else PUPPETS_C)):
                if cell == "clean":
                    done = video.clean()
                else:
                    spec, placement = CELLS[cell]
                    done = video.under([Spec.parse(spec)], placement)
                _save(out / state_folder(way, cell), name, done.features)
                if done.mended is not None:
                    damaged = known.setdefault(cell, done.mended.damaged)
                    found.setdefault(way, {})[cell] = counts(done.mended.damaged, damaged)
    (out / "found").mkdir(exist_ok=True)
    (out / "found" / f"{name}.json").write_text(json.dumps(found))


def sum_found(test: Path) -> dict[str, dict[str, list[int]]]:
    """Return, by way and cell, the sums over videos of damaged frames found, damaged, others found, and others."""
    total: dict[str, dict[str, list[int]]] = {}
    for path in sorted((test / "found").glob("*.json")):
        for way, cells in json.loads(path.read_text()).items():
            for cell, own in cells.items():
                before = total.setdefault(way, {}).get(cell, [0] * 4)
                total[way][cell] = [a + b for a, b in zip(before, own, strict=True)]
    return total


def state_folder(way: str, cell: str) -> str:
    """Return the name of the folder of a state."""
    number = 0 if cell == "clean" else 1 + list(CELLS).index(cell)
    return f"{way.replace(' ', '-')}-{number}"


def settings_for(run: FilmDetectorRun, work: Path, truth: Path) -> TrainingConfig:
    """Return the settings of one training run."""
    treatment, features = TREATMENTS[run.treatment], work / f"features-{run.features}" / "training"
    extractor = {"extractor": "film_lite0", "weights": str(work / "film_lite0.safetensors")}

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(part) for key, part in value.items()} | extractor
        return value.format(features=features) if isinstance(value, str) else value

    data = {"features": str(features / "clean"), "truth": str(truth), "train": "training"}
    return make_settings(
        TrainingConfig,
        {
            "detector": f"{run.detector}_puppets",
            "settings": SETTINGS,
            "data": data | {key: fill(value) for key, value in treatment.data.items()},
            "optimiser": OPTIMISER,
            # The weights of the puppets' study are for sixteen videos a step, here are eight.
            "consistency": {"weight": 2 * treatment.weight * WEIGHT[run.detector], **treatment.consistency},
            "seed": run.seed,
            "save_every": 1e9,
        },
    )


def measure_run(run: FilmDetectorRun, work: Path, truths: Mapping[str, Path]) -> Record:
    """Train a detector, and score it on the test videos in every state."""
    from studies import film_networks  # noqa: F401  # registers the extractor

    begin = time.monotonic()
    detector = train_detector(settings_for(run, work, truths["training"]), work / "runs" / run.folder)
    trained = time.monotonic()
    truth = jostle.load_truth(truths["test"], subset="test", protocol="thumos14")
    test = work / f"features-{run.features}" / "test"
    states = [(way, cell) for way in WAYS for cell in ("clean", *(CELLS if way == AS_IS else PUPPETS_C))]
    found: dict[tuple[str, str], dict[str, Segments]] = {state: {} for state in states}
    for name, fps, duration in zip(truth.videos, truth.fps, truth.duration, strict=True):
        rows = [np.load(test / state_folder(*state) / f"{name}.npy") for state in states]
        segments = find_in_states(detector, rows, fps=float(fps), duration=float(duration))
        for state, own in zip(states, segments, strict=True):
            found[state][name] = own
    scores: dict[str, dict[str, list[float]]] = {}
    for (way, cell), of_films in found.items():
        result = jostle.score(Predictions.from_segments(of_films), truth, protocol="thumos14", tious=TIOUS)
        scores.setdefault(way, {})[cell] = [round(value, 5) for value in result.map.tolist()]
    seconds = [round(trained - begin, 1), round(time.monotonic() - trained, 1)]
    return {"run": asdict(run), "cells": scores.pop(AS_IS), "mended": scores, "seconds": seconds}


def summarise(record: Record) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    cells = record["cells"]
    corrupted = np.mean([cells[name][2] for name in PUPPETS_C])
    return f"clean {100 * cells['clean'][2]:.2f} corrupted {100 * corrupted:.2f}"


if __name__ == "__main__":
    from studies import film_detection  # the name by which worker processes find the runs

    film_detection.main()
