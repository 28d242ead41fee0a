"""Clips that lie on a GPU, corrupted there: the same bytes as on the CPU, and by way of it where there is no form."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.core.cuda import device_of
from jostle.core.types.clip import Clip, Times, checked_rate, even_times
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import corrupted_frames, masks_for
from jostle.corruptions.engine.context import Mask, Scene
from jostle.corruptions.engine.corruption import Corruption
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, chain, checked_order
from jostle.corruptions.gpu.contexts import Moments, Numbers, Places, everywhere
from jostle.errors import BadValue

Form = Callable[..., Tensor]

EVERYWHERE = "everywhere"


def form_of(spec: Spec) -> Form | None:
    """What does it on tensors; None where there is nothing, as for what plugs in from elsewhere, or not so."""
    return _form_with(spec.corruption, tuple(spec.entry.options))


@lru_cache(256)
def _form_with(corruption: Corruption, options: tuple[str, ...]) -> Form | None:
    package, _, family = corruption.function.__module__.rpartition(".")
    if corruption.level != "frame" or package != "jostle.corruptions":
        return None
    if find_spec(f"jostle.corruptions.gpu.{family}") is None:
        return None
    found: Form | None = getattr(import_module(f"jostle.corruptions.gpu.{family}"), corruption.name, None)
    return found if found is not None and {*options} <= signature(found).parameters.keys() else None


def corrupted_tensor(
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
    """One clip or several with `specs` applied in order, on the device they lie on.

    Raises:
        BadValue: if they are no clips, or ids and actions are not one each.
    """
    clips = _checked(frames)
    batch = clips if clips.ndim == 5 else clips[None]
    count = batch.shape[0]
    if isinstance(video_ids, str):
        if count > 1 and video_ids:
            raise BadValue(f"{count} clips cannot share the video id {video_ids!r}: give one each")
        video_ids = [video_ids] * count
    actions = [None] * count if segments is None else list(segments)
    for what, given in (("video ids", video_ids), ("lists of actions", actions)):
        if len(given) != count:
            raise BadValue(f"{count} clips and {len(given)} {what}; give one each")
    if not batch.is_cuda:
        # A CPU has kernels of its own, which are faster there.
        made = []
        for clip, name, own in zip(batch.numpy(), video_ids, actions, strict=True):
            single = Clip.at_rate(clip, fps)
            ways: dict[str, Any] = {"placement": placement, "segments": own, "jobs": jobs}
            made.append(corrupted_frames(single, specs, seed=seed, video_id=name, **ways))
        return torch.from_numpy(np.stack(made)).view_as(clips)
    with device_of(batch):
        done = corrupted_batch(batch, specs, seed, list(video_ids), placement, actions, fps)
    return done if clips is batch else done[0]


def corrupted_batch(
    frames: Tensor,
    specs: Sequence[Spec],
    seed: int,
    video_ids: Sequence[str],
    placement: str | Placement | None,
    segments: Sequence[Segments | None],
    fps: float,
) -> Tensor:
    """(B, T, H, W, 3) by forms for tensors, whatever the device."""
    done = frames
    seen: dict[str, int] = {}
    length, height, width = frames.shape[1:4]
    rate = checked_rate(fps)
    times = even_times(length, rate.numerator, rate.denominator)
    places = _places(specs, placement, times, rate, segments, seed, video_ids)
    for spec, where in zip(specs, places, strict=True):
        if spec.severity == 0:
            continue
        name = spec.corruption.name
        ordinal = seen[name] = seen.get(name, 0) + 1
        called = name if ordinal == 1 else f"{name}#{ordinal}"

        def scenes(called: str = called, masks: Sequence[Mask] = where.masks) -> list[Scene]:
            return [
                Scene(called, (height, width), times, rate, mask, seed=seed, video_id=name)
                for mask, name in zip(masks, video_ids, strict=True)
            ]

        done = _struck(done, spec, Moments(called, seed, video_ids, where, scenes), ordinal)
    return done


def _places(
    specs: Sequence[Spec],
    placement: str | Placement | None,
    times: Times,
    rate: Fraction,
    segments: Sequence[Segments | None],
    seed: int,
    video_ids: Sequence[str],
) -> list[Places]:
    """For each spec which frames it strikes."""
    placed = {spec.placement for spec in specs} if placement is None else {str(placement)}
    if placed == {EVERYWHERE}:  # which is the same for all clips, whatever their actions
        return [everywhere(len(video_ids), len(times))] * len(specs)
    lines = (
        Timeline.of(times, rate, own, seed=seed, video_id=name) for own, name in zip(segments, video_ids, strict=True)
    )
    masks = [masks_for(specs, placement, line) for line in lines]
    return [Places.of(struck) for struck in zip(*masks, strict=True)]


def _struck(frames: Tensor, spec: Spec, at: Moments, ordinal: int) -> Tensor:
    if spec.corruption.level == "time":
        return torch.stack(
            [clip[_order(spec, scene).to(clip.device)] for clip, scene in zip(frames, at.scenes, strict=True)]
        )
    form = form_of(spec)
    if form is None:
        return _by_way_of_the_cpu(frames, spec, at.scenes, ordinal)
    return _some_struck(frames.flatten(0, 1), at.places.rows, form, spec, at).view_as(frames)


def struck_frames(frames: Tensor, numbers: Numbers, spec: Spec, scene: Scene) -> Tensor:
    """Frames of a video, (N, H, W, 3), struck by a corruption that has a form, where the scene's mask says so.

    Args:
        numbers: of the frames in their video, (N,).
    """
    form = form_of(spec)
    assert form is not None
    struck = np.flatnonzero(scene.mask[numbers])
    return _some_struck(frames, struck, form, spec, Moments.of(scene, numbers[struck]))


def _some_struck(frames: Tensor, rows: Numbers, form: Form, spec: Spec, at: Moments) -> Tensor:
    """Frames of which some, by their places, are struck."""
    if not len(rows):
        return frames
    if len(rows) == frames.shape[0]:
        return form(frames, spec.value, at, **spec.entry.options)
    places = torch.from_numpy(rows).to(frames.device)
    out = frames.clone()
    out[places] = form(frames[places], spec.value, at, **spec.entry.options)
    return out


def _order(spec: Spec, scene: Scene) -> Tensor:
    """Which frame is shown at each moment."""
    indices = np.arange(len(scene), dtype=np.int64)
    for a, b in scene.runs():
        rng = scene.rng(a) if spec.corruption.draws else None
        own = spec.corruption.function(scene.pts[a:b], spec.value, rng, **spec.entry.options)
        indices[a:b] = a + checked_order(own, spec.corruption, b - a)
    return torch.from_numpy(indices)


def _by_way_of_the_cpu(frames: Tensor, spec: Spec, scenes: Sequence[Scene], ordinal: int) -> Tensor:
    """Down, through the compiled kernels, and up again."""
    if frames.is_cuda:
        said = f"{spec.corruption.name} has no form for GPUs, or not with these options: frames go by way of the CPU"
        warnings.warn(said, stacklevel=6)
    clips = frames.cpu().numpy()
    made = []
    for clip, scene in zip(clips, scenes, strict=True):
        source = ClipSource(Clip(clip, scene.pts, scene.fps))
        # A second one of the same name is a stage above the first, which does nothing here.
        nothing = np.zeros(len(scene), np.bool_)
        masks: list[Mask] = [nothing] * (ordinal - 1) + [scene.mask]
        made.append(
            chain(source, [spec] * ordinal, masks, seed=scene.seed, video_id=scene.video_id).block(0, len(scene))
        )
    return torch.from_numpy(np.stack(made)).to(frames.device)


def _checked(frames: Any) -> Tensor:
    shape = frames.shape
    if frames.dtype != torch.uint8 or len(shape) not in (4, 5) or shape[-1] != 3 or 0 in shape:
        given = f"{tuple(shape)} {frames.dtype}"
        raise BadValue(f"a tensor of frames is (T, H, W, 3) or (B, T, H, W, 3) uint8 RGB, not {given}")
    made: Tensor = frames
    return made.contiguous()
