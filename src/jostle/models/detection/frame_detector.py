"""Base of frame detectors: videos are processed clip by clip, from pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.core.types.segments import Segments
from jostle.errors import BadValue, DataError
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.reach import Reach
from jostle.models.detection.config import DetectorConfig
from jostle.models.detection.detector import Detector, need_above_zero
from jostle.models.detection.outputs import Candidates, Losses
from jostle.models.input_spec import resized
from jostle.models.preprocessing.geometry import OddMargin, centre_crop
from jostle.models.rows import RowBatches


def resample_indices(count: int, fps: float, own: float) -> npt.NDArray[np.int64]:
    """Return which of `count` frames are used at the rate `own`, as FFmpeg resamples.

    Each moment shows the last frame that is nearer to it than to the next moment; where the video has fewer frames they
    are repeated.

    >>> resample_indices(15, 25.0, 5.0).tolist()
    [2, 7, 12]
    """
    moments = np.arange(max(int(np.floor(count * own / fps + 0.5)), 1))
    indices = np.ceil((moments + 0.5) * (fps / own) - 1e-9).astype(np.int64) - 1
    clipped: npt.NDArray[np.int64] = np.clip(indices, 0, count - 1)
    return clipped


def evenly_spaced_clips(count: int, length: int, stride: int) -> list[int]:
    """Return the first frames of evenly spaced clips; the last may be short.

    >>> evenly_spaced_clips(300, 256, 192)
    [0, 192]
    """
    return list(range(0, max(count - length + stride - 1, 0) // stride * stride + 1, stride))


MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of red, green and blue


def imagenet_normalise(pictures: Tensor) -> Tensor:
    """Return (3, T, H, W) with the mean colour of ImageNet at 0, from values of 0 to 255.

    >>> imagenet_normalise(torch.full((3, 1, 1, 1), 128.0)).flatten().round(decimals=3).tolist()
    [0.07400000095367432, 0.20499999821186066, 0.4259999990463257]
    """
    mean, std = (torch.tensor(x, device=pictures.device)[:, None, None, None] for x in (MEAN, STD))
    return (pictures - mean) / std


Frames = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class FrameConfig(DetectorConfig):
    """Input settings of a frame detector; short clips are padded with zeros, E2E-TAD's with grey.

    Attributes:
        fps: frame rate; None to fit the whole video into one clip, at most at its own rate.
        frame_size: size that frames are resized to: height and width for AFSD; the short side for BasicTAD and E2E-TAD.
        crop: height and width of the centre crop.
        clip_stride: frames from one clip to the next; the last one reaches the end of the video.
        fixed_norms: freeze the norms of the backbone in training, which must be pretrained.
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
Deepened = Sequence[Sequence[Tensor]]  # by layer, and of each step: at first a frame
RESIZED_AT_ONCE = 64  # frames
# Frames that are looked at together, filled up where they are fewer: libraries choose their kernels by the shape, and
# only equal kernels give equal bits for a frame whatever stands beside it. `RowBatches` proves that they do, or finds
# another size.
FRAMES_AT_ONCE = {"cpu": 8, "cuda": 64}


class FrameDetector(Detector[C]):
    """Base class of detectors from frames to scored segments.

    `detect` does everything. To stream a video, do it in steps: `sample_indices` selects the frames and `clips` the
    clips; `encode_frames` encodes frames one by one, `encode_clip` applies the layers to a clip, `detect_clip` returns
    its candidates; `merge_clips` and `to_seconds` finish.
    """

    looks_at: ClassVar[Literal["features", "frames"]] = "frames"
    layered_at_once: ClassVar[Mapping[str, int]] = {"cpu": 32, "cuda": 64}  # steps, filled up like frames
    filler: ClassVar[float | None] = None  # grey level of what a short clip lacks; None for 0 in the network's scale

    def __init__(self, config: C) -> None:
        super().__init__(config)
        self._row_batches = RowBatches(self)

    @property
    def counts_positives(self) -> bool:
        """Whether losses are normalised over all processes, or over the clips of one."""
        return False

    def forward(self, clips: Tensor) -> Any:
        """Return the raw outputs of normalised clips (B, channels, T, crop, crop)."""
        encodings = self.see(clips.transpose(1, 2).flatten(0, 1))
        return self.join(torch.unflatten(encodings, 0, (len(clips), -1)))

    def see(self, pictures: Tensor) -> Tensor:
        """Return (N, ...) what the network makes of each picture by itself, of (N, channels, crop, crop) in its scale.

        A network that mixes frames from its first layer on has nothing to say of one.
        """
        return pictures

    def join(self, encodings: Tensor) -> Any:
        """Return the raw outputs for frame encodings (B, T, ...) of clips."""
        raise NotImplementedError

    @property
    def layers(self) -> Sequence[Reach]:
        """Layers after `see` that mix neighbouring steps only, by what they see."""
        return ()

    @property
    def finished(self) -> Sequence[int]:
        """Layers whose outputs `finish` takes; 0 for the frame encodings."""
        return (len(self.layers),)

    def layer(self, number: int, near: Tensor) -> Tensor:
        """Apply a layer to (N, kernel, ...) neighbouring steps; return (N, ...)."""
        raise NotImplementedError

    def finish(self, rows: Sequence[Tensor]) -> Any:
        """Return the raw outputs for steps (B, T, ...) after each layer in `finished`; without layers, as `join`."""
        return self.join(*rows)

    def output_segments(self, outputs: Any) -> Tensor:
        """Return (B, N, 2) the segments that points, anchors or queries stand for, in frames of the clip."""
        raise NotImplementedError

    def match_actions(self, outputs: Any, actions: Actions) -> tuple[Tensor, Tensor]:
        """Return (B, N) which of them answer for an action, and (B, N) which row of the actions that is."""
        raise NotImplementedError

    def loss(self, outputs: Any, actions: Actions) -> Losses:
        """Compute the losses of raw outputs for actions in frames of the clip."""
        raise NotImplementedError

    def suppress(self, candidates: Candidates) -> Candidates:
        """Suppress candidates, and return the rest by falling score."""
        raise NotImplementedError

    def sample_indices(self, count: int, fps: float) -> tuple[npt.NDArray[np.int64], float]:
        """Return the indices of the frames of a video to process, and their rate.

        A frame is taken when as much time has passed as one frame of the detector's own rate lasts.
        """
        own = self.config.fps
        if own is None:
            own = fps * min(self.config.max_length / count, 1.0)
        if own >= fps:
            return np.arange(count), fps
        # In whole counts of frames that have passed: the i-th is taken once i + 1 frames of the own rate have.
        indices = np.ceil(np.arange(1, count + 1) * (fps / own) - 1e-9).astype(np.int64) - 1
        indices = indices[indices < count]
        return (indices if len(indices) else np.array([count - 1])), own  # of the shortest video one frame is seen

    def shrunk(self, frames: Tensor) -> Tensor:
        """Return (T, channels, h, w) values from 0 to 255, of the size that a crop is taken from, here a square.

        Args:
            frames: (T, channels, H, W) of any size.
        """
        size = self.config.frame_size
        return resized(frames, (size, size), "bicubic", antialias=False)

    def pictures(self, frames: Tensor) -> Tensor:
        """Return (T, channels, crop, crop) values from 0 to 255, from frames (T, channels, H, W) of any size.

        They are the middle of what they are shrunk to, in whole grey levels, as the files have them that AFSD reads.
        """
        return centre_crop(self.shrunk(frames), self.config.crop, "even").round().to(torch.uint8)

    def scaled(self, pictures: Tensor) -> Tensor:
        """Return (channels, T, crop, crop) in the scale of the network, here from -1 to 1; from values of 0 to 255."""
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
        parts = []
        for first in range(0, len(video), RESIZED_AT_ONCE):
            part = torch.from_numpy(np.array(video[first : first + RESIZED_AT_ONCE])).to(self.device)
            parts.append(self.pictures(part.permute(0, 3, 1, 2).float()).transpose(0, 1))
        return torch.cat(parts, 1)

    @final
    def encode_frames(self, frames: npt.ArrayLike) -> Tensor:
        """(T, ...) seen of each frame, of (T, H, W, channels) uint8 of any size; the same bits whatever the batch."""
        pictures = self.prepare(frames)
        size = self._pictures_at_once(self.scaled(pictures[:, :1]).transpose(0, 1))
        every = (pictures[:, lo : lo + size] for lo in range(0, pictures.shape[1], size))
        return torch.cat([self._seen(self.scaled(some).transpose(0, 1)) for some in every])

    @final
    def to_bytes(self, encodings: Tensor) -> tuple[npt.NDArray[np.uint8], str]:
        """Convert frame encodings to bytes (T, ...) and their dtype, to keep them in another process."""
        return encodings.contiguous().view(torch.uint8).cpu().numpy(), str(encodings.dtype).removeprefix("torch.")

    @final
    def from_bytes(self, encodings: npt.NDArray[np.uint8], numbers: str) -> Tensor:
        """Invert `to_bytes`, on the detector's device."""
        return torch.from_numpy(np.array(encodings)).view(getattr(torch, numbers)).to(self.device)

    def _seen(self, pictures: Tensor) -> Tensor:
        """Encode normalised pictures, at most one batch of them."""
        count, size = len(pictures), self._pictures_at_once(pictures[:1])
        with torch.inference_mode():
            output: Tensor = self.infer(self.see, F.pad(pictures, (0, 0, 0, 0, 0, 0, 0, size - count)).contiguous())
        return output[:count]

    def _pictures_at_once(self, picture: Tensor) -> int:
        """Return the batch size of `see`."""
        with torch.inference_mode():
            largest = FRAMES_AT_ONCE[self.device.type]
            size: int = self.infer(lambda row: self._row_batches.size("see", self.see, row, largest), picture)
        return size

    def clips(self, count: int) -> list[int]:
        """Return the first frames of the clips of a video; the last clip ends with the video."""
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
        """Return (channels, count, crop, crop) for the frames that a short clip lacks, in the scale of the network."""
        crop = self.config.crop
        filler = torch.full((self.config.input_dim, count, crop, crop), self.filler or 0.0, device=self.device)
        return filler if self.filler is None else self.scaled(filler)

    @final
    def encode_clip(self, encodings: Sequence[Tensor], beside: Deepened | None = None) -> Deepened:
        """Return the output of each layer for a clip, starting with its frame encodings; padded to a clip.

        Args:
            seen: of each frame, of which there may be fewer than fill the clip.
            beside: the same of another state of the clip. What is the same there is not computed again: as far as rows
                of `seen` are the very ones of that, and their neighbours are. The bits are the same.
        """
        rows, lacking = list(encodings), self.config.max_length - len(encodings)
        if lacking:
            empty = [*self._seen(self._nothing(1).transpose(0, 1))] * lacking
            rows += empty if beside is None else beside[0][-lacking:]
        with torch.inference_mode():
            layers: Deepened = self.infer(lambda _: self._through(rows, beside), rows[0])
        return layers

    def _through(self, rows: list[Tensor], beside: Deepened | None) -> Deepened:
        """Return the rows of a clip, and those after each layer."""
        outputs: list[list[Tensor]] = [rows]
        changed = [beside is None or row is not beside[0][i] for i, row in enumerate(rows)]
        for number, reach in enumerate(self.layers):
            length = len(changed) // reach.stride
            first = [reach.first(i) for i in range(length)]
            changed = [any(changed[max(lo, 0) : lo + reach.kernel]) for lo in first]
            places = [i for i, yes in enumerate(changed) if yes]
            done = outputs[-1][:length] if beside is None else list(beside[number + 1])
            for place, row in zip(places, self._layer(number, outputs[-1], places), strict=True):
                done[place] = row
            outputs.append(done)
        return outputs

    def _layer(self, number: int, rows: Sequence[Tensor], places: Sequence[int]) -> Iterator[Tensor]:
        """Return the rows after a layer at these places."""
        reach, nothing = self.layers[number], torch.zeros_like(rows[0])
        size = self._row_batches.size(
            f"layer {number}",
            partial(self.layer, number),
            nothing.expand(1, reach.kernel, *nothing.shape),
            self.layered_at_once[self.device.type],
        )
        for lo in range(0, len(places), size):
            some = places[lo : lo + size]
            indices = [reach.first(i) + k for i in some for k in range(reach.kernel)]
            steps = torch.stack([rows[i] if 0 <= i < len(rows) else nothing for i in indices])
            near = torch.unflatten(steps, 0, (len(some), reach.kernel))
            if len(some) < size:
                near = torch.cat([near, near.new_zeros(size - len(some), *near.shape[1:])])
            yield from self.layer(number, near)[: len(some)]

    @final
    def clip_outputs(self, deep: Deepened) -> Any:
        """Return the raw outputs of a clip, from the outputs of its layers.

        Clips come one by one, so that the bits of one do not depend on its neighbours.
        """
        with torch.inference_mode():
            rows = [torch.stack(list(deep[number]))[None] for number in self.finished]
            return self.infer(lambda *rows: self.finish(rows), *rows)

    @final
    def detect_clip(self, deep: Deepened) -> Candidates:
        """Return the candidates of a clip, in frames, from the outputs of its layers."""
        return self.decode_finite(self.clip_outputs(deep))[0]

    @final
    def outputs_of(self, frames: npt.ArrayLike) -> Iterator[tuple[int, Any]]:
        """Yield the first frame and the raw outputs of each clip of resampled (T, H, W, channels) frames."""
        encodings = self.encode_frames(frames)
        for first in self.clips(len(encodings)):
            yield first, self.clip_outputs(self.encode_clip([*encodings[first : first + self.config.max_length]]))

    @final
    def raw(self, frames: npt.ArrayLike) -> dict[str, npt.NDArray[np.float32]]:
        """Return the raw outputs of one clip: every tensor by name.

        Args:
            frames: (T, H, W, channels) uint8 at the rate that the detector looks at, of no more than one clip.
        """
        encodings = self.encode_frames(frames)
        if len(encodings) > self.config.max_length:
            most = self.config.max_length
            raise BadValue(f"{len(encodings)} frames are more than the {most} of a clip; give `raw` one clip")
        tensors = {
            name: value
            for name, value in vars(self.clip_outputs(self.encode_clip([*encodings]))).items()
            if isinstance(value, Tensor)
        }
        return {name: value[0].float().cpu().numpy() for name, value in tensors.items()}

    @final
    def candidates(self, frames: npt.ArrayLike) -> Candidates:
        """Return the candidates of resampled frames (T, H, W, channels), before suppression."""
        video = np.asarray(frames)
        parts = [(first, self.decode_finite(outputs)[0]) for first, outputs in self.outputs_of(video)]
        return self.merge_clips(parts, len(video))

    def merge_clips(self, parts: Sequence[tuple[int, Candidates]], count: int) -> Candidates:
        """Return the candidates of a video of `count` frames, from those of clips that begin at these frames."""
        return join_candidates(parts)

    def detect(
        self, frames: npt.ArrayLike, *, fps: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """Detect the segments of one video, in seconds, best first.

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
        indices, rate = self.sample_indices(len(video), float(fps))
        return self.to_seconds(self.candidates(video[indices]), rate, duration, video_scores)

    def to_seconds(
        self, candidates: Candidates, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """Suppress candidates and convert them to seconds inside the video."""
        candidates, classes = self.named(self.suppress(candidates), video_scores)
        seconds = (candidates.segments.astype(np.float64) / rate).clip(0.0, float(duration))
        valid = seconds[:, 0] < seconds[:, 1]
        return Segments(
            seconds[valid, 0],
            seconds[valid, 1],
            candidates.labels[valid],
            candidates.scores[valid].astype(np.float64),
            classes,
        )


class ResampledFrameDetector(FrameDetector[C]):
    """Base of frame detectors that resample as FFmpeg does, space clips evenly, and scale colours as for ImageNet."""

    odd_margin: ClassVar[OddMargin] = "smaller"  # position of the crop in an odd margin

    def sample_indices(self, count: int, fps: float) -> tuple[npt.NDArray[np.int64], float]:
        """Return the indices of the frames to process and their rate, resampled as by FFmpeg."""
        own = self.config.fps
        return super().sample_indices(count, fps) if own is None else (resample_indices(count, fps, own), own)

    def pictures(self, frames: Tensor) -> Tensor:
        """Return (T, 3, crop, crop) values from 0 to 255: the middle of what frames are shrunk to."""
        return centre_crop(self.shrunk(frames), self.config.crop, self.odd_margin)

    def scaled(self, pictures: Tensor) -> Tensor:
        """Return (3, T, crop, crop) with the mean colour of ImageNet at 0."""
        return imagenet_normalise(pictures)

    def clips(self, count: int) -> list[int]:
        """Return the first frames of evenly spaced clips; the last may be short."""
        return evenly_spaced_clips(count, self.config.max_length, self.config.clip_stride)


def join_candidates(parts: Sequence[tuple[int, Candidates]]) -> Candidates:
    """Return the candidates of clips that begin at these frames, on the frames of the video."""
    return Candidates.join([part.moved(first) for first, part in parts])
