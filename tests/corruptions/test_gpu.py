"""Corruptions of tensors equal those of the compiled kernels, bit for bit, on the CPU and on a GPU if present.

On the CPU, and on a GPU without Triton, the compiled kernels are used unless a GPU kernel is plain tensor operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cv2

import jostle
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.corruptions.gpu import batch
from jostle.corruptions.gpu.batch import corrupt_batch, gpu_kernel
from jostle.errors import BadValue

EVERY = [*corruptions, *(f"{table.name}/{name}" for table in profiles.values() for name in table.entries)]
WITH_KERNEL = [name for name in EVERY if gpu_kernel(Spec.parse(name)) is not None]
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
VIDEOS = ("one", "two")


@pytest.fixture(scope="module")
def clips() -> np.ndarray:
    """Return two clips of odd size, including a black, a white and a grey frame."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (10, 9, 11, 3)).astype(np.uint8)
    frames = np.stack([cv2.resize(image, (75, 58), interpolation=cv2.INTER_CUBIC) for image in small]).reshape(
        2, 5, 58, 75, 3
    )
    frames[0, 0], frames[0, 1] = 0, 255
    frames[1, 2, :, :, 1:] = frames[1, 2, :, :, :1]
    return frames


def corrupt_with_gpu_kernels(
    clips: np.ndarray, specs: list[str], device: str, placement: str | None = None
) -> np.ndarray:
    parsed = [Spec.parse(spec) for spec in specs]
    inputs = torch.from_numpy(clips).to(device)
    corrupted = corrupt_batch(inputs, parsed, 3, VIDEOS, placement, [None, None], 30.0)
    assert corrupted.device == inputs.device
    assert torch.equal(inputs.cpu(), torch.from_numpy(clips))  # the input is unchanged
    return corrupted.cpu().numpy()


def corrupt_with_compiled_kernels(clips: np.ndarray, specs: list[str], placement: str | None = None) -> np.ndarray:
    pairs = zip(clips, VIDEOS, strict=True)
    return np.stack([jostle.corrupt(clip, specs, seed=3, video_id=name, placement=placement) for clip, name in pairs])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", WITH_KERNEL)
def test_gpu_kernels_equal_the_compiled_kernels(name: str, device: str, clips: np.ndarray) -> None:
    for severity in range(1, len(Spec.parse(name).entry.values) + 1):
        spec = f"{name}:{severity}"
        assert np.array_equal(
            corrupt_with_gpu_kernels(clips, [spec], device), corrupt_with_compiled_kernels(clips, [spec])
        ), spec


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (17, 5), (224, 224)])
def test_gpu_kernels_accept_any_size(size: tuple[int, int], device: str) -> None:
    rng = np.random.default_rng(1)
    clips = rng.integers(0, 256, (2, 1, *size, 3), dtype=np.uint8)
    colours = ("gaussian_noise", "shot_noise", "brightness", "contrast", "pixelate")
    weather = ("imagenet-c/fog", "frost", "snow", "imagenet-c/snow")
    blurs = ("gaussian_blur", "motion_blur", "zoom_blur", "defocus_blur", "imagenet-c/defocus_blur")
    for name in (*colours, *weather, *blurs):
        assert np.array_equal(
            corrupt_with_gpu_kernels(clips, [f"{name}:4"], device), corrupt_with_compiled_kernels(clips, [f"{name}:4"])
        ), name


@pytest.mark.parametrize("device", DEVICES)
def test_only_the_frames_of_a_placement_are_corrupted(device: str, clips: np.ndarray) -> None:
    corrupted = corrupt_with_gpu_kernels(clips, ["gaussian_noise:3"], device, "centre:40%")
    assert np.array_equal(corrupted, corrupt_with_compiled_kernels(clips, ["gaussian_noise:3"], "centre:40%"))
    assert np.array_equal(corrupted[:, 0], clips[:, 0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore:.*frames are corrupted on the CPU")
@pytest.mark.parametrize(
    "specs",
    [
        ["gaussian_noise:1", "gaussian_noise:2"],
        ["elastic_transform:2", "fog:1", "elastic_transform:2"],
        ["freeze:3", "contrast:2"],
        ["thumos14-c-i3d/overexposure", "brightness:0", "saturate:1"],
    ],
)
def test_chains_of_corruptions(specs: list[str], device: str, clips: np.ndarray) -> None:
    assert np.array_equal(corrupt_with_gpu_kernels(clips, specs, device), corrupt_with_compiled_kernels(clips, specs))


def test_kinds_without_a_gpu_kernel_use_the_cpu(clips: np.ndarray) -> None:
    for spec in ("glass_blur:2", "jpeg_compression:3", "frame_average:2"):
        assert gpu_kernel(Spec.parse(spec)) is None
        assert np.array_equal(
            corrupt_with_gpu_kernels(clips, [spec], "cpu"), corrupt_with_compiled_kernels(clips, [spec])
        )


def test_without_triton_the_compiled_kernels_are_used(monkeypatch: pytest.MonkeyPatch, clips: np.ndarray) -> None:
    called = []
    by_cpu_kernel = batch._by_cpu_kernel

    def record_call(function: Any, *arguments: Any, **options: Any) -> Any:
        called.append(function.__name__)
        return by_cpu_kernel(function, *arguments, **options)

    monkeypatch.setattr(batch, "runs_on", lambda frames: False)
    monkeypatch.setattr(batch, "_by_cpu_kernel", record_call)
    for name in WITH_KERNEL:
        spec = f"{name}:1"
        plain = gpu_kernel(Spec.parse(spec)).__module__ == batch.PLAIN
        called.clear()
        assert np.array_equal(
            corrupt_with_gpu_kernels(clips, [spec], "cpu"), corrupt_with_compiled_kernels(clips, [spec])
        ), spec
        assert called == ([] if plain else [Spec.parse(spec).corruption.name]), spec


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_without_triton_gives_a_warning(monkeypatch: pytest.MonkeyPatch, clips: np.ndarray) -> None:
    monkeypatch.setattr(batch, "runs_on", lambda frames: False)
    with pytest.warns(UserWarning, match="fog needs Triton: frames are corrupted on the CPU"):
        corrupted = corrupt_with_gpu_kernels(clips, ["fog:2"], "cuda")
    assert np.array_equal(corrupted, corrupt_with_compiled_kernels(clips, ["fog:2"]))


def test_most_kinds_of_imagenet_c_have_a_gpu_kernel() -> None:
    without = {name for name in profiles["imagenet-c"].entries if f"imagenet-c/{name}" not in WITH_KERNEL}
    assert without == {"glass_blur", "elastic_transform", "jpeg_compression", "spatter"}


def test_a_tensor_gives_a_tensor(clips: np.ndarray) -> None:
    batch = jostle.corrupt(torch.from_numpy(clips), "fog:2", seed=3, video_id=VIDEOS)
    single = jostle.corrupt(torch.from_numpy(clips[1]), "fog:2", seed=3, video_id="two")
    assert np.array_equal(batch.numpy(), corrupt_with_compiled_kernels(clips, ["fog:2"]))
    assert torch.equal(single, batch[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_stay_on_the_gpu_and_missing_kernels_give_a_warning(clips: np.ndarray) -> None:
    inputs = torch.from_numpy(clips).cuda()
    corrupted = jostle.corrupt(inputs, "fog:2", seed=3, video_id=VIDEOS)
    assert corrupted.is_cuda
    assert np.array_equal(corrupted.cpu().numpy(), corrupt_with_compiled_kernels(clips, ["fog:2"]))
    with pytest.warns(UserWarning, match="glass_blur has no GPU kernel"):
        jostle.corrupt(inputs, "glass_blur:2", seed=3, video_id=VIDEOS)


def test_each_clip_has_its_own_actions(clips: np.ndarray) -> None:
    inputs = torch.from_numpy(clips)
    spec = "thumos14-c/black_frame:3"
    corrupted = jostle.corrupt(inputs, spec, video_id=VIDEOS, segments=[[(0.0, 0.1)], None])
    first = jostle.corrupt(clips[0], spec, video_id="one", segments=[(0.0, 0.1)])
    assert np.array_equal(corrupted[0].numpy(), first)
    assert np.array_equal(corrupted[1].numpy(), jostle.corrupt(clips[1], spec, video_id="two"))


def test_invalid_input_is_refused(clips: np.ndarray) -> None:
    inputs = torch.from_numpy(clips)
    with pytest.raises(BadValue, match=r"2 clips cannot share the video id 'a'"):
        jostle.corrupt(inputs, "fog:2", video_id="a")
    with pytest.raises(BadValue, match="got 1 video ids for 2 clips"):
        jostle.corrupt(inputs, "fog:2", video_id=["a"])
    with pytest.raises(BadValue, match="uint8 RGB tensor, not"):
        jostle.corrupt(inputs.float(), "fog:2")
    with pytest.raises(BadValue, match="one video"):
        jostle.corrupt(clips[0], "fog:2", video_id=["a", "b"])
