"""Predictors of every task, in a module of their own, so that processes that load one do not import torch."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from helpers import small_recognition
from helpers.small_recognition import Weigher
from jostle.core.types import Segments
from jostle.evaluation.inference.detection import ClipDetectionPredictor, WholeVideoPredictor


class BatchingWeigher(Weigher):
    """Model that takes several clips at once."""

    def together(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        return [self(part) for part in parts]


def batching_predictor() -> Any:
    return replace(small_recognition.recognition_predictor(), model=BatchingWeigher(), batch=4)


def concatenating_predictor() -> Any:
    return replace(small_recognition.recognition_predictor(), batch=5)


def detect_brightness(frames: np.ndarray, fps: float) -> Segments:
    light = float(frames.astype(np.float64).sum() % 9973) / 9973
    return Segments([0.1], [0.5 + light + fps / 100], [0], [light], ("action",))


def frame_detection_predictor() -> WholeVideoPredictor:
    return WholeVideoPredictor(detect_brightness)


def clip_detection_predictor() -> ClipDetectionPredictor:
    from tests.evaluation.inference.test_clip_detection import detector_of

    detector = detector_of("afsd")
    detector.config = replace(detector.config, class_names=("action", "action"))
    return ClipDetectionPredictor(detector)


def torch_predictor() -> Any:
    import torch

    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser

    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool3d(1), torch.nn.Flatten())
    spec = InputSpec(frames=4, stride=4, resize=20, size=16)
    return replace(small_recognition.recognition_predictor(), model=Recogniser(network, spec), batch=4)


def worker_id(look: object, frames: np.ndarray) -> int:
    return os.getpid()
