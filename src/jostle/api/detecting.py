"""Detectors and extractors: load them, run them over features, train them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue, MissingExtra
from jostle.types.predictions import Predictions
from jostle.types.truth import Truth

if TYPE_CHECKING:
    from jostle.detectors.detector import Detector
    from jostle.evaluation.detection import Grid
    from jostle.models.extractor import Extractor
    from jostle.training.config import TrainingConfig
    from jostle.training.loop import Trained

Progress = Callable[[int, int], None]


def load_detector(name: str, *, weights: str | Path | None = None, **config: Any) -> Detector[Any]:
    """A detector by name, ready for inference.

    Weights that `jostle train` wrote bring their settings and class names along.

    Args:
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`.
        weights: our `.safetensors`, an original's `.pth.tar` or OpenTAD's `.pth`; read without trusting a pickle.
        config: settings to change, such as `input_dim`, `dim`, `classes`, `max_length`.

    Raises:
        CheckpointError: if the weights do not fit; the message lists the differences.
    """
    _need_torch("detectors")
    from jostle.detectors.checkpoints import read_metadata
    from jostle.detectors.detector import load_detector as load

    if weights is not None:
        kept = read_metadata(weights)
        if kept.get("detector") == name:
            own = json.loads(kept.get("settings", "{}"))
            names = tuple(json.loads(kept.get("classes", "[]")))
            config = own | ({"class_names": names} if names else {}) | config
    return load(name, weights=weights, **config)


def load_extractor(name: str, *, weights: str | Path | None = None) -> Extractor:
    """A feature extractor by name: (B, T, H, W, 3) uint8 frames in, (B, C) float32 features out.

    Args:
        name: one of `jostle names extractors`.
        weights: a checkpoint in the public layout; without one the error says where to get it.
    """
    _need_torch("extractors")
    from jostle.detectors.checkpoints import read_weights
    from jostle.models.extractor import load_extractor as load

    return load(name, weights=None if weights is None else read_weights(weights))


def detect(
    source: str | Path,
    detector: Detector[Any],
    *,
    truth: Truth | str | Path | None = None,
    grid: Grid | None = None,
    duration: float | None = None,
    video_scores: str | Path | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """What a detector finds in a feature file, or in each of a folder.

    Args:
        truth: gives rate and duration of the videos, and which ones to look at.
        grid: stride, window, rate and file names of the features.
        duration: of a single video, in seconds.
        video_scores: JSON of a video classifier, for class-agnostic detectors such as those for ActivityNet.
    """
    import dataclasses

    from jostle.datasets.files import read_truth
    from jostle.evaluation.detection import Grid, detect_features, read_video_scores

    known = truth if truth is None or isinstance(truth, Truth) else read_truth(truth)
    scores = None if video_scores is None else read_video_scores(video_scores)
    names = scores.classes if scores is not None else detector.config.class_names
    if not names and known is not None and known.label_ids is not None:  # public weights know numbers only
        by_number = dict(zip(known.label_ids, known.classes, strict=True))
        most = max([*by_number, detector.config.classes - 1]) + 1
        names = tuple(by_number.get(i, f"class {i}") for i in range(most))
    detector.config = dataclasses.replace(detector.config, class_names=names)
    return detect_features(
        detector,
        Path(source),
        grid or Grid(),
        truth=known,
        duration=duration,
        video_scores=scores,
        progress=progress,
    )


def train(
    config: str | Path | TrainingConfig,
    out: str | Path,
    *,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
) -> Trained:
    """Train a detector, clean or robust; a run that was stopped in `out` goes on.

    Args:
        config: a TOML file, or the settings themselves.
        out: folder for checkpoint, log and weights.
        overrides: `key=value`, on top of the file.
    """
    _need_torch("training")
    from jostle.settings import read_settings
    from jostle.training.config import TrainingConfig
    from jostle.training.loop import train as run

    if isinstance(config, TrainingConfig):
        if list(overrides):
            raise BadValue("overrides go with a file of settings; change the settings themselves")
        return run(config, Path(out), on_step=progress)
    return run(read_settings(TrainingConfig, config, overrides), Path(out), on_step=progress)


def _need_torch(what: str) -> None:
    if find_spec("torch") is None:
        raise MissingExtra(what, "torch")
