"""End-to-end detectors on the puppets: trained whole and with a frozen backbone, clean and robustly.

    python -m studies.end_to_end WORK films start study weights

Detectors begin with the same pretrained backbone, as published ones begin with one trained on Kinetics. VSGN, which is
feature-based, uses the shipped extractor. Steps and runs that are done already are skipped.
"""

from __future__ import annotations

import io
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.config import make_settings
from jostle.core.types.clip import Frames
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, PipelineSource, chain, gather, origins
from jostle.features.windows import mean_rate
from jostle.io.files.atomic import write_bytes
from jostle.parallel.workers import map_unordered
from studies.detection import CELLS, PUPPETS_C, TIOUS, Place, make_features, summarise, train_detector
from studies.detection import Run as FeatureRun
from studies.detection import measure as measure_on_features
from studies.harness import CORES, GridRun, Record, finish, parse_arguments, run_grid, ship_weights

FRAMES = ("afsd", "basictad", "e2e_tad")
FEATURES = ("vsgn",)
SEEDS = (0, 1)
STEPS = ("films", "start", "study", "weights")
SHIPPED = {"clean": "clean", "robust": "drop"}
SHIPPED_DETECTORS = ("e2e_tad", "vsgn")  # the smallest, 10 MB together
BLACK = {"placement": "pair"}
# Of the consistency term beside a detector's own losses, where it is a mean over what answers for an action.
WEIGHT = 1.0
RATE = 1e-3
CLIPS_AT_ONCE = 32  # of a film, in one batch
FRAMES_AT_ONCE = 64  # resized together
BELOW = 0.3  # share of it that a backbone has which learns on
# Queries find out late which of them answers for what.
EPOCHS = {"afsd": 20, "basictad": 20, "e2e_tad": 60}
OPTIMISER: dict[str, Any] = {"batch": 16, "warmup_epochs": 1, "average": 0.98, "weight_decay": 0.05}


@dataclass(frozen=True)
class Treatment:
    """Changes to the settings of a clean run.

    Attributes:
        data: changes to `data`.
        weight: of the consistency.
        frozen: whether the backbone is left as it begins.
    """

    data: Mapping[str, Any]
    weight: float = 0.0
    frozen: bool = False


TREATMENTS = {
    "clean": Treatment({}),
    "frozen, clean": Treatment({}, frozen=True),
    "drop": Treatment({"drop": BLACK, "learn_from": "corrupted"}),
    "drop + TRC": Treatment({"drop": BLACK}, WEIGHT),
    "frozen, drop": Treatment({"drop": BLACK, "learn_from": "corrupted"}, frozen=True),
}
ON_FEATURES = ("clean", "drop", "drop + TRC")


@dataclass(frozen=True)
class Run(GridRun):
    """One training run."""

    detector: str
    treatment: str
    seed: int

    @property
    def on_features(self) -> FeatureRun:
        """The same run of a feature-based detector, on features of the shipped extractor."""
        return FeatureRun(self.detector, self.treatment, self.seed, 0)


def study_runs() -> list[Run]:
    """Return every run of docs/results/."""
    grids = [(FRAMES, tuple(TREATMENTS)), (FEATURES, ON_FEATURES)]
    return [Run(name, how, seed) for names, hows in grids for how in hows for name in names for seed in SEEDS]


def main() -> None:
    """Run the steps that the command line names."""
    arguments = parse_arguments(
        __doc__,
        STEPS,
        jobs=CORES,
        at_once=12,
        detectors=(*FRAMES, *FEATURES),
        treatments=tuple(TREATMENTS),
        minutes=6.0,
        results=Path,
    )
    results = arguments.results or arguments.work / "end_to_end.jsonl"
    truth = jostle.load_dataset("puppets", "test", jobs=arguments.jobs).folder / "annotations.json"
    place = Place(arguments.work, truth)
    if "films" in arguments.steps:
        make_films(place, arguments.detectors, arguments.jobs)
    if "start" in arguments.steps:
        from studies.backbones import pretrain_backbones

        chosen = [name for name in FRAMES if name in arguments.detectors]
        pretrain_backbones(chosen, arguments.work / "start", jobs=arguments.jobs, minutes=arguments.minutes)
    if "study" in arguments.steps:
        chosen = {"detector": arguments.detectors, "treatment": arguments.treatments}
        runs = [run for run in study_runs() if all(getattr(run, key) in some for key, some in chosen.items())]
        jobs = {"at_once": arguments.at_once, "summarise": summarise}
        finish(run_grid(runs, partial(measure, place=place), results, **jobs))
    if "weights" in arguments.steps:
        for detector in SHIPPED_DETECTORS:
            runs = {f"{detector}_puppets-{name}": Run(detector, how, 0) for name, how in SHIPPED.items()}
            notes = {"extractor": "puppet_net"} if detector in FEATURES else {}
            folders = {name: place.run(run.on_features if detector in FEATURES else run) for name, run in runs.items()}
            ship_weights({name: folder / "last.safetensors" for name, folder in folders.items()}, **notes)


def make_films(place: Place, detectors: Collection[str], jobs: int) -> None:
    """Prepare training and test data: frames for end-to-end detectors, features of the shipped extractor for VSGN."""
    from jostle.models.detection.detector import load_detector
    from jostle.models.weights.shipped import FOLDER
    from jostle.training.detection_config import FramesConfig
    from jostle.training.frame_store import load_films

    for detector in [name for name in FRAMES if name in detectors]:
        name = f"{detector}_puppets"
        config = FramesConfig(jobs=jobs)
        load_films(config, "training", load_detector(name), seeds=config.seeds, name=name, settings={})
        write_test_films(name, place.work / "struck" / detector, jobs=jobs)
    if not set(FEATURES) & set(detectors):
        return
    if not place.network(0).exists():
        place.network(0).write_bytes((FOLDER / "puppet_net.safetensors").read_bytes())
    for subset in ("training", "test"):
        if not place.features(0, subset).exists():
            make_features(subset, place.network(0), place.features(0, subset), jobs=jobs, fixed=(), cells=PUPPETS_C)


@dataclass(frozen=True, eq=False)
class TestFilm:
    """A test film in a detector's size and at its rate.

    Attributes:
        clean: (T, h, w, 3) uint8.
        corrupted: by cell, the indices of the frames that changed, and those frames.
    """

    name: str
    clean: Frames
    corrupted: dict[str, tuple[npt.NDArray[np.int64], Frames]]
    rate: float
    duration: float


def write_test_films(detector: str, folder: Path, *, jobs: int) -> None:
    """Write the input of a detector for each test film, clean and in each cell of `puppets-c`, where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    data = jostle.load_dataset("puppets", subset="test", jobs=jobs)
    duration = dict(zip(data.truth.videos, map(float, data.truth.duration), strict=True))
    orders = [
        (name, Path(data.videos[name]), actions, duration[name], folder / f"{name}.npz")
        for name, actions in data.truth.actions.items()
        if not (folder / f"{name}.npz").exists()
    ]
    list(map_unordered(partial(_film_writer, detector), orders, jobs))


def read_test_films(folder: Path) -> Iterator[TestFilm]:
    """Read the films of a folder, one after the other."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            corrupted = {cell: (file[f"at {n}"], file[f"frames {n}"]) for n, cell in enumerate(PUPPETS_C)}
            yield TestFilm(path.stem, file["clean"], corrupted, float(file["rate"]), float(file["duration"]))


def _film_writer(name: str) -> Any:
    import cv2
    import torch

    from jostle.models.detection.detector import load_detector

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    return partial(_write_film, load_detector(name))


def _write_film(detector: Any, order: tuple[str, Path, Segments, float, Path]) -> None:
    name, path, actions, duration, out = order
    clip = jostle.read(path)
    source = ClipSource(clip)
    frames, rate = detector.sample_indices(len(clip), mean_rate(clip.pts, clip.fps))
    timeline = Timeline.of(clip.pts, clip.fps, actions, video_id=name)
    arrays: dict[str, Any] = {"clean": _resize(detector, source, frames), "rate": rate, "duration": duration}
    for n, cell in enumerate(PUPPETS_C):
        text, placement = CELLS[cell]
        specs = [Spec.parse(text)]
        top = chain(source, specs, masks_for(specs, placement, timeline), seed=0, video_id=name)
        changed = np.flatnonzero(origins(top)[frames] != frames)
        arrays |= {f"at {n}": changed, f"frames {n}": _resize(detector, top, frames[changed])}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_bytes(out, [buffer.getvalue()])


def _resize(detector: Any, source: PipelineSource, indices: npt.NDArray[np.int64]) -> Frames:
    import torch

    blocks = [np.empty((0, *[detector.config.frame_size] * 2, 3), np.uint8)]
    for lo in range(0, len(indices), FRAMES_AT_ONCE):
        block = torch.from_numpy(gather(source, indices[lo : lo + FRAMES_AT_ONCE])).permute(0, 3, 1, 2)
        blocks.append(detector.shrunk(block.float()).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(blocks)


def settings_for(run: Run, place: Place) -> Any:
    """Return the settings of one training run."""
    from jostle.training.detection_config import FrameTrainingConfig

    treatment = TREATMENTS[run.treatment]
    return make_settings(
        FrameTrainingConfig,
        {
            "detector": f"{run.detector}_puppets",
            "data": {"views": 2, **treatment.data},
            "optimiser": {**OPTIMISER, "lr": RATE, "epochs": EPOCHS[run.detector]},
            "consistency": {"weight": treatment.weight},
            "backbone_rate": 0.0 if treatment.frozen else BELOW,
            "backbone_weights": str(place.work / "start" / f"{run.detector}.safetensors"),
            "seed": run.seed,
            "save_every": 1e9,
        },
    )


def measure(run: Run, place: Place) -> Record:
    """Train a detector, and score it on the test films in every cell."""
    if run.detector in FEATURES:
        return {**measure_on_features(run.on_features, place, cells=PUPPETS_C), "run": asdict(run)}
    from jostle.models.devices import channels_last_on_gpu

    begin = time.monotonic()
    detector = train_detector(settings_for(run, place), place.run(run))
    trained = time.monotonic()
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    channels_last_on_gpu(detector, detector.device)
    films = read_test_films(place.work / "struck" / run.detector)
    cells = {
        cell: jostle.score(predictions, truth, protocol="thumos14", tious=TIOUS).map.tolist()
        for cell, predictions in detect_in_films(detector, films).items()
    }
    seconds = [round(trained - begin, 1), round(time.monotonic() - trained, 1)]
    return {"run": asdict(run), "cells": cells, "seconds": seconds}


def detect_in_films(detector: Any, films: Iterable[TestFilm]) -> dict[str, Predictions]:
    """Return the detections in each cell; unchanged clips are processed once, and many of a film in a batch."""
    segments: dict[str, dict[str, Any]] = {cell: {} for cell in ("clean", *PUPPETS_C)}
    for film in films:
        count, clean = len(film.clean), detector.prepare(film.clean)
        firsts = detector.clips(count)
        clips = [("clean", first) for first in firsts]
        states = {"clean": clean}
        for cell, (at, frames) in film.corrupted.items():
            touched = [first for first in firsts if ((at >= first) & (at < first + detector.config.max_length)).any()]
            if touched:
                states[cell] = clean.clone()
                states[cell][:, at] = detector.prepare(frames)
                clips += [(cell, first) for first in touched]
        outputs = dict(zip(clips, _decode_clips(detector, states, clips), strict=True))
        for cell, of_film in segments.items():
            parts = [(first, outputs.get((cell, first), outputs["clean", first])) for first in firsts]
            of_film[film.name] = detector.to_seconds(detector.merge_clips(parts, count), film.rate, film.duration)
    return {cell: Predictions.from_segments(of_film) for cell, of_film in segments.items()}


def _decode_clips(detector: Any, states: Mapping[str, Any], clips: Sequence[tuple[str, int]]) -> list[Any]:
    """Return a detector's output for clips, each given by a state and a first frame."""
    import torch

    outputs: list[Any] = []
    for lo in range(0, len(clips), CLIPS_AT_ONCE):
        batch = torch.cat([detector.clip(states[cell], first) for cell, first in clips[lo : lo + CLIPS_AT_ONCE]])
        with torch.inference_mode():
            outputs += detector.decode(detector.infer(detector, batch))
    return outputs


if __name__ == "__main__":
    from studies import end_to_end  # the name by which worker processes find the runs

    end_to_end.main()
