"""Frame classifiers on similar frames: trained on anchors, with noise, on whole sets, and with the pm-k loss.

    python -m studies.frames WORK start study weights

Steps and runs that are done already are skipped. `start` needs a GPU and the frames of `study` the cores: named
together they work side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.settings import make_settings
from jostle.training.recognition_config import RecognitionConfig
from studies import harness

SETTINGS = harness.load_settings("frames")
SEEDS: list[int] = SETTINGS["seeds"]
TREATMENTS: dict[str, dict[str, Any]] = SETTINGS["treatments"]
CLASSIFIER, K = SETTINGS["config"]["recogniser"], SETTINGS["config"]["data"]["k"]
START = "start"  # no treatment: the weights that all begin with
SHIPPED = {"clean": "anchors", "robust": "worst"}


@dataclass(frozen=True)
class FrameRun(harness.GridRun):
    """Training run of a frame classifier."""

    treatment: str
    seed: int


def study_runs() -> list[FrameRun]:
    """Return every run, and the weights that all begin with."""
    return [FrameRun(START, 0), *harness.list_runs(FrameRun, treatment=TREATMENTS, seed=SEEDS)]


def main() -> None:
    """Run the steps that are arguments."""
    steps = {
        "start": start_pretraining,
        "study": harness.Grid(study_runs, measure, summarise, prepare),
        "weights": ship_classifiers,
    }
    harness.run_study(__doc__, "frames", steps, jobs=harness.CORES, at_once=13, seeds=SEEDS)


def start_of(work: Path) -> Path:
    """Return the path of the weights that every run begins with."""
    return work / f"start-{CLASSIFIER}.safetensors"


def start_pretraining(work: Path, jobs: int) -> None:
    """Draw frames, and start to pretrain the network in a process, unless it is done."""
    if start_of(work).exists():
        return
    from studies.frame_pretraining import draw_frames, pretrain_classifier

    harness.start_process(pretrain_classifier, draw_frames(jobs=jobs), start_of(work))


def ship_classifiers(work: Path) -> None:
    """Put the weights into the package."""
    runs = {f"{CLASSIFIER}-{name}": FrameRun(treatment, 0) for name, treatment in SHIPPED.items()}
    harness.ship_weights({name: run.weights_in(work) for name, run in runs.items()})


def settings_for(run: FrameRun, work: Path, *, jobs: int = 1) -> RecognitionConfig:
    """Return the settings of one training run."""
    own = {"data": {"cache": str(work / "clips"), "jobs": jobs}, "weights": str(start_of(work)), "seed": run.seed}
    treatment = TREATMENTS.get(run.treatment, {})
    return make_settings(RecognitionConfig, harness.merge_settings(SETTINGS["config"], treatment, own))


def prepare(work: Path, jobs: int) -> None:
    """Draw and decode the frames to learn from and those to test with before the runs need them."""
    from jostle.training.recognition import load_split

    config = settings_for(FrameRun("anchors", 0), work, jobs=jobs)
    load_split(config)
    test_sets(config)


def test_sets(config: RecognitionConfig) -> Any:
    """Return the anchors of the test set, each with the frames around it; itself in the place of those unlike it."""
    from jostle.models.recognition.puppet_frames import SPEC
    from jostle.training.clips import Preparation, list_videos, load_clips
    from jostle.training.recognition_config import CorruptionsConfig

    _, videos = list_videos(config.data, "test", seeds=(0,))
    clean = Preparation.of(config.data, CorruptionsConfig(), SPEC)
    assert config.data.cache is not None
    return load_clips(videos, clean, cache=Path(config.data.cache), jobs=config.data.jobs)


def summarise(record: dict[str, Any]) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    return f"anchors {100 * record['right_within'][0]:.1f} pm-{K} {100 * record['right_within'][K]:.1f}"


def measure(run: FrameRun, work: Path) -> harness.Record:
    """Train a classifier, and count the anchors of the test set that it gets right together with those around them."""
    from jostle.models.checkpoints import read_weights
    from jostle.models.recognition.puppet_frames import CLASSES, SPEC, FrameClassifier
    from jostle.training.clip_augmentation import ClipLoader
    from jostle.training.recognition import predict_logits

    config = settings_for(run, work)
    weights = start_of(work) if run.treatment == START else harness.train_run(config, run.folder_in(work))
    network = FrameClassifier(CLASSES)
    network.load_state_dict(read_weights(weights))
    network.to(harness.get_device())
    sets = test_sets(config)
    loader = ClipLoader(sets, SPEC, next(network.parameters()).device)
    classes = [predict_logits(network, loader, steps=(step,)).argmax(1) for step in range(2 * K + 1)]
    right = np.stack(classes, 1) == sets.labels[:, None]  # (anchors, 2 K + 1)
    within = [float(right[:, K - k : K + k + 1].all(1).mean()) for k in range(K + 1)]
    return {
        "right_within": [round(share, 5) for share in within],
        "anchors": len(right),
        "commonest": round(float(np.bincount(sets.labels).max() / len(right)), 5),
    }


if __name__ == "__main__":
    harness.run_module("studies.frames")
