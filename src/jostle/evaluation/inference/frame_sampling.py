"""Selection of the frames a recogniser gets: the benchmark's sampling, with defaults of the model."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.evaluation.recipes.sampling import Sampling
from jostle.features.windows import resample_frames

Indices = npt.NDArray[np.int64]
Spread = Literal["step", "span", "even", "first"]
Starts = Literal["ends", "parts"]


class ClipSpec(Protocol):
    """Protocol of a model's clip settings; see `jostle.models.InputSpec` for each."""

    @property
    def frames(self) -> int:
        """Number of frames in a clip."""

    @property
    def step(self) -> int:
        """Video frames from one frame of a clip to the next."""

    @property
    def fps(self) -> float | None:
        """Frame rate that videos are resampled to first; None for their own."""

    @property
    def spread(self) -> Spread:
        """Position of the frames within a clip."""

    @property
    def clips(self) -> int | None:
        """Number of clips per video; None for the benchmark's."""

    @property
    def starts(self) -> Starts:
        """Rule for the first frames of several clips."""


def sample_frames(
    sampling: Sampling, spec: ClipSpec | None, pts: Times, fps: Fraction, rng: np.random.Generator
) -> Indices:
    """Return the (clips, frames) indices of the frames of a video that a model gets.

    A model without a spec gets as many frames as the benchmark asks for, or the whole video at once. A spec whose clip
    is spread over the whole video, or that sets the number of clips, overrides the benchmark. The spec's frame rate
    applies where the benchmark sets no stride: a clip spread over the whole video has no rate.
    """
    total = len(pts)
    if spec is None:
        if sampling.frames is None:
            return np.arange(total, dtype=np.int64)[None]
        return sampling.indices(total, frames=sampling.frames, stride=sampling.stride or 1, rng=rng)
    if spec.spread in ("even", "first"):
        within = 1 if spec.spread == "even" else 0
        return ((2 * np.arange(spec.frames) + within) * total // (2 * spec.frames))[None]
    if spec.clips is not None:
        sampling = Sampling(clips=spec.clips)
    own_pace = sampling.spread == "stride" and sampling.stride is None
    if own_pace and spec.spread == "span":
        lasts = spec.frames * spec.step * (Fraction(1) if spec.fps is None else fps / Fraction(spec.fps))
        return spread_clips(total, lasts, spec.frames, sampling.clips, spec.starts)
    ticks = resample_frames(pts, fps, spec.fps if own_pace else None)
    return ticks[sampling.indices(len(ticks), frames=spec.frames, stride=spec.step, rng=rng)]


def spread_clips(total: int, lasts: Fraction, frames: int, clips: int = 1, starts: Starts = "ends") -> Indices:
    """Return (clips, frames) indices spread evenly over parts of a video, as in the SlowFast code base.

    Positions fall between frames where the rates of video and model differ, and are rounded down in exact arithmetic.
    Positions beyond the end of the video give its last frame.

    Args:
        total: frames of the video.
        lasts: video frames that a clip covers.
        frames: frames of a clip.
        clips: number of clips; a single one is centred.
        starts: see `InputSpec`.

    >>> spread_clips(300, Fraction(64), 8).tolist()
    [[118, 127, 136, 145, 154, 163, 172, 181]]
    """
    slack = max(total - lasts, Fraction(0))
    if clips == 1:
        first = [Fraction(floor(slack / 2))]
    elif starts == "ends":
        first = [Fraction(i * floor(slack / (clips - 1))) for i in range(clips)]
    else:
        first = [slack * i / clips for i in range(clips)]
    last = max(lasts - 1, Fraction(0))
    positions = [[floor(start + last * i / max(frames - 1, 1)) for i in range(frames)] for start in first]
    return np.minimum(np.array(positions, np.int64), total - 1)
