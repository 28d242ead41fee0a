"""Recognisers and feature detectors as ONNX files: what goes in, and what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.detector import Detector
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.models.onnx_export import OnnxFile, export_module
from jostle.models.recognition.recogniser import Recogniser


def export_recogniser(model: Recogniser, path: Path) -> OnnxFile:
    """Export a recogniser: `clips`, prepared crops in the layout of its input spec, to `scores`.

    The input spec, by which frames become crops, is in the file's metadata.
    """
    if not isinstance(model.network, nn.Module) or model.spec is None:
        raise BadValue(f"{model.name}: only networks of torch can be exported; this one runs elsewhere")
    spec = model.spec
    side = spec.shrunk or spec.size
    lengths = {"C": 3, "T": spec.frames, "H": side, "W": side}
    clips = torch.rand(2, *(lengths[axis] for axis in spec.layout), generator=torch.Generator().manual_seed(0))
    metadata = {
        "jostle.model": model.name,
        "jostle.outputs": model.outputs,
        "jostle.layout": f"B{spec.layout}",
        "jostle.mean": json.dumps(spec.mean),
        "jostle.std": json.dumps(spec.std),
        "jostle.classes": json.dumps(model.classes),
    }
    return export_module(
        model.network.cpu(),
        {"clips": clips},
        ["scores"],
        path,
        varying={"clips": {0: "batch"}},
        metadata=metadata,
        name=model.name,
    )


class _RawOutputs(nn.Module):
    """A feature detector whose raw outputs are plain tensors."""

    def __init__(self, detector: FeatureDetector) -> None:  # type: ignore[type-arg]
        super().__init__()
        self.detector = detector

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs = self.detector(features, lengths)
        return outputs.logits, self.detector.every_offset(outputs), outputs.mask


def export_detector(detector: Detector, path: Path, name: str) -> OnnxFile:  # type: ignore[type-arg]
    """Export a feature detector: a window of `features` and its `lengths` to `logits`, `offsets`, `mask` of its points.

    The length of the window is fixed; shorter ones are filled up with zeros. Decoding and suppression stay outside.
    """
    if not isinstance(detector, FeatureDetector):
        raise BadValue(
            f"{name}: this detector reads frames in several stages, which is not one network to export; feature "
            "detectors and recognisers can be exported"
        )
    config = detector.config
    shape = (1, config.input_dim, config.max_length)
    features = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    return export_module(
        _RawOutputs(detector.cpu()),
        {"features": features, "lengths": torch.tensor([config.max_length])},
        ["logits", "offsets", "mask"],
        path,
        metadata={"jostle.model": name, "jostle.classes": json.dumps(config.class_names)},
        name=name,
    )
