"""Reading and writing of weights, and messages about mismatches."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch

from golden.by_rule import DETECTORS
from golden.public_checkpoints import NORMALISER, drawn, opentad_shapes, write_e2e_tad, write_opentad, write_original
from jostle.core.state_dict import describe_mismatch
from jostle.errors import BadValue, CheckpointError, ResourceError
from jostle.models.checkpoints import read_weights, write_weights


def some_weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {
        "conv.weight": torch.randn(4, 3, 3, generator=generator),
        "scale": torch.tensor(1.5),
        "half": torch.randn(5, generator=generator).to(torch.bfloat16),
        "count": torch.tensor([7], dtype=torch.int64),
        "none": torch.zeros(0, 3),
    }


def assert_same(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert actual[name].dtype == tensor.dtype
        torch.testing.assert_close(actual[name], tensor, rtol=0, atol=0)


@pytest.mark.parametrize("name", DETECTORS)
def test_original_checkpoint_gives_its_averaged_weights(name: str, tmp_path: Path) -> None:
    path = write_original(name, tmp_path)
    assert_same(read_weights(path), drawn(name))
    assert_same(read_weights(path, ema=False), drawn(name, averaged=False))


@pytest.mark.parametrize("name", DETECTORS)
def test_opentad_checkpoint_keeps_its_names(name: str, tmp_path: Path) -> None:
    weights = read_weights(write_opentad(name, tmp_path))
    assert describe_mismatch(opentad_shapes(name), weights) == ""
    assert weights["rpn_head.loss_normalizer"].item() == NORMALISER


@pytest.mark.parametrize("zipped", [True, False], ids=["torch", "legacy"])
@pytest.mark.parametrize("nested", [True, False])
def test_pickled_state_dicts_are_read(tmp_path: Path, zipped: bool, nested: bool) -> None:
    weights = OrderedDict(
        (f"module.{name}", torch.nn.Parameter(t, t.is_floating_point())) for name, t in some_weights().items()
    )
    content: Any = {"epoch": 3, "state_dict_ema": weights, "mAP": np.float64(0.5)} if nested else weights
    torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    assert_same(read_weights(tmp_path / "a.pt"), some_weights())


def test_views_are_read_as_contiguous_tensors(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"a": base.T, "b": base[1]}, tmp_path / "a.pth")
    weights = read_weights(tmp_path / "a.pth")
    assert torch.equal(weights["a"], base.T)
    assert weights["a"].is_contiguous()


def test_missing_averaged_weights_raise_a_warning(tmp_path: Path) -> None:
    torch.save({"state_dict": some_weights()}, tmp_path / "raw.pth")
    with pytest.warns(UserWarning, match=r"raw.pth: it has no averaged weights; the raw ones \(state_dict\) are used"):
        assert_same(read_weights(tmp_path / "raw.pth"), some_weights())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_weights(tmp_path / "raw.pth", ema=False)
    torch.save({"state_dict_ema": some_weights()}, tmp_path / "ema.pth")
    with pytest.warns(UserWarning, match=r"it has no raw weights; the averaged ones \(state_dict_ema\) are used"):
        read_weights(tmp_path / "ema.pth", ema=False)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_weights(some_weights(), path, metadata={"detector": "tridet", "é": "ü"})
    assert_same(read_weights(path), some_weights())
    assert_same(safetensors.torch.load_file(path), some_weights())
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"detector": "tridet", "é": "ü"}


def test_written_bytes_are_deterministic_and_equal_safetensors(tmp_path: Path) -> None:
    weights = some_weights()
    write_weights(weights, tmp_path / "a", metadata={"x": "1", "y": "2"})
    write_weights(dict(reversed(weights.items())), tmp_path / "b", metadata={"y": "2", "x": "1"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    floats = {name: t for name, t in weights.items() if t.dtype == torch.float32}
    write_weights(floats, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == safetensors.torch.save(floats)


def test_tied_and_strided_tensors_are_written_contiguously(tmp_path: Path) -> None:
    norm = torch.arange(6.0).reshape(2, 3)
    tied = {f"fpn_norms.{i}": norm.T for i in range(3)}
    write_weights(tied, tmp_path / "a.safetensors")
    assert_same(read_weights(tmp_path / "a.safetensors"), {name: t.contiguous() for name, t in tied.items()})


def test_failed_write_keeps_the_existing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    write_weights({"a": torch.zeros(3)}, path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match="No space left on device"):
        write_weights({"a": torch.ones(3)}, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_write_errors_state_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="its folder does not exist"):
        write_weights(some_weights(), tmp_path / "none" / "a.safetensors")
    with pytest.raises(BadValue, match=r"a is of type torch\.complex64"):
        write_weights({"a": torch.zeros(1, dtype=torch.complex64)}, tmp_path / "a.safetensors")


def test_describe_mismatch_lists_differences_by_kind() -> None:
    weights = {"a": torch.zeros(2), "extra": torch.zeros(1)}
    message = describe_mismatch({"a": (3,), **{f"b{i}": (1,) for i in range(10)}}, weights)
    assert message.splitlines() == [
        "10 missing: b0, b1, b2 and 7 more",
        "1 unexpected: extra",
        "1 of another shape: a is (2,), not (3,)",
    ]
    assert describe_mismatch({"a": (2,), "extra": (1,)}, weights) == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([torch.zeros(1)], "it holds a list, not weights by name"),
        ({"weights": {"a": torch.zeros(1)}}, "'weights' is a dict, not a dense tensor"),
        ({"a": torch.zeros(1), "module.a": torch.zeros(1)}, "'a' is there both with and without 'module.'"),
        ({"state_dict_ema": {}}, "it holds no tensors"),
    ],
)
def test_invalid_state_dicts_are_refused(tmp_path: Path, content: object, message: str) -> None:
    torch.save(content, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match=message):
        read_weights(tmp_path / "a.pth")


@pytest.mark.parametrize("name", ["model", "module"])
def test_weights_are_read_from_training_checkpoints(name: str, tmp_path: Path) -> None:
    """Checkpoints of TSP and VideoMAE V2 hold program arguments: these are skipped, and code in them is not run."""
    weights = some_weights()
    other_entries = {
        "epoch": 3,
        "args": argparse.Namespace(lr=0.1, names=["a"]),
        "optimizer": {"state": {0: torch.ones(2)}},
    }
    torch.save({name: weights, **other_entries}, tmp_path / "a.pth")
    assert_same(read_weights(tmp_path / "a.pth"), weights)
    torch.save({name: weights, "args": argparse.Namespace(lr=Path("a"))}, tmp_path / "b.pth")
    with pytest.raises(CheckpointError, match="nothing in it was run: it asks for pathlib"):
        read_weights(tmp_path / "b.pth")


@pytest.mark.parametrize("package", [False, True], ids=["without easydict", "with it"])
def test_easydict_settings_are_read_without_easydict(
    package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints of E2E-TAD hold an easydict dictionary; the package is not used even if it is installed."""
    weights = some_weights()
    file = write_e2e_tad(weights, tmp_path)
    if package:

        def create(*_: object) -> None:
            raise AssertionError("code of the file's choice was run")

        monkeypatch.setitem(sys.modules, "easydict", SimpleNamespace(EasyDict=create))
    assert_same(read_weights(file), weights)
