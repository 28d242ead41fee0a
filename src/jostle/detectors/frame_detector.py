"""Detectors that look at frames: pixels of a video in, its segments out, clip by clip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.detectors.config import DetectorConfig
from jostle.detectors.detector import Detector, need_above_zero
from jostle.detectors.outputs import Candidates
from jostle.errors import BadValue, DataError
from jostle.models.input_spec import centre_crop, resized
from jostle.types.segments import Segments

Frames = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class FrameConfig(DetectorConfig):
    """What a detector of frames is shown. A clip that is not full ends in zeros.

    Attributes:
        fps: frames a second that it looks at; None for as many as fill one clip with the whole video, at most its own.
        frame_size: what every frame is brought to: height and width, whatever its shape, for AFSD; for BasicTAD the
            short side.
        crop: height and width of the middle of it that is looked at.
        clip_stride: frames from one clip to the next; the last one reaches the end of the video.
    """

    input_dim: int = 3
    fps: float | None = 10.0
    frame_size: int = 112
    crop: int = 96
    clip_stride: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_counts("frame_size", "crop", "clip_stride")
        if self.crop > self.frame_size:
            raise BadValue(f"{type(self).__name__}: crop {self.crop} is larger than frame_size {self.frame_size}")
        if self.fps is not None and not self.fps > 0:
            raise BadValue(f"{type(self).__name__}: fps must be above 0, not {self.fps}")


C = TypeVar("C", bound=FrameConfig)
AT_ONCE = 64  # frames that are resized together


class FrameDetector(Detector[C]):
    """Frames of a video in, scored segments out.

    `detect` does all of it. Whoever streams a video does it in steps: `wanted` says which frames are looked at, at what
    rate, `prepare` makes pixels of them, `outputs_of` looks at those clip by clip, `decode` and `seconds_of` end it.
    """

    looks_at: ClassVar[Literal["features", "frames"]] = "frames"

    def forward(self, clips: Tensor) -> Any:
        """Raw outputs of clips (B, channels, T, crop, crop), in the scale of the network."""
        raise NotImplementedError

    def suppressed(self, found: Candidates) -> Candidates:
        """The candidates that stay, by falling score."""
        raise NotImplementedError

    def wanted(self, count: int, fps: float) -> tuple[npt.NDArray[np.int64], float]:
        """Which frames of a video of so many are looked at, and how many those are a second.

        A frame is taken when as much time has passed as one frame of the detector's own rate lasts.
        """
        own = self.config.fps
        if own is None:
            own = fps * min(self.config.max_length / count, 1.0)
        if own >= fps:
            return np.arange(count), fps
        # In whole counts of frames that have passed: the i-th is taken once i + 1 frames of the own rate have.
        taken = np.ceil(np.arange(1, count + 1) * (fps / own) - 1e-9).astype(np.int64) - 1
        taken = taken[taken < count]
        return (taken if len(taken) else np.array([count - 1])), own  # of the shortest video one frame is seen

    def pictures(self, frames: Tensor) -> Tensor:
        """(T, channels, crop, crop) values from 0 to 255, from frames (T, channels, H, W) of any size.

        They are brought to a square by bicubic interpolation, and kept in whole grey levels.
        """
        size = self.config.frame_size
        whole = resized(frames, (size, size), "bicubic", antialias=False)
        # as the files hold them that the original reads
        return centre_crop(whole, self.config.crop, "even").round().to(torch.uint8)

    def scaled(self, pictures: Tensor) -> Tensor:
        """(channels, T, crop, crop) in the scale of the network, here from -1 to 1; from values of 0 to 255."""
        return pictures.float() / 255 * 2 - 1

    @final
    def prepare(self, frames: npt.ArrayLike) -> Tensor:
        """(channels, T, crop, crop) on the detector's device, from frames (T, H, W, channels) uint8 of any size."""
        video = np.asarray(frames)
        channels = self.config.input_dim
        if video.ndim != 4 or video.shape[-1] != channels or video.dtype != np.uint8:
            raise BadValue(f"frames must be (T, H, W, {channels}) uint8, not {video.shape} {video.dtype}")
        if not len(video):
            raise DataError("frames: there are none")
        made = []
        for first in range(0, len(video), AT_ONCE):
            part = torch.from_numpy(np.array(video[first : first + AT_ONCE])).to(self.device)
            made.append(self.pictures(part.permute(0, 3, 1, 2).float()).permute(1, 0, 2, 3))
        return torch.cat(made, 1)

    def clips(self, count: int) -> list[int]:
        """First frames of the clips of a video of which so many frames are looked at; the last ends with the video."""
        length, stride = self.config.max_length, self.config.clip_stride
        firsts = list(range(0, max(count - length, 0) + 1, stride))
        return firsts if count <= firsts[-1] + length else [*firsts, count - length]

    @final
    def clip(self, prepared: Tensor, first: int) -> Tensor:
        """(1, channels, T, crop, crop) the clip from a prepared frame on, in the scale of the network."""
        length = self.config.max_length
        part = self.scaled(prepared[:, first : first + length])
        return F.pad(part, (0, 0, 0, 0, 0, length - part.shape[1]))[None]

    @final
    def outputs_of(self, prepared: Tensor) -> Iterator[tuple[int, Any]]:
        """First frame and raw outputs of each clip; one by one, so that its bits do not depend on its neighbours."""
        for first in self.clips(prepared.shape[1]):
            with torch.inference_mode():
                outputs = self.infer(self.forward, self.clip(prepared, first))
            yield first, outputs

    @final
    def raw(self, frames: npt.ArrayLike) -> dict[str, npt.NDArray[np.float32]]:
        """What the network says of one clip: every tensor of its outputs by name.

        Args:
            frames: (T, H, W, channels) uint8 at the rate that the detector looks at, of no more than one clip.
        """
        prepared = self.prepare(frames)
        if prepared.shape[1] > self.config.max_length:
            most = self.config.max_length
            raise BadValue(f"{prepared.shape[1]} frames are more than the {most} of a clip; give `raw` one clip")
        ((_, outputs),) = self.outputs_of(prepared)
        found = {name: value for name, value in vars(outputs).items() if isinstance(value, Tensor)}
        return {name: value[0].float().cpu().numpy() for name, value in found.items()}

    @final
    def candidates(self, frames: npt.ArrayLike) -> Candidates:
        """Segments before suppression, in frames, of frames (T, H, W, channels) at the rate that is looked at."""
        prepared = self.prepare(frames)
        parts = [(first, self.decode(outputs)[0]) for first, outputs in self.outputs_of(prepared)]
        return self.gathered(parts, prepared.shape[1])

    def gathered(self, parts: Sequence[tuple[int, Candidates]], count: int) -> Candidates:
        """The candidates of a video of `count` frames, from those of clips that begin at these frames."""
        return joined(parts)

    def detect(
        self, frames: npt.ArrayLike, *, fps: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """Segments found in one video, in seconds, best first.

        Args:
            frames: (T, H, W, channels) uint8, all frames of the video.
            fps: how many there are a second.
            duration: of the video, in seconds.
            video_scores: (classes,) scores of the whole video by a classifier, for class-agnostic detectors.
        """
        need_above_zero(fps=fps, duration=duration)
        video = np.asarray(frames)
        if not video.ndim or not len(video):
            raise DataError("frames: there are none")
        taken, rate = self.wanted(len(video), float(fps))
        return self.seconds_of(self.candidates(video[taken]), rate, duration, video_scores)

    def seconds_of(
        self, found: Candidates, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """What suppression leaves of candidates, in seconds and inside the video."""
        found, classes = self.named(self.suppressed(found), video_scores)
        seconds = (found.segments.astype(np.float64) / rate).clip(0.0, float(duration))
        kept = seconds[:, 0] < seconds[:, 1]
        return Segments(
            seconds[kept, 0], seconds[kept, 1], found.labels[kept], found.scores[kept].astype(np.float64), classes
        )


def joined(parts: Sequence[tuple[int, Candidates]]) -> Candidates:
    """The candidates of clips that begin at these frames, on the frames of the video."""
    return Candidates(
        np.concatenate([part.segments + np.float32(first) for first, part in parts]),
        np.concatenate([part.scores for _, part in parts]),
        np.concatenate([part.labels for _, part in parts]),
    )
