"""Choosing an epoch: by videos that are neither learned from nor tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.core.random import rng_for
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
from jostle.training.feature_crops import Video, load_videos
from jostle.training.optimisation import Average


@dataclass(frozen=True, eq=False)
class Selection:
    """Videos to choose by, and how they are scored.

    Attributes:
        videos: held out.
        truth: about them.
        protocol: how they are scored.
        tious: thresholds, the protocol's own or the one that the choice is by.
        data: of the features: stride and window.
    """

    videos: list[Video]
    truth: Truth
    protocol: str
    tious: tuple[float, ...]
    data: DataConfig

    @classmethod
    def of(cls, config: TrainingConfig, held_out: tuple[list[Video], Truth]) -> Selection:
        """Videos held out, scored as the settings say."""
        tious = thresholds(config.protocol, config.chosen_by)
        return cls(held_out[0], held_out[1], config.protocol, tious, config.data)

    def score(self, detector: FeatureDetector[Any], average: Average) -> float:
        """Mean average precision of the averaged weights."""
        learned = {name: value.clone() for name, value in detector.state_dict().items()}
        detector.load_state_dict(average.weights)
        try:
            found = detect_all(detector, self.videos, self.data)
        finally:
            detector.load_state_dict(learned)
        return score(found, self.truth, protocol=self.protocol, tious=self.tious).average_map


def thresholds(protocol: str, chosen_by: str) -> tuple[float, ...]:
    """Read `chosen_by`: `average_map`, or `map@0.5`.

    Raises:
        BadValue: if it is neither.
    """
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


def held_out_names(names: Sequence[str], share: float, seed: int) -> set[str]:
    """A share of the videos, drawn by their names; one at least."""
    by_name = sorted(names)
    order = rng_for(seed, "held out", *by_name).permutation(len(by_name))
    return {by_name[i] for i in order[: max(1, round(share * len(by_name)))]}


def detect_all(detector: FeatureDetector[Any], videos: Sequence[Video], data: DataConfig) -> Predictions:
    """What a detector finds in each video."""
    found: dict[str, Segments] = {}
    stride, window = data.grid
    for video in videos:
        found[video.name] = detector.detect(
            video.features, fps=video.fps, duration=video.duration, stride=stride, window=window
        )
    return Predictions.from_segments(found)


def split_videos(
    config: TrainingConfig, detector: DetectorConfig
) -> tuple[tuple[str, ...], list[Video], tuple[list[Video], Truth] | None]:
    """Class names in the order of their numbers, videos to learn from, and those to choose by with their truth.

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
        return names, learn, (others, only_of(other_truth, [video.name for video in others], names, numbers))
    if not data.select:
        return names, learn, None
    held = held_out_names([video.name for video in learn], data.select, config.seed)
    if longest is not None:  # a detector stretches what it looks at by itself
        videos, _ = load_videos(data, data.train, numbers, channels=width, learned_from=False)
    kept = [video for video in videos if video.name in held]
    known = only_of(truth, [video.name for video in kept], names, numbers)
    return names, [video for video in learn if video.name not in held], (kept, known)


def class_numbers(truth: Truth, classes: int, where: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """The detector's class names, and the number of each class of the ground truth.

    Numbers are those of the truth, or else follow the alphabet. A detector of one class takes every action for it.

    Args:
        where: the truth comes from.

    Raises:
        DataError: if there are more classes than the detector tells apart.
    """
    if classes == 1:
        return ("action",), dict.fromkeys(truth.classes, 0)
    numbers = dict(zip(truth.classes, truth.label_ids or (), strict=False))
    if truth.label_ids is None:
        numbers = {name: i for i, name in enumerate(sorted(truth.classes))}
    most = max(numbers.values()) + 1
    if most > classes:
        raise DataError(
            f"{where}: classes are numbered up to {most - 1}, but the detector tells {classes} apart; "
            "set settings.classes",
            fault="F36",
        )
    by_number = {number: name for name, number in numbers.items()}
    return tuple(by_number.get(i, f"class {i}") for i in range(classes)), numbers


def only_of(truth: Truth, videos: Sequence[str], names: tuple[str, ...], numbers: Mapping[str, int]) -> Truth:
    """The truth of these videos alone, so that what was never looked at does not count as missed."""
    seen = truth.of_videos(list(videos))
    renumber = np.array([numbers[name] for name in truth.classes], np.int32)
    return replace(seen, classes=names, label=renumber[seen.label], label_ids=None)
