"""Export of networks, recognisers and feature detectors to ONNX files, compared with torch before they are kept."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from jostle.core.results import Result
from jostle.errors import BadValue, CheckpointError, MissingExtra
from jostle.io.files.atomic import write_bytes
from jostle.models.detection.detector import Detector
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.models.recognition.recogniser import Recogniser

OPSET = 20
TOLERANCE = 1e-3  # of outputs, relative to the largest of them: beyond it the file is another network


@dataclass(frozen=True)
class OnnxFile(Result):
    """A network that was exported to a file.

    Attributes:
        inputs: shapes by name, in order; a text is a length that may vary.
        outputs: names, in order.
        difference: largest difference from torch's outputs under ONNX Runtime; None where that is not installed.
    """

    json_keys = ("out", "opset", "inputs", "outputs", "bytes", "difference")

    path: Path
    inputs: dict[str, tuple[int | str, ...]]
    outputs: tuple[str, ...]
    difference: float | None
    opset: int = OPSET

    @property
    def out(self) -> Path:
        """The file that was written."""
        return self.path

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size

    def written(self) -> tuple[Path, ...]:
        """Return the path of the file."""
        return (self.path,)

    def notes(self) -> tuple[str, ...]:
        """Return inputs and outputs, and how far they are from torch's."""
        shapes = ", ".join(f"{name} ({', '.join(map(str, shape))})" for name, shape in self.inputs.items())
        compared = "not compared, as onnxruntime is not installed"
        if self.difference is not None:
            compared = f"at most {self.difference:.1e} from torch"
        return (f"opset {self.opset}; inputs {shapes}; outputs {', '.join(self.outputs)}; {compared}",)


def export_module(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    path: Path,
    *,
    varying: Mapping[str, Mapping[int, str]] | None = None,
    metadata: Mapping[str, str] | None = None,
    name: str,
) -> OnnxFile:
    """Write a network as an ONNX file that holds its weights, and compare it with torch.

    Args:
        inputs: example inputs by name, in the order of the arguments of `forward`.
        outputs: names of what `forward` returns, a tensor or a tuple of them.
        varying: names of the lengths that may vary, by input and axis; equal names are equal lengths.
        metadata: texts for the file, by key.
        name: name of the network, for messages.

    Raises:
        BadValue: if torch cannot export it.
        CheckpointError: if the file gives other outputs than torch.
        MissingExtra: if onnx or onnxscript is not installed.
    """
    for package in ("onnx", "onnxscript"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtra("export to ONNX", "export") from None
    if path.suffix.lower() != ".onnx":
        raise BadValue(f"{path}: an exported network is an .onnx file; name it so")
    varying = varying or {}
    lengths = {text: torch.export.Dim(text) for axes in varying.values() for text in axes.values()}
    shapes = {key: {axis: lengths[text] for axis, text in varying.get(key, {}).items()} for key in inputs}
    module = module.eval()
    try:
        with _silence(), torch.no_grad():
            program = torch.onnx.export(
                module,
                tuple(inputs.values()),
                dynamo=True,
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_shapes=tuple(shapes.values()),
                opset_version=OPSET,
                verbose=False,
            )
    except Exception as error:  # torch's exporter raises whatever its parts raise
        raise BadValue(f"{name}: torch cannot export this network to ONNX ({_reason(error)})") from None
    assert program is not None
    program.model.metadata_props.update(metadata or {})
    data = program.model_proto.SerializeToString()
    difference = _difference(module, inputs, data, name)
    write_bytes(path, [data])
    facts = {
        key: tuple(varying.get(key, {}).get(axis, size) for axis, size in enumerate(value.shape))
        for key, value in inputs.items()
    }
    return OnnxFile(path, facts, tuple(outputs), difference)


def _difference(module: nn.Module, inputs: Mapping[str, Tensor], data: bytes, name: str) -> float | None:
    """Return the largest difference between torch and ONNX Runtime, None where the latter is not installed."""
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    with torch.no_grad():
        expected = module(*inputs.values())
    results = session.run(None, {key: value.numpy() for key, value in inputs.items()})
    expected = (expected,) if isinstance(expected, Tensor) else expected
    largest = 0.0
    for ours, theirs in zip(expected, results, strict=True):
        apart = float(np.abs(ours.double().numpy() - np.asarray(theirs, np.float64)).max(initial=0.0))
        if not apart <= TOLERANCE * max(float(ours.double().abs().max()), 1.0):
            raise CheckpointError(
                f"{name}: the exported network differs from torch's by {apart:.3g}; nothing was written"
            )
        largest = max(largest, apart)
    return largest


def _reason(error: BaseException) -> str:
    """Return the first line of the error that the others were raised from."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().split("\n")
    return f"{type(error).__name__}: {lines[0][:200]}" if lines[0] else type(error).__name__


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporter's remarks, of which none concerns the user, out of the output."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


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
