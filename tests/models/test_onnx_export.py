"""Exported ONNX networks equal torch; unsupported exports are refused with a reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn

import jostle
from jostle.errors import BadValue, UnknownName
from jostle.mending.descriptor_layout import CELLS, CHANNELS
from jostle.mending.network import DIM, DescriptorNetwork
from jostle.models.onnx_export import export_module

PARTS = ("onnx", "onnxscript", "onnxruntime")
needs_onnx = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in PARTS), reason=f"needs {', '.join(PARTS)}"
)


@needs_onnx
@pytest.mark.parametrize("side", ["causal", "both"])
def test_exported_inspector_equals_torch(tmp_path: Path, side: str) -> None:
    import onnx
    import onnxruntime

    exported = jostle.export("inspector", tmp_path / "inspector.onnx", network=side)
    assert exported.difference is not None
    assert exported.difference <= 1e-5
    lags = 6
    assert exported.inputs == {
        "own": ("frames", CHANNELS, CELLS, CELLS),
        "others": ("frames", lags, CHANNELS, CELLS, CELLS),
        "medians": ("frames", CHANNELS, CELLS, CELLS),
        "before": ("before", DIM),
    }
    model = onnx.load(str(exported.path))
    assert [one.version for one in model.opset_import if not one.domain] == [exported.opset]
    facts = {one.key: one.value for one in model.metadata_props}
    inspector = jostle.load_inspector()
    assert facts["jostle.fingerprint"] == inspector.fingerprint
    assert float(facts["jostle.threshold"]) == inspector.threshold(causal=side == "causal")
    session = onnxruntime.InferenceSession(str(exported.path), providers=["CPUExecutionProvider"])
    network = DescriptorNetwork(inspector.side(side)).eval()
    rng = np.random.default_rng(0)
    for frames, before in ((1, 62), (9, 0)):
        shape = (CHANNELS, CELLS, CELLS)
        own, medians = (rng.integers(0, 256, (frames, *shape), np.uint8) for _ in range(2))
        others = rng.integers(0, 256, (frames, lags, *shape), np.uint8)
        state = rng.random((before, DIM), np.float32)
        inputs = {"own": own, "others": others, "medians": medians, "before": state}
        with torch.no_grad():
            expected = network(*map(torch.from_numpy, inputs.values()))
        for torch_output, onnx_output in zip(expected, session.run(None, inputs), strict=True):
            assert np.abs(torch_output.numpy() - onnx_output).max() <= 1e-5


@needs_onnx
@pytest.mark.slow
def test_exported_models_equal_torch(tmp_path: Path) -> None:
    exported = jostle.export("puppet_x3d", tmp_path / "a.onnx", weights="clean")
    assert exported.difference is not None
    assert exported.difference <= 1e-4
    detector = jostle.export("temporalmaxer_puppets", tmp_path / "b.onnx", weights="clean")
    assert detector.outputs == ("logits", "offsets", "mask")


class Branching(nn.Module):
    """Network with data-dependent control flow, which cannot be exported."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1


@needs_onnx
def test_unsupported_export_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadValue, match="branching: torch cannot export this network to ONNX"):
        export_module(Branching(), {"x": torch.ones(3)}, ["y"], tmp_path / "a.onnx", name="branching")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().out == ""


def test_what_is_no_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean inspector"):
        jostle.export("inspecter", tmp_path / "a.onnx")
    with pytest.raises(BadValue, match="only an inspector"):
        jostle.export(object(), tmp_path / "a.onnx")
    with pytest.raises(BadValue, match="one that is loaded has them already"):
        jostle.export(jostle.load_inspector(), tmp_path / "a.onnx", weights="x")
