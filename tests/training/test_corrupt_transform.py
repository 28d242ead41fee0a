"""Corrupt transform for data loaders: equals `jostle.corrupt`, with one draw per clip, epoch, worker and call."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import jostle
from helpers.loaders import RepeatedClip
from jostle.errors import BadValue
from jostle.torch import Corrupt

SPECS = ["shot_noise:3", "brightness:2", "freeze:4"]


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (6, 20, 24, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def clip(frames: np.ndarray) -> Any:
    """Frames as a tensor in the layout of torchvision."""
    return torch.from_numpy(frames).permute(0, 3, 1, 2)


def expected(frames: np.ndarray, spec: str, key: str, seed: int = 0) -> Any:
    return torch.from_numpy(np.array(jostle.corrupt(frames, spec, seed=seed, video_id=key)))


@pytest.mark.parametrize(("layout", "axes"), [("TCHW", (0, 3, 1, 2)), ("CTHW", (3, 0, 1, 2)), ("THWC", (0, 1, 2, 3))])
def test_every_layout_equals_corrupt(frames: np.ndarray, layout: str, axes: tuple[int, ...]) -> None:
    tensor = torch.from_numpy(frames).permute(axes)
    before = tensor.clone()
    rough = Corrupt("shot_noise:3", seed=5, layout=layout)(tensor, video_id="v")
    assert torch.equal(rough, expected(frames, "shot_noise:3", "-1/v", 5).permute(axes))
    assert torch.equal(tensor, before)
    assert rough.shape == tensor.shape


def test_float_clips_equal_corrupt_and_keep_untouched_pixels(frames: np.ndarray, clip: Any) -> None:
    floats = clip.to(torch.float32) * (1 / 255)  # the scaling of torchvision, which does not always equal x / 255
    rough = Corrupt("thumos14-c/black_frame:3", placement="frame:2")(floats, video_id="v")
    assert not rough[2].any()
    untouched = [0, 1, 3, 4, 5]
    assert torch.equal(rough[untouched], floats[untouched])
    noisy = Corrupt("shot_noise:3")(floats.to(torch.float16), video_id="v")
    assert noisy.dtype == torch.float16
    levels = noisy.float().mul(255).round().to(torch.uint8)
    assert torch.equal(levels, expected(frames, "shot_noise:3", "-1/v").permute(0, 3, 1, 2))


def test_batched_clips_equal_single_clips(clip: Any) -> None:
    names = [f"v{number}" for number in range(12)]
    batch = torch.stack([clip.roll(number, -1) for number in range(12)])
    transform = Corrupt(SPECS, p=0.7, seed=3)
    together = transform(batch, video_id=names)
    for alone, row, name in zip(batch, together, names, strict=True):
        assert torch.equal(row, transform(alone, video_id=name))
    clean = [torch.equal(row, alone) for row, alone in zip(together, batch, strict=True)]
    assert 0 < sum(clean) < 12
    channels_first = Corrupt(SPECS, p=0.7, seed=3, layout="CTHW")(batch.transpose(1, 2), video_id=names)
    assert torch.equal(channels_first.transpose(1, 2), together)


def test_specs_are_drawn_evenly_and_two_transforms_independently() -> None:
    one, other = Corrupt(SPECS, p=0.5), Corrupt(["fog:1", "rain:1"], p=0.5)
    keys = [str(number) for number in range(600)]
    names = [str(one._draw(key)) for key in keys]
    assert abs(sum(name in SPECS for name in names) - 300) < 60
    assert all(abs(names.count(name) - 100) < 40 for name in SPECS)
    both = sum(one._draw(key).severity > 0 and other._draw(key).severity > 0 for key in keys)
    assert abs(both - 150) < 50  # it would be 300 if one draw decided for both


def test_calls_epochs_and_seeds_give_reproducible_draws(clip: Any) -> None:
    def epoch(number: int, seed: int = 0) -> list[bytes]:
        transform = Corrupt("shot_noise:3", seed=seed)
        transform.set_epoch(number)
        return [transform(clip).numpy().tobytes() for _ in range(2)]

    assert epoch(0) == epoch(0)
    assert len({*epoch(0), *epoch(1), *epoch(0, seed=1)}) == 6
    transform = Corrupt("shot_noise:3")
    transform.set_epoch(0)
    first = [transform(clip).numpy().tobytes() for _ in range(2)]
    transform.set_epoch(1)
    transform(clip)
    transform.set_epoch(0)  # the counter restarts with the epoch
    assert [transform(clip).numpy().tobytes() for _ in range(2)] == first == epoch(0)


def test_draws_depend_on_worker_and_torch_seed(clip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_worker(number: int, base: int, epoch: int | None = None) -> bytes:
        info = types.SimpleNamespace(id=number, seed=base + number)
        monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: info)
        transform = Corrupt("shot_noise:3")
        if epoch is not None:
            transform.set_epoch(epoch)
        return bytes(transform(clip).numpy().tobytes())

    assert in_worker(0, 77) == in_worker(0, 77)
    assert len({in_worker(0, 77), in_worker(1, 77), in_worker(0, 99)}) == 3
    assert in_worker(0, 77, epoch=2) == in_worker(0, 99, epoch=2) != in_worker(1, 77, epoch=2)
    monkeypatch.setenv("RANK", "1")
    assert in_worker(0, 77, epoch=2) != in_worker(1, 77, epoch=2)


@pytest.mark.processes
def test_set_epoch_reaches_persistent_workers(clip: Any) -> None:
    transform = Corrupt("shot_noise:3")
    data = RepeatedClip(clip[:2, :, :8, :8].contiguous(), transform, 4)
    ways: dict[str, Any] = {"num_workers": 1, "persistent_workers": True, "multiprocessing_context": "spawn"}
    loader = torch.utils.data.DataLoader(data, batch_size=None, **ways)
    epochs = []
    for number in (0, 1, 0):
        transform.set_epoch(number)
        epochs.append([item.numpy().tobytes() for item in loader])
    assert epochs[0] == epochs[2]
    assert len({*epochs[0], *epochs[1]}) == 8


def test_copied_and_pickled_transforms_draw_the_same(clip: Any) -> None:
    transform = Corrupt(SPECS, seed=2)
    transform.set_epoch(3)
    copies = [pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)]
    reference = transform(clip)
    assert all(torch.equal(again(clip), reference) for again in copies)
    assert transform.state_dict() == {}
    assert transform._epoch.is_shared()  # shared with the workers of a data loader
    assert "seed=2" in repr(transform)


def test_other_values_of_nested_samples_are_unchanged(frames: np.ndarray, clip: Any) -> None:
    transform = Corrupt("shot_noise:3")
    label = torch.tensor([4, 5])
    sample = {"label": label, "clip": (clip, "name"), "other": clip}
    rough = transform(sample)
    assert rough["label"] is label
    assert rough["clip"][1] == "name"
    assert not torch.equal(rough["clip"][0], clip)
    assert rough["other"] is clip  # as in torchvision v2: only the first plain tensor
    corrupted, same = transform(clip, label)
    assert same is label
    assert not torch.equal(corrupted, clip)
    assert np.array_equal(transform(frames, video_id="v"), jostle.corrupt(frames, "shot_noise:3", video_id="-1/v"))


def test_keyword_call_returns_a_dict_as_in_albumentations(frames: np.ndarray) -> None:
    transform = Corrupt("shot_noise:3")
    corrupted = jostle.corrupt(frames, "shot_noise:3", video_id="-1/v")
    rough = transform(images=frames, mask=frames[0, ..., 0], video_id="v")
    assert np.array_equal(rough["images"], corrupted)
    assert rough["mask"].shape == (20, 24)
    assert np.array_equal(transform(image=frames[0], video_id="v")["image"], corrupted[0])
    floats = (frames[0] / np.float32(255)).astype(np.float32)
    noisy = transform(image=floats, video_id="v")["image"]
    assert noisy.dtype == np.float32
    assert np.array_equal(np.round(noisy * 255).astype(np.uint8), corrupted[0])


@pytest.mark.fault("F181")
def test_input_without_a_clip_is_refused(clip: Any) -> None:
    transform = Corrupt("fog:2")
    with pytest.raises(BadValue, match="no clip to corrupt") as caught:
        transform({"label": torch.tensor(1), "name": "v"})
    assert caught.value.fault == "F181"
    with pytest.raises(BadValue, match="none of the keywords picture holds frames"):
        transform(picture=clip)
    with pytest.raises(BadValue, match="one of the two"):
        transform(clip, image=clip)


@pytest.mark.fault("F182")
def test_mismatched_layout_is_refused(clip: Any) -> None:
    with pytest.raises(BadValue, match="layout CTHW needs three channels") as caught:
        Corrupt("fog:2", layout="CTHW")(clip)
    assert caught.value.fault == "F182"
    with pytest.raises(BadValue, match="layout is one of"):
        Corrupt("fog:2", layout="HWC")


@pytest.mark.fault("F183")
@pytest.mark.parametrize(
    "values", [lambda x: x.float(), lambda x: x.float() / 255 - 0.5, lambda x: x.float() * torch.nan]
)
def test_normalised_or_unscaled_floats_are_refused(clip: Any, values: Any) -> None:
    with pytest.raises(BadValue, match=r"must lie in 0\.\.1.*before you normalise") as caught:
        Corrupt("fog:2")(values(clip))
    assert caught.value.fault == "F183"
    with pytest.raises(BadValue, match="must be uint8 or floating point"):
        Corrupt("fog:2")(clip.to(torch.int64))


def test_invalid_settings_are_refused() -> None:
    for arguments, settings in ((([],), {}), (("fog:2",), {"p": 1.5}), (("fog:2",), {"fps": 0})):
        with pytest.raises(BadValue):
            Corrupt(*arguments, **settings)
    with pytest.raises(BadValue, match="epochs count from 0"):
        Corrupt("fog:2").set_epoch(-1)


def test_torchvision_video_type_is_kept(clip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses a stub with the two names of `tv_tensors` that are needed, or torchvision if it is installed."""
    tv_tensors: Any
    try:
        tv_tensors = importlib.import_module("torchvision.tv_tensors")
    except (ImportError, RuntimeError):
        tv_tensors = types.ModuleType("torchvision.tv_tensors")
        tv_tensors.TVTensor = type("TVTensor", (torch.Tensor,), {})
        tv_tensors.Video = type("Video", (tv_tensors.TVTensor,), {})
        tv_tensors.Image = type("Image", (tv_tensors.TVTensor,), {})
        tv_tensors.wrap = lambda value, like: value.as_subclass(type(like))
        monkeypatch.setitem(sys.modules, "torchvision.tv_tensors", tv_tensors)
    video = clip.as_subclass(tv_tensors.Video)
    transform = Corrupt("shot_noise:3", layout="CTHW")  # a Video has its own layout
    rough, plain = transform(video, clip, video_id="v")
    assert type(rough) is tv_tensors.Video
    assert plain is clip  # next to a Video, plain tensors are not clips
    assert torch.equal(rough.as_subclass(torch.Tensor), Corrupt("shot_noise:3")(clip, video_id="v"))
    picture = clip[0].as_subclass(tv_tensors.Image)
    assert torch.equal(transform(picture, video_id="v").as_subclass(torch.Tensor), rough.as_subclass(torch.Tensor)[0])
