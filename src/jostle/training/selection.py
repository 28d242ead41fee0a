"""Selection of the best epoch on videos that are neither learned from nor tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError
from jostle.io.files.annotations import read_truth
from jostle.metrics.protocol import protocols
from jostle.metrics.score import score
from jostle.models.detection.config import DetectorConfig
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.training.detection_config import DataConfig, TrainingConfig
from jostle.training.feature_crops import FeatureVideo, load_videos
from jostle.training.held_out import split
from jostle.training.learner import with_average
from jostle.training.optimisation import Average


@dataclass(frozen=True, eq=False)
class Selection:
    """Held-out videos and how they are scored.

    Attributes:
        videos: held-out videos.
        truth: their ground truth.
        protocol: scoring protocol.
        tious: thresholds, the protocol's own or the one of `chosen_by`.
        data: settings of the features: stride and window.
    """

    videos: list[FeatureVideo]
    truth: Truth
    protocol: str
    tious: tuple[float, ...]
    data: DataConfig

    @classmethod
    def of(cls, config: TrainingConfig, held_out: tuple[list[FeatureVideo], Truth]) -> Selection:
        """Create the selection from the settings."""
        tious = thresholds(config.protocol, config.chosen_by)
        return cls(held_out[0], held_out[1], config.protocol, tious, config.data)

    def score(self, detector: FeatureDetector[Any], average: Average) -> float:
        """Return the mean average precision of the averaged weights."""
        with with_average(detector, average):
            predictions = detect_all(detector, self.videos, self.data)
        return score(predictions, self.truth, protocol=self.protocol, tious=self.tious).average_map


def thresholds(protocol: str, chosen_by: str) -> tuple[float, ...]:
    """Parse `chosen_by`: `average_map`, or `map@0.5`."""
    if chosen_by == "average_map":
        return protocols[protocol].tious
    name, _, value = chosen_by.partition("@")
    try:
        tious = (float(value),)
    except ValueError:
        name = ""
    if name != "map":
        raise BadValue(f"chosen_by is average_map or map@<tIoU>, as in map@0.5; got {chosen_by!r}")
    return tious


def detect_all(detector: FeatureDetector[Any], videos: Sequence[FeatureVideo], data: DataConfig) -> Predictions:
    """Run a detector on each video."""
    detections: dict[str, Segments] = {}
    stride, window = data.grid
    for video in videos:
        detections[video.name] = detector.detect(
            video.features, fps=video.fps, duration=video.duration, stride=stride, window=window
        )
    return Predictions.from_segments(detections)


def split_videos(
    config: TrainingConfig, detector: DetectorConfig
) -> tuple[tuple[str, ...], list[FeatureVideo], tuple[list[FeatureVideo], Truth] | None]:
    """Return class names by number, training videos, and held-out videos with their truth.

    Raises:
        DataError: if the truth has more classes than the detector.
    """
    data, width = config.data, detector.input_dim
    names, numbers = class_numbers(read_truth(data.truth), detector.classes, data.truth)
    longest = detector.max_length if detector.stretches else None
    videos, truth = load_videos(data, data.train, numbers, channels=width, resize=longest)
    learn = [video for video in videos if len(video.labels)]
    if isinstance(data.select, str):
        others, other_truth = load_videos(data, data.select, numbers, channels=width, learned_from=False)
        return names, learn, (others, restrict_truth(other_truth, [video.name for video in others], names, numbers))
    if not data.select:
        return names, learn, None
    rows, held = split([video.name for video in learn], data.select, config.seed)
    chosen = {learn[row].name for row in held}
    if longest is not None:  # a detector resizes its input by itself
        videos, _ = load_videos(data, data.train, numbers, channels=width, learned_from=False)
    selected = [video for video in videos if video.name in chosen]
    known = restrict_truth(truth, [video.name for video in selected], names, numbers)
    return names, [learn[row] for row in rows], (selected, known)


def class_numbers(truth: Truth, classes: int, where: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the detector's class names, and the number of each class of the ground truth.

    Numbers are those of the truth, or else follow the alphabet. A detector of one class takes every action for it.

    Args:
        where: origin of the truth, for messages.
    """
    if classes == 1:
        return ("action",), dict.fromkeys(truth.classes, 0)
    numbers = dict(zip(truth.classes, truth.label_ids or (), strict=False))
    if truth.label_ids is None:
        numbers = {name: i for i, name in enumerate(sorted(truth.classes))}
    most = max(numbers.values()) + 1
    if most > classes:
        raise DataError(
            f"{where}: classes are numbered up to {most - 1}, but the detector has {classes} classes; "
            "set settings.classes",
            fault="F36",
        )
    by_number = {number: name for name, number in numbers.items()}
    return tuple(by_number.get(i, f"class {i}") for i in range(classes)), numbers


def restrict_truth(truth: Truth, videos: Sequence[str], names: tuple[str, ...], numbers: Mapping[str, int]) -> Truth:
    """Restrict the truth to these videos, so that unprocessed videos do not count as missed."""
    subset = truth.of_videos(list(videos))
    renumber = np.array([numbers[name] for name in truth.classes], np.int32)
    return replace(subset, classes=names, label=renumber[subset.label], label_ids=None)
