"""Corruption of clips on a GPU, with the bytes of the CPU; corruptions without a GPU kernel run on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.core.cuda import device_context
from jostle.core.triton_support import runs_on
from jostle.core.types.clip import Clip, Times, check_rate, even_times
from jostle.core.types.segments import Segments
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import corrupted_frames, masks_for
from jostle.corruptions.engine.context import ClipContext, Mask
from jostle.corruptions.engine.corruption import Corruption
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain, check_indices
from jostle.corruptions.gpu.contexts import AffectedFrames, FrameContexts, Numbers, everywhere
from jostle.errors import BadValue

GpuKernel = Callable[..., Tensor]

EVERYWHERE = "everywhere"
PLAIN = "jostle.corruptions.gpu.light"  # whose kernels are tensor operations too


def gpu_kernel(spec: Spec) -> GpuKernel | None:
    """Return the GPU kernel of a corruption with its options, or None, as for plugins."""
    return _find_kernel(spec.corruption, tuple(spec.entry.options))


@lru_cache(256)
def _find_kernel(corruption: Corruption, options: tuple[str, ...]) -> GpuKernel | None:
    package, _, family = corruption.function.__module__.rpartition(".")
    if corruption.level != "frame" or package != "jostle.corruptions":
        return None
    if find_spec(f"jostle.corruptions.gpu.{family}") is None:
        return None
    function: GpuKernel | None = getattr(import_module(f"jostle.corruptions.gpu.{family}"), corruption.name, None)
    return function if function is not None and {*options} <= signature(function).parameters.keys() else None


def corrupt_tensor(
    frames: Any,
    specs: Sequence[Spec],
    *,
    seed: int,
    video_ids: Any,
    placement: str | Placement | None,
    segments: Sequence[Segments | None] | None,
    fps: float,
    jobs: int = 1,
) -> Tensor:
    """Apply `specs` in order to one clip or several, on their device."""
    clips = _check_frames(frames)
    batch = clips if clips.ndim == 5 else clips[None]
    count = batch.shape[0]
    if isinstance(video_ids, str):
        if count > 1 and video_ids:
            raise BadValue(f"{count} clips cannot share the video id {video_ids!r}: pass one each")
        video_ids = [video_ids] * count
    actions = [None] * count if segments is None else list(segments)
    for what, values in (("video ids", video_ids), ("lists of actions", actions)):
        if len(values) != count:
            raise BadValue(f"got {len(values)} {what} for {count} clips; pass one each")
    if not batch.is_cuda:
        # The CPU kernels are faster on a CPU.
        results = []
        for clip, name, own in zip(batch.numpy(), video_ids, actions, strict=True):
            single = Clip.at_rate(clip, fps)
            ways: dict[str, Any] = {"placement": placement, "segments": own, "jobs": jobs}
            results.append(corrupted_frames(single, specs, seed=seed, video_id=name, **ways))
        return torch.from_numpy(np.stack(results)).view_as(clips)
    with device_context(batch):
        done = corrupt_batch(batch, specs, seed, list(video_ids), placement, actions, fps)
    return done if clips is batch else done[0]


def corrupt_batch(
    frames: Tensor,
    specs: Sequence[Spec],
    seed: int,
    video_ids: Sequence[str],
    placement: str | Placement | None,
    segments: Sequence[Segments | None],
    fps: float,
) -> Tensor:
    """Apply `specs` to (B, T, H, W, 3) by the kernels for tensors, on any device."""
    done = frames
    uses: dict[str, int] = {}
    length, height, width = frames.shape[1:4]
    rate = check_rate(fps)
    times = even_times(length, rate.numerator, rate.denominator)
    affected = _affected_frames(specs, placement, times, rate, segments, seed, video_ids)
    for spec, where in zip(specs, affected, strict=True):
        if spec.severity == 0:
            continue
        name = spec.corruption.name
        ordinal = uses[name] = uses.get(name, 0) + 1
        called = name if ordinal == 1 else f"{name}#{ordinal}"

        def scenes(called: str = called, masks: Sequence[Mask] = where.masks) -> list[ClipContext]:
            return [
                ClipContext(called, (height, width), times, rate, mask, seed=seed, video_id=name)
                for mask, name in zip(masks, video_ids, strict=True)
            ]

        done = _apply_spec(done, spec, FrameContexts(called, seed, video_ids, where, scenes), ordinal)
    return done


def _affected_frames(
    specs: Sequence[Spec],
    placement: str | Placement | None,
    times: Times,
    rate: Fraction,
    segments: Sequence[Segments | None],
    seed: int,
    video_ids: Sequence[str],
) -> list[AffectedFrames]:
    """Return the corrupted frames for each spec."""
    placed = {spec.placement for spec in specs} if placement is None else {str(placement)}
    if placed == {EVERYWHERE}:  # the same for all clips, whatever their actions
        return [everywhere(len(video_ids), len(times))] * len(specs)
    lines = (
        Timeline.of(times, rate, own, seed=seed, video_id=name) for own, name in zip(segments, video_ids, strict=True)
    )
    masks = [masks_for(specs, placement, line) for line in lines]
    return [AffectedFrames.of(spec_masks) for spec_masks in zip(*masks, strict=True)]


def _apply_spec(frames: Tensor, spec: Spec, at: FrameContexts, ordinal: int) -> Tensor:
    if spec.corruption.level == "time":
        return torch.stack(
            [clip[_order(spec, scene).to(clip.device)] for clip, scene in zip(frames, at.scenes, strict=True)]
        )
    if spec.corruption.level == "frame":
        return _corrupt_rows(frames.flatten(0, 1), at.places.rows, spec, at).view_as(frames)
    return _corrupt_on_cpu(frames, spec, at.scenes, ordinal)


def corrupt_frames(frames: Tensor, numbers: Numbers, spec: Spec, scene: ClipContext) -> Tensor:
    """Corrupt frames of a video, (N, H, W, 3), by a frame-level corruption where the mask says so.

    Args:
        numbers: (N,) indices of the frames in their video.
    """
    rows = np.flatnonzero(scene.mask[numbers])
    return _corrupt_rows(frames, rows, spec, FrameContexts.of(scene, numbers[rows]))


def _corrupt_rows(frames: Tensor, rows: Numbers, spec: Spec, at: FrameContexts) -> Tensor:
    """Corrupt the frames at some rows."""
    if not len(rows):
        return frames
    kernel = _kernel_on(frames, spec)
    if len(rows) == frames.shape[0]:
        return kernel(frames, spec.value, at, **spec.entry.options)
    indices = torch.from_numpy(rows).to(frames.device)
    out = frames.clone()
    out[indices] = kernel(frames[indices], spec.value, at, **spec.entry.options)
    return out


def _kernel_on(frames: Tensor, spec: Spec) -> GpuKernel:
    """Return the GPU kernel of a frame-level corruption, or its CPU kernel where there is none or no Triton."""
    kernel = gpu_kernel(spec)
    if kernel is not None and (kernel.__module__ == PLAIN or runs_on(frames)):
        return kernel
    _warn_of_cpu(frames, spec, "has no GPU kernel, or not with these options" if kernel is None else "needs Triton")
    return partial(_by_cpu_kernel, spec.corruption.function)


def _by_cpu_kernel(
    function: Callable[..., Any], frames: Tensor, value: Any, at: FrameContexts, **options: Any
) -> Tensor:
    """Copy frames to the CPU, corrupt them there one by one, and copy them back."""
    rows = frames.cpu().numpy().view()
    rows.setflags(write=False)  # a kernel would be compiled once more for frames that may be written to
    results = [function(frame, value, context, **options) for frame, context in zip(rows, at, strict=True)]
    return torch.from_numpy(np.stack(results)).to(frames.device)


def _warn_of_cpu(frames: Tensor, spec: Spec, why: str) -> None:
    if frames.is_cuda:
        calls = 8 if spec.corruption.level == "frame" else 7  # up to the caller of `jostle.corrupt`
        warnings.warn(f"{spec.corruption.name} {why}: frames are corrupted on the CPU", stacklevel=calls)


def _order(spec: Spec, scene: ClipContext) -> Tensor:
    """Return the index map of a time-level corruption over a clip."""
    indices = np.arange(len(scene), dtype=np.int64)
    for a, b in scene.runs():
        rng = scene.rng(a) if spec.corruption.draws else None
        own = spec.corruption.function(scene.pts[a:b], spec.value, rng, **spec.entry.options)
        indices[a:b] = a + check_indices(own, spec.corruption, b - a)
    return torch.from_numpy(indices)


def _corrupt_on_cpu(frames: Tensor, spec: Spec, scenes: Sequence[ClipContext], ordinal: int) -> Tensor:
    """Copy clips to the CPU, corrupt them there, and copy them back."""
    _warn_of_cpu(frames, spec, "has no GPU kernel, or not with these options")
    clips = frames.cpu().numpy()
    results = []
    for clip, scene in zip(clips, scenes, strict=True):
        source = ClipSource(Clip(clip, scene.pts, scene.fps))
        # A repeated corruption is a stage above the first one, whose mask is empty here.
        nothing = np.zeros(len(scene), np.bool_)
        masks: list[Mask] = [nothing] * (ordinal - 1) + [scene.mask]
        results.append(
            chain(source, [spec] * ordinal, masks, seed=scene.seed, video_id=scene.video_id).block(0, len(scene))
        )
    return torch.from_numpy(np.stack(results)).to(frames.device)


def _check_frames(frames: Any) -> Tensor:
    shape = frames.shape
    if frames.dtype != torch.uint8 or len(shape) not in (4, 5) or shape[-1] != 3 or 0 in shape:
        description = f"{tuple(shape)} {frames.dtype}"
        raise BadValue(f"frames must be a (T, H, W, 3) or (B, T, H, W, 3) uint8 RGB tensor, not {description}")
    tensor: Tensor = frames
    return tensor.contiguous()
