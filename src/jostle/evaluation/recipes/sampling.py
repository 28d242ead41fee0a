"""Frame sampling for recognisers: as publications define it, with defaults of the model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.errors import BadValue
from jostle.features.windows import resample_frames

if TYPE_CHECKING:
    from jostle.models.input_spec import InputSpec

    ClipSpec: TypeAlias = "InputSpec | RemoteInputSpec"

Indices = npt.NDArray[np.int64]
Spread = Literal["stride", "even", "drawn"]


@dataclass(frozen=True)
class Sampling:
    """Sampling of clips from a video; None leaves a setting to the model.

    Length and size are those of the publication's models. A model with an `InputSpec` uses its own, unless the run
    requests those of the benchmark.

    Attributes:
        frames: number of frames in a clip.
        stride: frames of the video from one frame of a clip to the next; only where `spread` is `stride`.
        spread: `stride`: clips begin evenly spaced over the video, a single one in the middle. `even`: one frame from
            the middle of each of as many equal parts of the video. `drawn`: the widest whole stride that fits, from a
            beginning drawn for the video (Yi et al. 2021).
        clips: number of clips; their scores are averaged.
        crops: `centre`, or `ten`: four corners and the centre, each also mirrored.
        short_side: length that the short side of a frame is resized to.
        size: height and width of a crop.
    """

    frames: int | None = None
    stride: int | None = None
    spread: Spread = "stride"
    clips: int = 1
    crops: Literal["centre", "ten"] = "centre"
    short_side: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        for name in ("frames", "stride", "clips", "short_side", "size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadValue(f"sampling: {name} must be at least 1, got {value}")
        if self.spread != "stride" and (self.clips > 1 or self.stride is not None):
            raise BadValue(f"sampling: spread '{self.spread}' covers the whole video: leave clips and stride out")
        if self.size is not None and self.short_side is not None and self.size > self.short_side:
            raise BadValue(f"sampling: a crop of {self.size} does not fit into a short side of {self.short_side}")

    def indices(self, total: int, *, frames: int, stride: int, rng: np.random.Generator) -> Indices:
        """Return the (clips, frames) indices to sample from a video of `total` frames.

        A video too short for a clip repeats its last frame; with an even spread, it repeats frames in between.

        Args:
            frames: the model's clip length, used if the benchmark sets none.
            stride: the model's stride, used likewise.
            rng: keyed by the video, so that all its cells use the same frames.

        >>> Sampling(frames=4, stride=2, clips=2).indices(20, frames=8, stride=8, rng=np.random.default_rng(0)).tolist()
        [[0, 2, 4, 6], [13, 15, 17, 19]]
        """
        if total < 1:
            raise BadValue("no frames to choose from: the video is empty")
        many = self.frames or frames
        if self.spread == "even":
            return ((2 * np.arange(many) + 1) * total // (2 * many))[None]
        if self.spread == "drawn":
            return _draw_indices(total, many, rng)[None]
        step = self.stride or stride
        slack = max(total - 1 - (many - 1) * step, 0)  # how far the beginning can move
        first = np.arange(self.clips) * slack // (self.clips - 1) if self.clips > 1 else np.array([slack // 2])
        indices: Indices = np.minimum(first[:, None] + np.arange(many) * step, total - 1)
        return indices


def _draw_indices(total: int, frames: int, rng: np.random.Generator) -> Indices:
    if total <= frames:
        return np.arange(frames) * total // frames
    step = (total - 1) // frames
    return np.arange(frames) * step + rng.integers(step)


ClipSpread = Literal["step", "span", "even", "first"]
Starts = Literal["ends", "parts"]


@dataclass(frozen=True)
class RemoteInputSpec:
    """Clip settings of a remote model, as far as decoding and sampling need them."""

    frames: int
    stride: int = 1
    step: int = 1
    fps: float | None = None
    spread: ClipSpread = "step"
    clips: int | None = None
    starts: Starts = "ends"

    @classmethod
    def of(cls, spec: Any) -> RemoteInputSpec | None:
        """Copy the fields of a model's spec, if it has one."""
        if spec is None:
            return None
        return cls(**{one.name: getattr(spec, one.name) for one in fields(cls) if hasattr(spec, one.name)})


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
        lasts: video frames that a clip covers.
        clips: number of clips; a single one is centred.

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
