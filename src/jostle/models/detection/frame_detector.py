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

from jostle.core.types.segments import Segments
from jostle.errors import BadValue, DataError
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.config import DetectorConfig
from jostle.models.detection.detector import Detector, need_above_zero
from jostle.models.detection.outputs import Candidates, Losses
from jostle.models.input_spec import resized
from jostle.models.preprocessing.crop import centre_crop

Frames = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class FrameConfig(DetectorConfig):
    """What a detector of frames is shown. A clip that is not full ends in zeros, E2E-TAD's in grey.

    Attributes:
        fps: frames a second that it looks at; None for as many as fill one clip with the whole video, at most its own.
        frame_size: what every frame is brought to: height and width, whatever its shape, for AFSD; for BasicTAD
            and E2E-TAD the short side.
        crop: height and width of the middle of it that is looked at.
        clip_stride: frames from one clip to the next; the last one reaches the end of the video.
        fixed_norms: training leaves the norms of the backbone as they are, which must have been learned before.
    """

    input_dim: int = 3
    fps: float | None = 10.0
    frame_size: int = 112
    crop: int = 96
    clip_stride: int = 128
    fixed_norms: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_counts("frame_size", "crop", "clip_stride")
        if self.crop > self.frame_size:
            raise BadValue(f"{type(self).__name__}: crop {self.crop} is larger than frame_size {self.frame_size}")
        if self.fps is not None and not self.fps > 0:
            raise BadValue(f"{type(self).__name__}: fps must be above 0, not {self.fps}")


C = TypeVar("C", bound=FrameConfig)
Deepened = Sequence[Sequence[Tensor]]  # by layer, and of each frame
RESIZED_AT_ONCE = 64  # frames
# Frames that are looked at together, filled up where they are fewer: libraries choose their kernels by the shape, and
# only equal kernels give equal bits for a frame whatever stands beside it.
FRAMES_AT_ONCE = {"cpu": 8, "cuda": 64}
LAYERED_AT_ONCE = {"cpu": 32, "cuda": 64}  # behind the first layers, whose pictures are larger


class FrameDetector(Detector[C]):
    """Frames of a video in, scored segments out.

    `detect` does all of it. Whoever streams a video does it in steps: `wanted` says which frames are looked at, at what
    rate, and `clips` in which clips; `seen_of` looks at frames one by one, `deepened` at what was seen of those of a
    clip, `found_in` at what that has come to; `gathered` and `seconds_of` end it.
    """

    looks_at: ClassVar[Literal["features", "frames"]] = "frames"
    filler: ClassVar[float | None] = None  # grey level of what a short clip lacks; None for 0 in the network's scale

    @property
    def counts_positives(self) -> bool:
        """Whether losses are over the number of positives of all processes; otherwise over clips of one."""
        return False

    def forward(self, clips: Tensor) -> Any:
        """Raw outputs of clips (B, channels, T, crop, crop), in the scale of the network."""
        seen = self.see(clips.transpose(1, 2).flatten(0, 1))
        return self.join(torch.unflatten(seen, 0, (len(clips), -1)))

    def see(self, pictures: Tensor) -> Tensor:
        """(N, ...) what the network makes of each picture by itself, of (N, channels, crop, crop) in its scale.

        A network that mixes frames from its first layer on has nothing to say of one.
        """
        return pictures

    def join(self, seen: Tensor) -> Any:
        """Raw outputs, from (B, T, ...) of what was seen of the frames of clips."""
        raise NotImplementedError

    @property
    def layers(self) -> int:
        """How many parts of the network behind `see` look at a frame and its two neighbours, and no further."""
        return 0

    def layer(self, number: int, near: Tensor) -> Tensor:
        """(N, ...) of each frame after a layer, from (N, 3, ...) of the frame before it, itself and the one after it.

        Beyond the ends of a clip there are zeros.
        """
        raise NotImplementedError

    def ended(self, made: Tensor) -> Any:
        """Raw outputs, from (B, T, ...) of the frames of clips after the last layer; of a network without, `join`'s."""
        return self.join(made)

    def said(self, outputs: Any) -> Tensor:
        """(B, N, 2) the segments that points, anchors or queries stand for, in frames of the clip."""
        raise NotImplementedError

    def answering(self, outputs: Any, actions: Actions) -> tuple[Tensor, Tensor]:
        """(B, N) which of them answer for an action, and (B, N) which row of the actions that is."""
        raise NotImplementedError

    def loss(self, outputs: Any, actions: Actions) -> Losses:
        """What to descend, of raw outputs and actions in frames of the clip."""
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

    def shrunk(self, frames: Tensor) -> Tensor:
        """(T, channels, h, w) values from 0 to 255, of the size that a crop is taken from, here a square.

        Args:
            frames: (T, channels, H, W) of any size.
        """
        size = self.config.frame_size
        return resized(frames, (size, size), "bicubic", antialias=False)

    def pictures(self, frames: Tensor) -> Tensor:
        """(T, channels, crop, crop) values from 0 to 255, from frames (T, channels, H, W) of any size.

        They are the middle of what they are shrunk to, in whole grey levels, as the files have them that AFSD reads.
        """
        return centre_crop(self.shrunk(frames), self.config.crop, "even").round().to(torch.uint8)

    def scaled(self, pictures: Tensor) -> Tensor:
        """(channels, T, crop, crop) in the scale of the network, here from -1 to 1; from values of 0 to 255."""
        return pictures.float() / 255 * 2 - 1

    @final
    def prepare(self, frames: npt.ArrayLike) -> Tensor:
        """(channels, T, crop, crop) pictures on the detector's device, from (T, H, W, channels) uint8 of any size."""
        video = np.asarray(frames)
        channels = self.config.input_dim
        if video.ndim != 4 or video.shape[-1] != channels or video.dtype != np.uint8:
            raise BadValue(f"frames must be (T, H, W, {channels}) uint8, not {video.shape} {video.dtype}")
        if not len(video):
            raise DataError("frames: there are none")
        made = []
        for first in range(0, len(video), RESIZED_AT_ONCE):
            part = torch.from_numpy(np.array(video[first : first + RESIZED_AT_ONCE])).to(self.device)
            made.append(self.pictures(part.permute(0, 3, 1, 2).float()).transpose(0, 1))
        return torch.cat(made, 1)

    @final
    def seen_of(self, frames: npt.ArrayLike) -> Tensor:
        """(T, ...) seen of each frame, of (T, H, W, channels) uint8 of any size; the same bits in any company."""
        pictures = self.prepare(frames)
        size = FRAMES_AT_ONCE[self.device.type]
        every = (pictures[:, lo : lo + size] for lo in range(0, pictures.shape[1], size))
        return torch.cat([self._seen(self.scaled(some).transpose(0, 1)) for some in every])

    @final
    def carried(self, seen: Tensor) -> tuple[npt.NDArray[np.uint8], str]:
        """What was seen of frames as bytes (T, ...), and of what numbers, for whoever keeps it in another process."""
        return seen.contiguous().view(torch.uint8).cpu().numpy(), str(seen.dtype).removeprefix("torch.")

    @final
    def brought_back(self, seen: npt.NDArray[np.uint8], numbers: str) -> Tensor:
        """What was carried, on the detector's device."""
        return torch.from_numpy(np.array(seen)).view(getattr(torch, numbers)).to(self.device)

    def _seen(self, pictures: Tensor) -> Tensor:
        """Of pictures in the scale of the network, no more than are looked at together."""
        count, size = len(pictures), FRAMES_AT_ONCE[self.device.type]
        with torch.inference_mode():
            made: Tensor = self.infer(self.see, F.pad(pictures, (0, 0, 0, 0, 0, 0, 0, size - count)))
        return made[:count]

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
        return torch.cat([part, self._nothing(length - part.shape[1]).to(part)], 1)[None]

    def _nothing(self, count: int) -> Tensor:
        """(channels, count, crop, crop) for the frames that a short clip lacks, in the scale of the network."""
        crop = self.config.crop
        made = torch.full((self.config.input_dim, count, crop, crop), self.filler or 0.0, device=self.device)
        return made if self.filler is None else self.scaled(made)

    @final
    def deepened(self, seen: Sequence[Tensor], beside: Deepened | None = None) -> Deepened:
        """What each layer makes of the frames of a clip, first what was seen of them; filled up to a whole clip.

        Args:
            seen: of each frame, of which there may be fewer than fill the clip.
            beside: the same of another state of the clip. What is the same there is not computed again: as far as rows
                of `seen` are the very ones of that, and their neighbours are. The bits are the same.
        """
        rows, lacking = list(seen), self.config.max_length - len(seen)
        if lacking:
            empty = [*self._seen(self._nothing(1).transpose(0, 1))] * lacking
            rows += empty if beside is None else beside[0][-lacking:]
        with torch.inference_mode():
            made: Deepened = self.infer(lambda _: self._through(rows, beside), rows[0])
        return made

    def _through(self, rows: list[Tensor], beside: Deepened | None) -> Deepened:
        """The rows of a clip, and those after each layer."""
        made = [rows]
        changed = [beside is None or row is not beside[0][i] for i, row in enumerate(rows)]
        for number in range(self.layers):
            before = [False, *changed, False]
            changed = [any(before[i : i + 3]) for i in range(len(rows))]
            places = [i for i, yes in enumerate(changed) if yes]
            done = list(rows if beside is None else beside[number + 1])
            for place, row in zip(places, self._layer(number, made[-1], places), strict=True):
                done[place] = row
            made.append(done)
        return made

    def _layer(self, number: int, rows: Sequence[Tensor], places: Sequence[int]) -> Iterator[Tensor]:
        """The rows after a layer at these places."""
        size, nothing = LAYERED_AT_ONCE[self.device.type], torch.zeros_like(rows[0])
        around = [nothing, *rows, nothing]
        for lo in range(0, len(places), size):
            some = places[lo : lo + size]
            near = torch.unflatten(torch.stack([around[i + k] for i in some for k in range(3)]), 0, (len(some), 3))
            if len(some) < size:
                near = torch.cat([near, near.new_zeros(size - len(some), *near.shape[1:])])
            yield from self.layer(number, near)[: len(some)]

    @final
    def outputs_in(self, deep: Deepened) -> Any:
        """Raw outputs of a clip, from what the layers make of its frames.

        Clips come one by one, so that the bits of one do not depend on its neighbours.
        """
        with torch.inference_mode():
            return self.infer(self.ended, torch.stack(list(deep[-1]))[None])

    @final
    def found_in(self, deep: Deepened) -> Candidates:
        """Segments before suppression of a clip, in its frames, from what the layers make of these."""
        return self.decode(self.outputs_in(deep))[0]

    @final
    def outputs_of(self, frames: npt.ArrayLike) -> Iterator[tuple[int, Any]]:
        """First frame and raw outputs of each clip, of frames (T, H, W, channels) at the rate that is looked at."""
        seen = self.seen_of(frames)
        for first in self.clips(len(seen)):
            yield first, self.outputs_in(self.deepened([*seen[first : first + self.config.max_length]]))

    @final
    def raw(self, frames: npt.ArrayLike) -> dict[str, npt.NDArray[np.float32]]:
        """What the network says of one clip: every tensor of its outputs by name.

        Args:
            frames: (T, H, W, channels) uint8 at the rate that the detector looks at, of no more than one clip.
        """
        seen = self.seen_of(frames)
        if len(seen) > self.config.max_length:
            most = self.config.max_length
            raise BadValue(f"{len(seen)} frames are more than the {most} of a clip; give `raw` one clip")
        found = {
            name: value
            for name, value in vars(self.outputs_in(self.deepened([*seen]))).items()
            if isinstance(value, Tensor)
        }
        return {name: value[0].float().cpu().numpy() for name, value in found.items()}

    @final
    def candidates(self, frames: npt.ArrayLike) -> Candidates:
        """Segments before suppression, in frames, of frames (T, H, W, channels) at the rate that is looked at."""
        video = np.asarray(frames)
        parts = [(first, self.decode(outputs)[0]) for first, outputs in self.outputs_of(video)]
        return self.gathered(parts, len(video))

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
