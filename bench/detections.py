"""Synthetic ground truth and detections of the size and shape of a THUMOS14 run, for timing scorers."""

from __future__ import annotations

import numpy as np

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth

CLASSES = tuple(f"class{i:02d}" for i in range(20))


def make_truth(videos: int = 212, instances: int = 3300, *, seed: int = 0) -> Truth:
    """Return instances in videos of one to ten minutes, nine in ten of them of one class a video."""
    rng = np.random.default_rng(seed)
    duration = rng.uniform(60, 600, videos)
    video = np.sort(rng.integers(0, videos, instances)).astype(np.int32)
    own = rng.integers(0, len(CLASSES), videos)
    label = np.where(rng.random(instances) < 0.9, own[video], rng.integers(0, len(CLASSES), instances))
    length = np.minimum(rng.gamma(2.0, 2.0, instances) + 0.3, duration[video] / 2)
    start = rng.random(instances) * (duration[video] - length)
    return Truth(
        videos=tuple(f"video_{i:05d}" for i in range(videos)),
        classes=CLASSES,
        video=video,
        start=start,
        end=start + length,
        label=label.astype(np.int32),
        duration=duration,
    )


def make_predictions(truth: Truth, count: int, *, seed: int = 1) -> Predictions:
    """Return predictions: a third near an instance, some with a wrong class, the rest anywhere; scores are distinct."""
    rng = np.random.default_rng(seed)
    near = rng.random(count) < 0.35
    source = rng.integers(0, len(truth), count)
    video = np.where(near, truth.video[source], rng.integers(0, len(truth.videos), count)).astype(np.int32)
    length = truth.end[source] - truth.start[source]
    start = np.where(
        near,
        truth.start[source] + rng.normal(0, 0.2, count) * length,
        rng.random(count) * truth.duration[video],
    )
    wrong = rng.random(count) < np.where(near, 0.15, 0.8)
    label = np.where(wrong, rng.integers(0, len(CLASSES), count), truth.label[source]).astype(np.int32)
    score = rng.random(count) * np.where(near & ~wrong, 1.0, 0.7)
    return Predictions(
        videos=truth.videos,
        classes=CLASSES,
        video=video,
        start=np.maximum(start, 0),
        end=np.maximum(start, 0) + length * rng.uniform(0.6, 1.5, count),
        label=label,
        score=score,
    )
