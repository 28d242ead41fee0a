"""Comparison of training, test-time adaptation and mending, alone and together, on puppets and on film.

    python -m studies.adaptation WORK puppet_recognition puppet_detection record
    python -m studies.adaptation WORK film_recognition record --footage FOOTAGE
    python -m studies.adaptation WORK film_detectors film_detection record --footage FOOTAGE

Recognisers are `puppet_c3d`, on eight test clips of each class, and those that `studies.film_recognition` trained in
the same WORK. Detectors adapt their extractor: `temporalmaxer_puppets`, and the one that `film_detectors` trains on
features of single frames. Four corruptions are of the whole video, and two in its middle, or that of each action.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.core.types.clip import Frames
from jostle.datasets.dataset import Dataset
from jostle.features.caches import FrameFeatureCache
from jostle.io.files.annotations import write_truth
from jostle.models.extractors.extractor import Extractor, ExtractorKind, Features
from studies import film_detection
from studies.detection import configure, extract_training, load_trained, train_detector
from studies.feature_states import load_extractor_file
from studies.film_recognition import OWN, FilmRun
from studies.harness import STUDIES, Grid, GridRun, Record, load_settings, run_module, run_study, summarise_cells

SETTINGS = load_settings("adaptation")
SEEDS, FEW, FILMS = SETTINGS["seeds"], SETTINGS["few"], SETTINGS["films"]
WAYS: dict[str, dict[str, Any]] = SETTINGS["ways"]
RECORDS: dict[str, str] = SETTINGS["records"]
PUPPET_WEIGHTS, FILM_TREATMENTS = SETTINGS["treatments"]["puppet"], SETTINGS["treatments"]["film"]
EXTRACTOR = "film_lite0_apart"


class RecallingExtractor(Extractor):
    """Extractor of single frames with a cache: several ways extract the same frames.

    Attributes:
        recalls: whether the cache is used; it must not be where the network changes.
    """

    def __init__(self, kind: ExtractorKind, network: Any) -> None:
        super().__init__(kind, network)
        self.known, self.recalls = FrameFeatureCache(), True

    def __call__(self, clip_frames: Frames, flow: Any = None) -> Features:
        """Return (B, C) features of clips of one frame."""
        if not self.recalls:
            return super().__call__(clip_frames)
        rows = []
        for clip in clip_frames:
            key = self.known.key(clip[0])
            if (row := self.known.get(key)) is None:
                (row,) = super().__call__(clip[None])
                self.known.put(key, row)
            rows.append(row)
        return np.stack(rows)


@dataclass(frozen=True)
class AdaptationRun(GridRun):
    """Trained model, run in one way."""

    treatment: str
    way: str
    seed: int


def ways(task: str) -> list[tuple[str, str]]:
    """Return every way of the clean model of a task, and some of the one that learned from corruptions."""
    own = WAYS if task.endswith("recognition") else SETTINGS["of_extractors"]
    return [("clean", way) for way in own] + [("mix", way) for way in FEW]


def study_runs(task: str) -> list[AdaptationRun]:
    """Return every run of a task."""
    seeds = SEEDS if task == "film_recognition" else SEEDS[:1]
    return [AdaptationRun(treatment, way, seed) for seed in seeds for treatment, way in ways(task)]


def main() -> None:
    """Run the steps that are arguments."""
    grids = {
        task: Grid(
            partial(study_runs, task),
            partial(measure_run, task=task),
            summarise_cells,
            prepare=partial(copy_videos, task),
            file=file,
        )
        for task, file in RECORDS.items()
    }
    file, *also = RECORDS.values()
    steps = {"film_detectors": train_film_detectors, **grids}
    options = {"seeds": SEEDS, "treatments": tuple(FILM_TREATMENTS), "ways": list(WAYS)}
    run_study(__doc__, file, steps, also=also, footage=Path, jobs=1, **options)


def copy_videos(task: str, work: Path, footage: Path | None = None) -> None:
    """Copy the videos that a model is tested on into a folder of their own."""
    folder = work / f"{task}-videos"
    if task == "puppet_recognition":
        by_class: dict[str, list[Path]] = {}
        for path in jostle.load_dataset("puppets-trimmed").videos.values():
            by_class.setdefault(path.parent.name, []).append(path)
        for label, paths in by_class.items():
            _copy(paths[: SETTINGS["clips"]], folder / "test" / label)
    elif task == "puppet_detection":
        data = jostle.load_dataset("puppets", first=FILMS[task])
        copy_films(data, list(data.videos), folder)
    elif task == "film_detection":
        assert footage is not None
        copy_joined("test", footage, FILMS[task], folder)


def copy_joined(subset: str, footage: Path, count: int, folder: Path) -> None:
    """Copy the first joined videos of a subset."""
    data = jostle.load_dataset("joined-clips", subset, root=footage / "ucf10", jobs=1)
    copy_films(data, list(data.videos)[:count], folder)


def copy_films(data: Dataset, names: Sequence[str], folder: Path) -> None:
    """Copy some films of a data set, and write their annotations beside them."""
    _copy([data.videos[name] for name in names], folder)
    write_truth(data.truth.of_videos(names), folder / "annotations.json", format="activitynet")


def _copy(paths: Iterable[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if not (folder / path.name).exists():  # a run that is resumed has read it
            shutil.copy(path, folder)


def train_film_detectors(work: Path, footage: Path) -> None:
    """Train TemporalMaxer on film, clean and with FrameDrop and TRC, on features of single frames."""
    film_detection.write_lite0(work)
    films, features = work / "film-training", work / "features-apart"
    copy_joined("training", footage, SETTINGS["film_detectors"]["films"], films)
    own: dict[str, Any] = {"weights": film_detection.weights_of("lite0", work), "truth": films / "annotations.json"}
    # Of 16 frames in a row one is seen, as many as FrameDrop takes where all are.
    extract_training(films, EXTRACTOR, features, ["black_frame"], of_frames=False, placement="pair:x16", jobs=1, **own)
    optimiser = {**film_detection.SETTINGS["optimiser"], "epochs": SETTINGS["film_detectors"]["epochs"]}
    detector = film_detection.SETTINGS["detector"]
    for treatment in FILM_TREATMENTS:
        run = _film_detector(treatment)
        config = configure(run, features, own["truth"], {}, optimiser=optimiser, weight=2.0, settings=detector)
        train_detector(config, run.folder_in(work))


def _film_detector(treatment: str) -> film_detection.FilmDetectorRun:
    return film_detection.FilmDetectorRun("temporalmaxer", "apart", FILM_TREATMENTS[treatment], 0)


def clean_videos(task: str, footage: Path | None) -> Path:
    """Return a folder of clean videos that are not tested on, whose statistics some methods need."""
    if task == "puppet_recognition":
        return jostle.load_dataset("puppets-trimmed", "val").folder / "val"
    if task == "puppet_detection":
        return jostle.load_dataset("puppets", "validation", first=FILMS[task]).folder / "validation"
    assert footage is not None
    return footage / "ucf10" / "train"


def model_options(task: str, run: AdaptationRun, work: Path, footage: Path | None) -> dict[str, Any]:
    """Return the model of a task and its videos, as arguments of `jostle.run`."""
    videos = {"dataset": "folder", "data": work / f"{task}-videos"}
    if task == "puppet_recognition":
        return {"model": "puppet_c3d", "weights": PUPPET_WEIGHTS[run.treatment], **videos}
    if task == "puppet_detection":
        return {"model": "temporalmaxer_puppets", "weights": PUPPET_WEIGHTS[run.treatment], **videos}
    if task == "film_recognition":
        assert footage is not None
        weights = FilmRun("shifted", run.treatment, run.seed).weights_in(work)
        return {"model": OWN["shifted"], "weights": weights, "data": footage / "ucf10"}
    weights = _film_detector(run.treatment).weights_in(work)
    detector = load_trained("temporalmaxer_puppets", weights, **film_detection.SETTINGS["detector"])
    extractor = _load_recalling_extractor(work)
    extractor.recalls = "adapt" not in WAYS[run.way]
    return {"model": detector, "extractor": extractor, **videos}


@cache
def _load_recalling_extractor(work: Path) -> RecallingExtractor:
    plain = load_extractor_file(EXTRACTOR, film_detection.weights_of("lite0", work))
    return RecallingExtractor(plain.kind, plain.network)


def measure_run(run: AdaptationRun, task: str, work: Path, jobs: int, footage: Path | None = None) -> Record:
    """Run the benchmark in one way."""
    options = dict(WAYS[run.way])
    if "adapt_source" in options:
        options["adapt_source"] = clean_videos(task, footage)
    if options.get("adapt_protocol") == "online":
        jobs = 1
    done = jostle.run(
        STUDIES / f"{SETTINGS['recipes'][task]}.toml",
        out=work / task / run.folder,
        jobs=jobs,
        **model_options(task, run, work, footage),
        **options,
    )
    return {
        "clean": done.scores["clean"],
        "cells": {cell["cell"]: cell["value"] for cell in done.scores["cells"]},
        "passes": None if done.adaptation is None else done.adaptation.to_dict(),
    }


if __name__ == "__main__":
    run_module("studies.adaptation")
