"""Which frames of a video a recogniser is shown: what the benchmark says, and what it leaves to the model."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.evaluation.recipes.sampling import Sampling
from jostle.features.windows import retimed

Indices = npt.NDArray[np.int64]
Spread = Literal["step", "span", "even", "first"]
Starts = Literal["ends", "parts"]


class ClipSpec(Protocol):
    """What a model wants to see; `jostle.models.InputSpec` says more about each."""

    @property
    def frames(self) -> int:
        """Frames of a clip."""

    @property
    def step(self) -> int:
        """Frames from one frame of a clip to the next."""

    @property
    def fps(self) -> float | None:
        """Rate that videos are brought to first; None for their own."""

    @property
    def spread(self) -> Spread:
        """Where the frames of a clip lie."""

    @property
    def clips(self) -> int | None:
        """How many of a video; None to leave it to the benchmark."""

    @property
    def starts(self) -> Starts:
        """Where several clips begin."""


def shown_frames(
    sampling: Sampling, spec: ClipSpec | None, pts: Times, fps: Fraction, rng: np.random.Generator
) -> Indices:
    """(clips, frames) numbers of the frames of a video that a model is shown.

    A model that says nothing about itself is shown as many frames as the benchmark says, or the whole video at once.
    One whose clip is spread over the whole video, or that says how many clips it wants, has its own way. The rate that
    a model wants counts where the distance of frames is left to it: a clip spread over the whole video has no rate.
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
        return spans(total, lasts, spec.frames, sampling.clips, spec.starts)
    ticks = retimed(pts, fps, spec.fps if own_pace else None)
    return ticks[sampling.indices(len(ticks), frames=spec.frames, stride=spec.step, rng=rng)]


def spans(total: int, lasts: Fraction, frames: int, clips: int = 1, starts: Starts = "ends") -> Indices:
    """(clips, frames) numbers of frames that are spread evenly over stretches of a video, as in the SlowFast code base.

    Places lie between frames where the rates of video and model differ, and are rounded down; the arithmetic is exact,
    so that no place falls short of its frame. What lies beyond the video's end is its last frame.

    Args:
        total: frames of the video.
        lasts: frames of the video that a clip goes over.
        frames: of a clip.
        clips: how many; a single one is in the middle.
        starts: see `InputSpec`.

    >>> spans(300, Fraction(64), 8).tolist()
    [[118, 127, 136, 145, 154, 163, 172, 181]]
    """
    room = max(total - lasts, Fraction(0))
    if clips == 1:
        first = [Fraction(floor(room / 2))]
    elif starts == "ends":
        first = [Fraction(i * floor(room / (clips - 1))) for i in range(clips)]
    else:
        first = [room * i / clips for i in range(clips)]
    last = max(lasts - 1, Fraction(0))
    places = [[floor(start + last * i / max(frames - 1, 1)) for i in range(frames)] for start in first]
    return np.minimum(np.array(places, np.int64), total - 1)
