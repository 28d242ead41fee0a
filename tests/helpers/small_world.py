"""A small world to learn: features whose first channels say what is going on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.settings import make_settings
from jostle.training.detection_config import TrainingConfig

FPS, STRIDE, WINDOW, STEPS, WIDTH = 25.0, 4, 16, 64, 8


def write_world(folder: Path, videos: int = 14) -> Path:
    """Feature files, the same with some rows blacked out, and annotations of two classes."""
    database = {}
    for which in ("clean", "rough"):
        (folder / which).mkdir(parents=True)
    for i in range(videos):
        rng = np.random.default_rng(i)
        features = 0.1 * rng.standard_normal((STEPS, WIDTH)).astype(np.float32)
        annotations = []
        for start in (6, 36):
            label = int(rng.integers(0, 2))
            length = int(rng.integers(8, 16))
            features[start : start + length, label] += 2
            seconds = [(step * STRIDE + WINDOW / 2) / FPS for step in (start, start + length)]
            annotations.append({"label": ("Jump", "Run")[label], "label_id": label, "segment": seconds})
        name = f"video{i:02d}"
        np.save(folder / "clean" / f"{name}.npy", features)
        rough = features.copy()
        rough[rng.integers(0, STEPS, 6)] = 0
        np.save(folder / "rough" / f"{name}.npy", rough)
        database[name] = {
            "subset": "Validation" if i < videos - 4 else "Test",
            "duration": (STEPS * STRIDE + WINDOW) / FPS,
            "fps": FPS,
            "annotations": annotations,
        }
    (folder / "truth.json").write_text(json.dumps({"version": "1", "database": database}))
    return folder


def make_config(world: Path, **changes: Any) -> TrainingConfig:
    """A run of a few steps; nested tables are merged."""
    content: dict[str, Any] = {
        "detector": "temporalmaxer",
        "settings": {"input_dim": WIDTH, "dim": 16, "classes": 2, "max_length": 64, "levels": 4, "normaliser": 10.0},
        "data": {"features": str(world / "clean"), "truth": str(world / "truth.json"), "train": "validation"},
        "optimiser": {"lr": 3e-3, "warmup_epochs": 1, "epochs": 2, "average": 0.9},
        "device": "cpu",
        "seed": 3,
    }
    for name, value in changes.items():
        content[name] = {**content.get(name, {}), **value} if isinstance(value, dict) else value
    return make_settings(TrainingConfig, content)
