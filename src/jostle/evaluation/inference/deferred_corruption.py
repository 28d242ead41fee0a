"""Corruption of frames on the model's device; see `jostle.features.deferred_corruption` for why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.core.types.clip import Frames
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.engine.spec import Spec
from jostle.features.deferred_corruption import DeferredCorruption


def can_corrupt_on_device(model: Any, spec: str) -> bool:
    """Whether a model's device is a GPU with kernels for this corruption, which is faster than the CPU cores."""
    device = getattr(model, "device", None)
    if device is None or device.type != "cuda":
        return False
    if not hasattr(model, "together") and not hasattr(model, "see_together"):
        return False  # a user's model, which may accept arrays only
    from jostle.core.triton import can_compile
    from jostle.corruptions.gpu.batch import gpu_kernel

    return gpu_kernel(Spec.parse(spec)) is not None and can_compile()


def corrupt_on_device(frames: Any, deferred: DeferredCorruption) -> Any:
    """Corrupt a tensor of frames (N, H, W, 3), or of clips of them."""
    from jostle.corruptions.gpu.batch import corrupt_frames

    spec, numbers = Spec.parse(deferred.spec), deferred.numbers.ravel()
    # A video of which only these frames are known.
    times, mask = np.zeros(numbers.max() + 1), np.zeros(numbers.max() + 1, np.bool_)
    times[numbers], mask[numbers] = deferred.times.ravel(), deferred.affected.ravel()
    size = (int(frames.shape[-3]), int(frames.shape[-2]))
    scene = ClipContext(
        spec.corruption.name, size, times, deferred.fps, mask, seed=deferred.seed, video_id=deferred.video_id
    )
    return corrupt_frames(frames.reshape(-1, *frames.shape[-3:]), numbers, spec, scene).view_as(frames)


def corrupt_inputs(model: Any, requests: Sequence[tuple[Frames, DeferredCorruption]]) -> list[Any]:
    """Corrupt the frames or clips of requests that ask for it, on the model's device."""
    if not any(deferred.spec for _, deferred in requests):
        return [frames for frames, _ in requests]
    from jostle.core.cuda import launch_turn, to_device

    with launch_turn(model.device):
        inputs = [to_device(frames, model.device) for frames, _ in requests]
        return [
            corrupt_on_device(frames, deferred) if deferred.spec else frames
            for frames, (_, deferred) in zip(inputs, requests, strict=True)
        ]
