"""Corrupt a clip in memory: specs and a placement in, frames of the same shape out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np

from jostle.corrupting.placement import Placement, Timeline, parse
from jostle.corrupting.scene import Mask
from jostle.corrupting.spec import Spec
from jostle.corrupting.stages import ClipSource, chain
from jostle.types.clip import Clip
from jostle.types.segments import Segments


def masks_for(specs: Sequence[Spec], placement: str | Placement | None, timeline: Timeline) -> list[Mask]:
    """One mask a spec: the placement asked for, or else each spec's own."""
    if placement is not None:
        return [parse(placement).mask(timeline)] * len(specs)
    return [parse(spec.placement).mask(timeline) for spec in specs]


def corrupt_clip(
    clip: Clip,
    specs: Sequence[Spec],
    *,
    seed: int = 0,
    video_id: str = "",
    placement: str | Placement | None = None,
    segments: Segments | None = None,
    jobs: int = 1,
) -> Clip:
    """The clip with `specs` applied in order; timestamps are kept."""
    timeline = Timeline.of(clip.pts, clip.fps, segments, seed=seed, video_id=video_id)
    masks = masks_for(specs, placement, timeline)
    with ThreadPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        source = chain(ClipSource(clip), specs, masks, seed=seed, video_id=video_id, pool=pool)
        frames = source.block(0, len(clip))
    return Clip(np.ascontiguousarray(frames), clip.pts, clip.fps)
