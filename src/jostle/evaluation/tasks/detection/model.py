"""Detectors of actions as models of a benchmark: on features of an extractor, or on frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.tasks.requested_model import identify, one_thread, own_model, refuse_features
from jostle.models.loading.detectors import load_detector, name_classes
from jostle.models.loading.reference import ModelRef
from jostle.models.weights.resolve import weights_path

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig
    from jostle.evaluation.inference.detection import (
        ClipDetectionPredictor,
        FeatureDetectionPredictor,
        WholeVideoPredictor,
    )
    from jostle.evaluation.inference.feature_detection import DetectsInFeatures
    from jostle.features.options import ReleasedBug, Rule


def build_detector(truth: Truth, config: InferenceConfig, device: str, *, here: bool) -> BenchmarkModel:
    """Resolve a detector; see `Task.build_model`."""
    for name, value in (("spec", config.spec), ("input", config.input)):
        if value is not None:
            raise BadValue(f"{name} is for recognisers, and this benchmark is of detection; leave it out")
    user_model = own_model("detector", config)
    if user_model is None:
        return _build_registered_detector(config, truth, device, here)
    features = None if config.extractor is None else _build_features(config, config.extractor)
    if features is None:
        refuse_features(config, f"{user_model.name} processes frames unless an extractor is named, --extractor NAME")
    load = partial(_load_user_detector, user_model, features, device)
    if here:
        load()
    return BenchmarkModel(load, **identify(user_model), **({} if features is None else features.fields))


def _build_registered_detector(config: InferenceConfig, truth: Truth, device: str, here: bool) -> BenchmarkModel:
    from jostle.io.video.source import file_fingerprint
    from jostle.models.detection.detector import detectors
    from jostle.models.loading.extractors import recorded_extractor

    model = str(config.model)
    if config.weights is None:
        raise BadValue(f"{model} needs weights, and none come with jostle; give --weights")
    path = weights_path("detectors", model, config.weights)
    if detectors[model].model.looks_at == "frames":
        if config.extractor is not None:
            raise BadValue(f"{model} processes frames itself; leave the extractor out")
        refuse_features(config, f"{model} processes frames")
        load_frames = partial(_load_frame_detector, model, path, device, truth)
        if here:
            load_frames()
        return BenchmarkModel(load_frames, model=model, weights=file_fingerprint(path), weights_from="file")
    extractor = config.extractor
    if extractor is None:
        extractor = recorded_extractor(model, path, path)
    features = _build_features(config, extractor)
    load = partial(_load_feature_detector, model, path, features, device, truth)
    if here:
        load()  # faults of the weights show before the first video
    return BenchmarkModel(load, model=model, weights=file_fingerprint(path), weights_from="file", **features.fields)


@dataclass(frozen=True)
class _Features:
    """Extractor of a detector, with its window options."""

    extractor: ModelRef
    rule: Rule
    reproduce_bugs: tuple[ReleasedBug, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the `BenchmarkModel` that describe the features."""
        windows = {"rule": self.rule, "reproduce_bugs": self.reproduce_bugs}
        return {"extractor": self.extractor.name, "extractor_weights": self.extractor.identity()[0], **windows}

    def predictor(self, detector: DetectsInFeatures, device: str) -> FeatureDetectionPredictor:
        """Return the predictor; one thread each, so that results do not depend on the machine or the processes."""
        from jostle.evaluation.inference.detection import FeatureDetectionPredictor

        return FeatureDetectionPredictor(
            self.extractor.get(device), detector, one_thread(), self.rule, self.reproduce_bugs
        )


def _build_features(config: InferenceConfig, extractor: Any) -> _Features:
    from jostle.features.windows import WindowGrid

    faults = tuple(sorted(set(config.reproduce_bugs)))
    WindowGrid(1, 1, config.rule, faults)  # validates both
    return _Features(ModelRef("extractor", extractor, config.extractor_weights), config.rule, faults)


def _load_feature_detector(
    model: str, weights: Path, features: _Features, device: str, truth: Truth
) -> FeatureDetectionPredictor:
    detector = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return features.predictor(detector, device)


def _load_frame_detector(model: str, weights: Path, device: str, truth: Truth) -> ClipDetectionPredictor:
    from jostle.evaluation.inference.detection import ClipDetectionPredictor

    detector: Any = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return ClipDetectionPredictor(detector, one_thread())


def _load_user_detector(
    user_model: ModelRef, features: _Features | None, device: str
) -> FeatureDetectionPredictor | WholeVideoPredictor[Segments]:
    from jostle.evaluation.inference.detection import CallableDetector, WholeVideoPredictor

    model = user_model.get()
    detects = hasattr(model, "detect")
    if not detects and not callable(model):
        raise BadValue(f"{user_model.name}: a detector is a callable on frames or features, or has a method detect")
    if features is None:
        if detects:
            raise BadValue(f"{user_model.name}: detects actions in features; name an extractor, --extractor NAME")
        return WholeVideoPredictor(model, one_thread())
    if detects and hasattr(model, "to"):
        model.to(device)
    return features.predictor(model if detects else CallableDetector(model), device)
