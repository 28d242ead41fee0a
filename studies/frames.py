"""Frame classifiers on similar frames: trained on anchors, with noise, on whole sets, and with the pm-k loss.

    python -m studies.frames WORK start study weights

Steps and runs that are done already are skipped. `start` needs a GPU and the frames of `study` the cores: named
together they work side by side.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.core.config import make_settings
from jostle.training.recognition_config import RecognitionConfig
from studies.harness import CORES, Record, finish, parse_arguments, run_grid, ship_weights

if TYPE_CHECKING:
    from studies.frame_pretraining import DrawnFrames

CLASSIFIER = "puppet_frames"
SEEDS = (0, 1, 2)
STEPS = ("start", "study", "weights")
K = 10

DATA: dict[str, Any] = {
    "dataset": "puppets-frames",
    "train": "training",
    "select": 0.0,
    "seeds": [0],
    "mirror": True,
    "shift": 0.1,
    "k": K,
}
OPTIMISER: dict[str, Any] = {
    "lr": 1e-4,
    "warmup_epochs": 1,
    "epochs": 8,
    "batch": 64,
    "average": 0.98,
    "average_ramp": False,
}
TREATMENTS: dict[str, dict[str, Any]] = {
    "anchors": {},
    "noise": {"noise": {"std": 0.1}},
    "all": {"loss": "all"},
    "worst": {"loss": "worst"},
}
START = "start"  # no treatment: the weights that all begin with
SHIPPED = {"clean": "anchors", "robust": "worst"}


@dataclass(frozen=True)
class Run:
    """One training run."""

    treatment: str
    seed: int

    @property
    def folder(self) -> str:
        return f"frames-{self.treatment}-{self.seed}"


def main() -> None:
    arguments = parse_arguments(__doc__, STEPS, jobs=CORES, at_once=13, seeds=list(SEEDS), results=Path)
    begin = time.monotonic()
    drawn = draw_first(arguments.work, arguments.jobs) if "start" in arguments.steps else None
    preparing = multiprocessing.get_context("spawn").Process(target=prepare, args=(arguments.work, arguments.jobs))
    if "study" in arguments.steps:
        preparing.start()
    if drawn is not None:
        from studies.frame_pretraining import pretrain_classifier

        pretrain_classifier(drawn, start_of(arguments.work))
        print(f"network to begin with: {time.monotonic() - begin:.0f} s", flush=True)
    if "study" in arguments.steps:
        preparing.join()
        assert preparing.exitcode == 0, "the frames to learn from could not be made"
        print(f"frames to learn from: {time.monotonic() - begin:.0f} s", flush=True)
        runs = [Run(START, 0), *(Run(treatment, seed) for treatment in TREATMENTS for seed in arguments.seeds)]
        results = arguments.results or arguments.work / "frames.jsonl"
        finish(
            run_grid(
                runs, partial(measure, work=arguments.work), results, at_once=arguments.at_once, summarise=summarise
            )
        )
    if "weights" in arguments.steps:
        runs = {f"{CLASSIFIER}-{name}": Run(treatment, 0) for name, treatment in SHIPPED.items()}
        ship_weights({name: arguments.work / "runs" / run.folder / "last.safetensors" for name, run in runs.items()})
    print(f"all: {time.monotonic() - begin:.0f} s", flush=True)


def start_of(work: Path) -> Path:
    """The weights that every run begins with."""
    return work / f"start-{CLASSIFIER}.safetensors"


def draw_first(work: Path, jobs: int) -> DrawnFrames | None:
    """The frames that the network begins with; None if it has begin already."""
    if start_of(work).exists():
        return None
    from studies.frame_pretraining import draw_frames

    begin = time.monotonic()
    drawn = draw_frames(jobs=jobs)
    print(f"{len(drawn.label)} drawn frames: {time.monotonic() - begin:.0f} s", flush=True)
    return drawn


def settings_for(run: Run, work: Path, *, jobs: int = 1) -> RecognitionConfig:
    """The settings of one training run."""
    return make_settings(
        RecognitionConfig,
        {
            "recogniser": CLASSIFIER,
            "data": {**DATA, "cache": str(work / "clips"), "jobs": jobs},
            "optimiser": OPTIMISER,
            "weights": str(start_of(work)),
            "seed": run.seed,
            "precision": "bfloat16",
            "save_every": 1e9,
            **TREATMENTS.get(run.treatment, {}),
        },
    )


def prepare(work: Path, jobs: int) -> None:
    """Have the frames to learn from and those to test with drawn and decoded before the runs need them."""
    from jostle.training.recognition import load_split

    config = settings_for(Run("anchors", 0), work, jobs=jobs)
    load_split(config)
    test_sets(config)


def test_sets(config: RecognitionConfig) -> Any:
    """The anchors of the test set, each with the frames around it; itself in the place of those unlike it."""
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


def measure(run: Run, work: Path) -> Record:
    """Train a classifier, and count the anchors of the test set that it gets right together with those around them."""
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.recognition.puppet_frames import CLASSES, SPEC, FrameClassifier
    from jostle.training.clip_augmentation import ClipLoader
    from jostle.training.loop import train
    from jostle.training.recognition import predict_logits

    begin = time.monotonic()
    folder, config = work / "runs" / run.folder, settings_for(run, work)
    weights = start_of(work) if run.treatment == START else train(config, folder).weights
    trained = time.monotonic()
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    network = FrameClassifier(CLASSES)
    network.load_state_dict(read_weights(weights))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device)
    sets = test_sets(config)
    showing = ClipLoader(sets, SPEC, device)
    told = [predict_logits(network, showing, steps=(step,)).argmax(1) for step in range(2 * K + 1)]
    right = np.stack(told, 1) == sets.labels[:, None]  # (anchors, 2 K + 1)
    within = [float(right[:, K - k : K + k + 1].all(1).mean()) for k in range(K + 1)]
    return {
        "run": asdict(run),
        "right_within": [round(share, 5) for share in within],
        "anchors": len(right),
        "commonest": round(float(np.bincount(sets.labels).max() / len(right)), 5),
        "seconds": [round(trained - begin, 1), round(time.monotonic() - trained, 1)],
    }


if __name__ == "__main__":
    main()
