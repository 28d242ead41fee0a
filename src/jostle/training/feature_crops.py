"""Training videos as features, actions on the feature grid, and random crops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from jostle.core.formatting import join_names
from jostle.core.random import rng_for
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.annotations import read_truth
from jostle.io.files.arrays import check_length, read_features
from jostle.training.detection_config import DataConfig

Features = npt.NDArray[np.float32]
TRIES = 200  # crops drawn before one without an action is refused


@dataclass(frozen=True, eq=False)
class FeatureVideo:
    """Features and actions of one training video.

    Attributes:
        features: (T, C) clean.
        corrupted: (T, C) or None.
        segments: (M, 2) actions on the feature grid; a start may lie a little before 0.
        labels: (M,) class numbers.
        fps: rate of its frames.
        duration: seconds.
    """

    name: str
    features: Features
    corrupted: Features | None
    segments: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    fps: float
    duration: float


@dataclass(frozen=True, eq=False)
class FeatureSample:
    """Crop of a video, as one step uses it."""

    features: Features
    corrupted: Features | None
    segments: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]


def load_videos(
    config: DataConfig,
    subset: str,
    numbers: Mapping[str, int],
    *,
    channels: int,
    resize: int | None = None,
    learned_from: bool = True,
) -> tuple[list[FeatureVideo], Truth]:
    """Load the videos of a subset that have features, and the truth about all of them.

    Args:
        numbers: of the classes.
        channels: width of a feature.
        resize: stretch every video to so many steps.
        learned_from: whether corrupted features are wanted too, where the settings name some.
    """
    truth = read_truth(config.truth, subset=subset)
    paths = [Path(config.features) / f"{config.prefix}{name}{config.suffix}" for name in truth.videos]
    available = [path.is_file() for path in paths]
    if not any(available):
        raise DataError(
            f"{config.features}: no features of the {len(paths)} videos of subset {subset!r}; expected "
            f"{join_names([path.name for path in paths])}; check prefix and suffix",
            fault="F21",
        )
    number = np.array([numbers[name] for name in truth.classes], np.int64)
    videos = []
    steps, size = config.grid
    for v, (name, path) in enumerate(zip(truth.videos, paths, strict=True)):
        if not available[v]:
            continue
        rows = truth.video == v
        annotated = float(truth.fps[v]) if np.isfinite(truth.fps[v]) else config.fps
        fps = config.rates.get(path.name, annotated)
        if fps is None:
            raise DataError(f"{config.truth}: video {name} has no rate; add 'fps' to it, or set data.fps", fault="F34")
        features = read_features(path, channels=channels)
        duration = float(truth.duration[v])
        if np.isfinite(duration):
            check_length(features, duration, fps, steps, size)
        else:
            duration = ((len(features) - 1) * steps + size) / fps
        times = np.stack([truth.start[rows], truth.end[rows]], axis=1)
        corrupted = _read_corrupted(config, path.name, features) if learned_from else None
        stride, window = float(steps), float(size)
        if resize is not None:
            stride = window = ((len(features) - 1) * stride + window) / resize
            features = resize_features(features, resize)
            corrupted = None if corrupted is None else resize_features(corrupted, resize)
        videos.append(
            FeatureVideo(
                name=name,
                features=features,
                corrupted=corrupted,
                segments=(times * fps / stride - 0.5 * window / stride).astype(np.float32),
                labels=number[truth.label[rows]],
                fps=fps,
                duration=duration,
            )
        )
    return videos, truth


def resize_features(features: Features, steps: int) -> Features:
    """Resample features to `steps` rows by linear interpolation, as a detector does.

    >>> resize_features(np.array([[0.0], [4.0]], np.float32), 4)[:, 0].tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    x = torch.from_numpy(features.T[None])
    resized: Features = F.interpolate(x, steps, mode="linear", align_corners=False)[0].T.contiguous().numpy()
    return resized


def _read_corrupted(config: DataConfig, name: str, features: Features) -> Features | None:
    if config.corrupted is None:
        return None
    path = Path(config.corrupted) / name
    other = read_features(path, channels=features.shape[1])
    if other.shape != features.shape:
        raise DataError(
            f"{path}: corrupted features are {other.shape}, clean ones {features.shape}; extract both alike",
            fault="F51",
        )
    return other


def crop(
    video: FeatureVideo, config: DataConfig, *, longest: int, slack: float, seed: int, epoch: int, view: int = 0
) -> FeatureSample:
    """Draw a crop with at least one action, keyed by the video's name, the epoch and the view.

    A video of up to `longest` steps keeps a share of itself, a longer one `longest` steps. Actions that are mostly
    outside go; the rest is cut at the edges, or `slack` steps beyond them.
    """
    steps = len(video.features)
    rng = rng_for(seed, "crop", epoch, video.name, view)
    least, most = (max(1, round(share * steps)) for share in config.crop)
    for _ in range(TRIES):
        length = longest if steps > longest else int(rng.integers(least, most + 1))
        start = int(rng.integers(0, steps - length + 1))
        left = np.clip(video.segments[:, 0], start - slack, start + length + slack)
        right = np.clip(video.segments[:, 1], start - slack, start + length + slack)
        whole = np.abs(video.segments[:, 1] - video.segments[:, 0])
        keep = (right - left) / np.maximum(whole, 1e-8) >= config.visible
        if keep.any():
            return FeatureSample(
                video.features[start : start + length],
                None if video.corrupted is None else video.corrupted[start : start + length],
                np.stack([left[keep], right[keep]], axis=1) - start,
                video.labels[keep],
            )
    raise DataError(
        f"video {video.name}: none of {TRIES} crops of at most {longest} steps shows an action; "
        "leave the video out, or lower data.visible",
        fault="F95",
    )
