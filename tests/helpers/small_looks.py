"""Looks for every task, apart from the tests: processes that load one do without what those import, torch above all."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from helpers import small_recognition
from helpers.small_recognition import Weigher
from jostle.core.types import Segments
from jostle.evaluation.inference.detection import ClipDetectionPredictor, FrameDetectionPredictor


class Gathering(Weigher):
    """A model that looks at several clips at once."""

    def together(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        return [self(part) for part in parts]


def gathering() -> Any:
    return replace(small_recognition.recognising(), model=Gathering(), batch=4)


def concatenating() -> Any:
    return replace(small_recognition.recognising(), batch=5)


def lit(frames: np.ndarray, fps: float) -> Segments:
    light = float(frames.astype(np.float64).sum() % 9973) / 9973
    return Segments([0.1], [0.5 + light + fps / 100], [0], [light], ("action",))


def by_frames() -> FrameDetectionPredictor:
    return FrameDetectionPredictor(lit)


def by_clips() -> ClipDetectionPredictor:
    from tests.evaluation.inference.test_clip_detection import detector_of

    detector = detector_of("afsd")
    detector.config = replace(detector.config, class_names=("action", "action"))
    return ClipDetectionPredictor(detector)


def with_torch() -> Any:
    import torch

    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser

    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool3d(1), torch.nn.Flatten())
    spec = InputSpec(frames=4, stride=4, resize=20, size=16)
    return replace(small_recognition.recognising(), model=Recogniser(network, spec), batch=4)


def who(look: object, frames: np.ndarray) -> int:
    return os.getpid()
