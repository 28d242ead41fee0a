"""R(2+1)D-34 of TSP: shapes by independent arithmetic, a reference forward pass, public weights."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import read_weights
from jostle.models.extractors.extractor import extractors
from jostle.models.extractors.tsp import SPEC, R2Plus1D34, rename_public_weights
from jostle.models.loading.extractors import load_extractor

# Output channels, blocks and the channels between the halves of the first convolution and of all others.
LAYERS = {1: (64, 3, 144, 144), 2: (128, 4, 230, 288), 3: (256, 6, 460, 576), 4: (512, 3, 921, 1152)}
SMALL = {"resize": (36, 44), "size": 32}


def shapes() -> dict[str, tuple[int, ...]]:
    """Return names and shapes in the layout of torchvision, without classifiers."""

    def norm(name: str, n: int) -> None:
        result.update({f"{name}.{part}": (n,) for part in ("weight", "bias", "running_mean", "running_var")})
        result[f"{name}.num_batches_tracked"] = ()

    result: dict[str, tuple[int, ...]] = {"stem.0.weight": (45, 3, 1, 7, 7), "stem.3.weight": (64, 45, 3, 1, 1)}
    norm("stem.1", 45)
    norm("stem.4", 64)
    channels = 64
    for layer, (out, blocks, first, other) in LAYERS.items():
        for block in range(blocks):
            for number, between in ((1, first if block == 0 else other), (2, other)):
                at = f"layer{layer}.{block}.conv{number}"
                result[f"{at}.0.0.weight"] = (between, channels if number == 1 else out, 1, 3, 3)
                norm(f"{at}.0.1", between)
                result[f"{at}.0.3.weight"] = (out, between, 3, 1, 1)
                norm(f"{at}.1", out)
            if block == 0 and layer > 1:
                result[f"layer{layer}.0.downsample.0.weight"] = (out, channels, 1, 1, 1)
                norm(f"layer{layer}.0.downsample.1", out)
            channels = out
    return result


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(3)
    tensors = {}
    for name, shape in shapes().items():
        if name.endswith("num_batches_tracked"):
            tensors[name] = torch.tensor(1)
        elif name.endswith("running_var"):
            tensors[name] = torch.rand(shape, generator=drawn) * 0.01  # so small that the epsilon matters
        elif len(shape) == 5:
            tensors[name] = torch.randn(shape, generator=drawn) * (0.002 / np.prod(shape[1:])) ** 0.5
        else:
            tensors[name] = torch.randn(shape, generator=drawn) * 0.2 + (1.0 if name.endswith(".weight") else 0.0)
    return tensors


def reference_features(w: dict[str, Tensor], clips: Tensor) -> Tensor:
    """Compute the features (B, 512) with functional operations from the public weight names."""

    def norm(x: Tensor, at: str) -> Tensor:
        mean, var = w[f"{at}.running_mean"], w[f"{at}.running_var"]
        scale = w[f"{at}.weight"] / (var + 0.001) ** 0.5
        return (x - mean[:, None, None, None]) * scale[:, None, None, None] + w[f"{at}.bias"][:, None, None, None]

    def split(x: Tensor, at: str, stride: int) -> Tensor:
        x = F.conv3d(x, w[f"{at}.0.weight"], stride=(1, stride, stride), padding=(0, 1, 1))
        return F.conv3d(norm(x, f"{at}.1").relu(), w[f"{at}.3.weight"], stride=(stride, 1, 1), padding=(1, 0, 0))

    x = F.conv3d(clips, w["stem.0.weight"], stride=(1, 2, 2), padding=(0, 3, 3))
    x = norm(F.conv3d(norm(x, "stem.1").relu(), w["stem.3.weight"], padding=(1, 0, 0)), "stem.4").relu()
    for layer, (_, blocks, _, _) in LAYERS.items():
        for block in range(blocks):
            at, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
            y = norm(split(x, f"{at}.conv1.0", stride), f"{at}.conv1.1").relu()
            y = norm(split(y, f"{at}.conv2.0", 1), f"{at}.conv2.1")
            if f"{at}.downsample.0.weight" in w:
                x = norm(F.conv3d(x, w[f"{at}.downsample.0.weight"], stride=stride), f"{at}.downsample.1")
            x = (x + y).relu()
    return x.flatten(2).mean(2)


def test_names_and_shapes_equal_the_public_layout() -> None:
    with torch.device("meta"):
        network = R2Plus1D34()
    assert {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()} == shapes()
    assert sum(p.numel() for p in network.parameters()) == 63_491_975  # 63.7 M with a classifier of 400


def test_features_equal_the_reference(weights: dict[str, Tensor]) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (2, 16, 40, 60, 3), np.uint8)
    extractor = load_extractor("tsp", weights=weights, **SMALL)
    features = extractor(frames)
    with torch.inference_mode():
        expected = reference_features(weights, torch.cat([extractor.spec.prepare(clip) for clip in frames])).numpy()
    assert features.shape == (2, 512)
    assert np.abs(features - expected).max() < 1e-4 * np.abs(expected).max()
    assert expected.std() > 0.01 * np.abs(expected).max()
    assert features[1:2].tobytes() == extractor(frames[1:2]).tobytes()  # independent of the batch


def test_public_checkpoint_is_read_without_its_classifiers(weights: dict[str, Tensor], tmp_path: Path) -> None:
    public = {f"features.{name}": tensor for name, tensor in weights.items()}
    public |= {"fc1.weight": torch.zeros(200, 512), "fc1.bias": torch.zeros(200), "fc2.weight": torch.zeros(2, 1024)}
    renamed = rename_public_weights(public, torch.nn.Identity())
    assert set(renamed) == set(weights)
    bare = weights | {"fc.weight": torch.zeros(400, 512)}
    assert set(rename_public_weights(bare, torch.nn.Identity())) == set(weights)  # the layout of torchvision files
    few = {name: public[name] for name in ("features.stem.0.weight", "fc1.weight")}
    torch.save({"model": few, "epoch": 5, "args": argparse.Namespace(backbone="r2plus1d_34")}, tmp_path / "tsp.pth")
    read = read_weights(tmp_path / "tsp.pth")
    assert set(read) == set(few)
    assert torch.equal(read["features.stem.0.weight"], weights["stem.0.weight"])
    with pytest.raises(CheckpointError, match="tsp: the weights belong to another network"):
        load_extractor("tsp", weights=read)
    with pytest.raises(BadValue, match="HumamAlwassel/TSP"):
        load_extractor("tsp")


def test_input_spec() -> None:
    kind = extractors["tsp"]
    assert (kind.spec.frames, kind.spec.stride, kind.spec.fps, kind.dim) == (16, 16, 15, 512)
    frames = np.zeros((1, 128, 171, 3), np.uint8)
    frames[:, 8:120, 30:142] = 255  # where torchvision has the centre; 29 columns are left on the right
    prepared = SPEC.prepare(frames)[0]
    white = (1 - torch.tensor(SPEC.mean)) / torch.tensor(SPEC.std)
    assert prepared.shape == (3, 1, 112, 112)
    assert torch.allclose(prepared, white[:, None, None, None].expand_as(prepared))
