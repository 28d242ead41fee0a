"""Corruption of clips and single frames in memory, with identical bytes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache

import numpy as np

from jostle.core.types.clip import Clip, Frame, Frames, even_times, times_at_rate
from jostle.core.types.segments import Segments
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.context import ClipContext, Mask
from jostle.corruptions.engine.corruption import Corruption
from jostle.corruptions.engine.placement import Placement, Timeline, parse_placement
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import Indices, chain, check_indices
from jostle.errors import BadValue


def masks_for(specs: Sequence[Spec], placement: str | Placement | None, timeline: Timeline) -> list[Mask]:
    """Return one mask a spec: the given placement, or else each spec's own."""
    if placement is not None:
        return [parse_placement(placement).mask(timeline)] * len(specs)
    return [parse_placement(spec.placement).mask(timeline) for spec in specs]


def corrupt_one(frame: Frame, spec: Spec, index: int, *, fps: Fraction, seed: int = 0, video_id: str = "") -> Frame:
    """Corrupt frame `index` of a video as `corrupted_frames` would, from that frame alone."""
    if spec.severity == 0:
        return frame
    if spec.corruption.level != "frame":
        raise BadValue(
            f"{spec} works on the {spec.corruption.level}, not on single frames; corrupt the clip, and take the frame"
        )
    times = times_at_rate(index + 1, fps)
    scene = ClipContext(
        spec.corruption.name, frame.shape[:2], times, fps, np.ones(len(times), np.bool_), seed=seed, video_id=video_id
    )
    clean = np.ascontiguousarray(frame).view()
    clean.setflags(write=False)
    return np.array(spec.corruption.function(clean, spec.value, scene.at(index), **spec.entry.options))


def corrupted_frames(
    clip: Clip,
    specs: Sequence[Spec],
    *,
    seed: int = 0,
    video_id: str = "",
    placement: str | Placement | None = None,
    segments: Segments | None = None,
    jobs: int = 1,
) -> Frames:
    """Apply `specs` in order to a clip and return its frames, which are read-only."""
    order = _fixed_order(clip, specs, placement)
    if order is not None:
        frames = clip.frames.take(order, axis=0, mode="clip")
        frames.setflags(write=False)
        return frames
    timeline = Timeline.of(clip.pts, clip.fps, segments, seed=seed, video_id=video_id)
    masks = masks_for(specs, placement, timeline)
    source = ClipSource(clip)
    if jobs <= 1:
        frames = chain(source, specs, masks, seed=seed, video_id=video_id).block(0, len(clip))
    else:
        with ThreadPoolExecutor(jobs) as pool:
            frames = chain(source, specs, masks, seed=seed, video_id=video_id, pool=pool).block(0, len(clip))
    frames.setflags(write=False)
    return frames


def _fixed_order(clip: Clip, specs: Sequence[Spec], placement: str | Placement | None) -> Indices | None:
    """Return the frame order of a single deterministic index map over a whole clip of constant rate, else None.

    It depends only on length and rate and is cached: building a stage for it takes half as long as the copying.
    """
    if len(specs) != 1 or placement not in (None, "everywhere") or specs[0].severity == 0:
        return None
    spec = specs[0]
    corruption, entry, rate = spec.corruption, spec.entry, clip.fps
    if corruption.draws or entry.options or (placement is None and entry.placements is not None):
        return None
    if not isinstance(spec.value, (int, float)):  # may not be hashable
        return None
    shape = len(clip.pts), rate.numerator, rate.denominator
    return _cached_order(corruption, spec.value, *shape) if clip.pts is even_times(*shape) else None


@lru_cache(64)
def _cached_order(corruption: Corruption, value: float, *shape: int) -> Indices:
    return check_indices(corruption.function(even_times(*shape), value, None), corruption, shape[0])
