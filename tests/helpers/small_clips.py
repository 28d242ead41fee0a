"""A small data set of clips to learn: a bright square that goes one way or the other, in a folder a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.core.settings import make_settings
from jostle.io.video.encode import Writer
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import (
    Changes,
    Recogniser,
    Weights,
    changed,
    recogniser,
    recognisers,
    with_weights,
)
from jostle.training.recognition_config import RecognitionConfig

SIDE, LENGTH, FRAMES = 32, 20, 8
SPEC = InputSpec(frames=FRAMES, stride=FRAMES, resize=(SIDE, SIDE), size=SIDE, mean=(0.3,) * 3, std=(0.3,) * 3)


class Tiny(nn.Module):
    """Sees where it is bright at each step."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.seen = nn.Conv3d(3, 8, (3, 3, 3), stride=(1, 4, 4), padding=1)
        self.norm = nn.BatchNorm3d(8)
        self.classifier = nn.Linear(8 * FRAMES * 8, classes)

    def forward(self, clips: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.seen(clips)))
        return self.classifier(x.amax(3).flatten(1))


if "tiny_clips" not in recognisers:

    @recogniser("tiny_clips", source="nowhere", spec=SPEC)
    def tiny_clips(weights: Weights, changes: Changes) -> Recogniser:
        """For tests."""
        spec = changed("tiny_clips", SPEC, changes)
        return with_weights("tiny_clips", Tiny, spec, weights, head="classifier.bias", classes=5)


def write_clips(folder: Path, *, clips: int = 12) -> Path:
    """Videos in `<folder>/<subset>/<class>/`."""
    for subset, count in (("train", clips), ("val", 4)):
        for label, way in (("left", -1), ("right", 1)):
            (folder / subset / label).mkdir(parents=True)
            for i in range(count):
                rng = np.random.default_rng([i, way + 1, subset == "val"])
                frames = rng.integers(0, 60, (LENGTH, SIDE, SIDE, 3), np.uint8)
                y = int(rng.integers(4, 20))
                for t in range(LENGTH):
                    x = 4 + (t if way > 0 else LENGTH - 1 - t)
                    frames[t, y : y + 6, x : x + 6] = 230
                path = folder / subset / label / f"{subset}_{label}_{i:02d}.mp4"
                with Writer(path, size=(SIDE, SIDE), fps=10) as writer:
                    for frame in frames:
                        writer.write(frame)
    return folder


def make_config(world: Path, **changes: Any) -> RecognitionConfig:
    """A run of a few steps; tables are merged."""
    content: dict[str, Any] = {
        "recogniser": "tiny_clips",
        "data": {
            "dataset": "folder",
            "root": str(world),
            "train": "train",
            "select": "val",
            "cache": str(world.parent / "cache"),
            "jobs": 1,
        },
        "optimiser": {"lr": 5e-3, "warmup_epochs": 1, "epochs": 2, "batch": 8, "average": 0.9},
        "device": "cpu",
        "seed": 3,
    }
    for name, value in changes.items():
        content[name] = {**content.get(name, {}), **value} if isinstance(value, dict) else value
    return make_settings(RecognitionConfig, content)
