"""Recognisers from ONNX files: input spec inferred from the shape, and scores equal to NumPy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.errors import BadValue, CheckpointError
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.onnx import spec_of

needs_onnx = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnx") is None,
    reason="onnxruntime and onnx, which writes files to test with, are not both installed",
)
SCALE: dict[str, Any] = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}


@pytest.mark.parametrize(
    ("shape", "layout"),
    [((1, 3, 8, 32, 32), "CTHW"), ((None, 8, 3, 32, 32), "TCHW"), ((2, 8, 32, 32, 3), "THWC")],
)
def test_layout_is_inferred_from_the_shape(shape: tuple[int | None, ...], layout: str) -> None:
    spec = spec_of(shape, SCALE, "net.onnx")
    assert (spec.layout, spec.frames, spec.size, spec.mean) == (layout, 8, 32, SCALE["mean"])


def test_dynamic_axes_need_settings() -> None:
    with pytest.raises(BadValue, match=r"leaves frames open; say how many, frames="):
        spec_of((None, 3, None, 32, 32), {}, "net.onnx")
    assert spec_of((None, 3, None, None, None), {"frames": 5, "size": 20}, "net.onnx").frames == 5
    with pytest.raises(BadValue, match="has size 32, and cannot be given 20"):
        spec_of((None, 3, 8, 32, 32), {"size": 20}, "net.onnx")
    with pytest.raises(BadValue, match=r"an input of \? x 3 x 3 x 32 x 32"):
        spec_of((None, 3, 3, 32, 32), {}, "net.onnx")
    assert spec_of((None, 3, 3, 32, 32), {"layout": "TCHW"}, "net.onnx").layout == "TCHW"
    with pytest.raises(BadValue, match="is not a batch of CTHW"):
        spec_of((None, 1, 32, 32), {}, "net.onnx")
    with pytest.raises(BadValue, match="crops must be square, not 40x32"):
        spec_of((None, 3, 8, 32, 40), {}, "net.onnx")


@pytest.mark.parametrize(("shape", "layout"), [((None, 3, 32, 32), "CTHW"), ((1, 32, 32, 3), "THWC")])
def test_image_network_takes_one_frame(shape: tuple[int | None, ...], layout: str) -> None:
    spec = spec_of(shape, SCALE, "net.onnx")
    assert (spec.layout, spec.frames, spec.size) == (layout, 1, 32)
    with pytest.raises(BadValue, match="has frames 1, and cannot be given 8"):
        spec_of(shape, {"frames": 8}, "net.onnx")


def write_network(path: Path, batch: int | str, clip: tuple[int, ...] = (3, 4, 16, 16)) -> np.ndarray:
    """Write a network whose logits are the mean colours times a matrix, and return the matrix."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    matrix = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["clip", "axes"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "matrix"], ["logits"]),
    ]
    axes = np.array([axis + 1 for axis, length in enumerate(clip) if length != 3])
    initializers = [numpy_helper.from_array(matrix, "matrix"), numpy_helper.from_array(axes, "axes")]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("clip", TensorProto.FLOAT, [batch, *clip])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 4])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))
    return matrix


@needs_onnx
@pytest.mark.parametrize("batch", ["n", 1, 4])
def test_scores_equal_numpy(tmp_path: Path, batch: int | str) -> None:
    matrix = write_network(tmp_path / "net.onnx", batch)
    model = load_recogniser("onnx", weights=tmp_path / "net.onnx", crops="ten", resize=20, **SCALE)
    clips = np.random.default_rng(1).integers(0, 256, (3, 4, 20, 20, 3), np.uint8)
    assert model.spec is not None
    logits = np.stack([model.spec.prepare(clip).mean((2, 3, 4)).numpy() @ matrix for clip in clips])  # (3, 10, 4)
    odds = np.exp(logits)
    assert np.allclose(model(clips), (odds / odds.sum(-1, keepdims=True)).mean(1), atol=1e-5)


@needs_onnx
@pytest.mark.parametrize("clip", [(3, 16, 16), (16, 16, 3)])
def test_image_network_scores_frames_one_by_one(tmp_path: Path, clip: tuple[int, ...]) -> None:
    matrix = write_network(tmp_path / "net.onnx", "n", clip)
    model = load_recogniser("onnx", weights=tmp_path / "net.onnx", **SCALE)
    frames = np.random.default_rng(1).integers(0, 256, (5, 1, 16, 16, 3), np.uint8)
    mean = ((frames[:, 0] / 255 - SCALE["mean"]) / SCALE["std"]).mean((1, 2))
    odds = np.exp(mean @ matrix)
    assert np.allclose(model(frames), odds / odds.sum(-1, keepdims=True), atol=1e-5)


@needs_onnx
def test_invalid_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file"):
        load_recogniser("onnx", weights=tmp_path / "net.onnx", **SCALE)
    (tmp_path / "net.onnx").write_bytes(b"not a network")
    with pytest.raises(CheckpointError, match="cannot load it"):
        load_recogniser("onnx", weights=tmp_path / "net.onnx", **SCALE)


def test_missing_scale_raises() -> None:
    with pytest.raises(BadValue, match="give mean and std"):
        load_recogniser("onnx", weights="net.onnx")
    with pytest.raises(BadValue, match=r"weights are an \.onnx file"):
        load_recogniser("onnx", weights="random")
