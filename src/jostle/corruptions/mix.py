"""Two of the five THUMOS14-C corruptions at once, in space or in time (Zeng et al., 2024)."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.core.types.clip import Frame, Frames
from jostle.corruptions.blur import motion_blur
from jostle.corruptions.digital import STRIP_DISTANCE, patched
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.engine.stages import Span
from jostle.corruptions.light import black_frame, overexposure
from jostle.corruptions.occlusion import occlusion

# Own strengths at severities 1 to 5: exposure, trail, hand, blocks.
STRENGTHS = (
    (40, (10, 3), 0.45, 400),
    (70, (15, 5), 0.65, 800),
    (100, (15, 8), 0.85, 1300),
    (140, (15, 12), 1.05, 2000),
    (180, (20, 15), 1.25, 3000),
)


# Black cannot be graded, so only the papers' profiles mix it in.
GRADED = ("motion_blur", "overexposure", "occlusion", "block_loss")


def _reach(strength: Any) -> tuple[int, int]:
    return STRIP_DISTANCE, STRIP_DISTANCE


@corruption(level="clip", scale=STRENGTHS, cites="zeng2024", reach=_reach)
def mix_spatial(
    frames: Frames, strength: tuple[Any, ...], span: Span, *, kinds: tuple[str, ...] = GRADED, **options: Any
) -> Frames:
    """Two of the kinds, drawn for the clip, one upon the other on every corrupted frame."""
    first, second = _pair(span.scene, kinds)
    out = np.empty((span.hi - span.lo, *frames.shape[1:]), np.uint8)
    for t in range(span.lo, span.hi):
        once = _apply(first, frames[t - span.first], t, frames, strength, span, options)
        out[t - span.lo] = _apply(second, once, t, frames, strength, span, options)
    return out


@corruption(level="clip", scale=STRENGTHS, cites="zeng2024", reach=_reach)
def mix_temporal(
    frames: Frames, strength: tuple[Any, ...], span: Span, *, kinds: tuple[str, ...] = GRADED, **options: Any
) -> Frames:
    """Two of the kinds, drawn for the clip: one on the first half of each corrupted span, one on the second."""
    first, second = _pair(span.scene, kinds)
    out = np.empty((span.hi - span.lo, *frames.shape[1:]), np.uint8)
    for start, stop in span.scene.runs():
        middle = (start + stop + 1) // 2
        for t in range(max(start, span.lo), min(stop, span.hi)):
            kind = first if t < middle else second
            out[t - span.lo] = _apply(kind, frames[t - span.first], t, frames, strength, span, options)
    return out


def _pair(scene: ClipContext, kinds: tuple[str, ...]) -> tuple[str, str]:
    first, second = scene.rng("pair").permutation(len(kinds))[:2]
    return kinds[first], kinds[second]


def _apply(
    kind: str, frame: Frame, t: int, frames: Frames, strength: tuple[Any, ...], span: Span, options: dict[str, Any]
) -> Frame:
    """Apply one kind to one frame; `frames` are the clean neighbours, so that chunking has no effect."""
    added, trail, hand, blocks = strength
    extra = options.get(kind, {})
    if kind == "block_loss":
        return patched(frame, t, frames, blocks, span, np.empty(frame.shape, np.uint8), **extra)
    function, value = {
        "black_frame": (black_frame, 0),
        "motion_blur": (motion_blur, trail),
        "overexposure": (overexposure, added),
        "occlusion": (occlusion, hand),
    }[kind]
    return np.asarray(function(frame, value, span.scene.at(t), **extra), np.uint8)
