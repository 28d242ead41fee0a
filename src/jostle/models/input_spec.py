"""Input specification of models: sizes, crops and normalisation, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.core.triton_support import runs_on
from jostle.errors import BadValue
from jostle.models.preprocessing.fused import Interpolation, Normalization, Resize, prepare_fused
from jostle.models.preprocessing.geometry import Crops, OddMargin, centre_crop, crops_of, cut, pillow_resize

if TYPE_CHECKING:
    from jostle.models.preprocessing.transforms import Transform

Frames = npt.NDArray[np.uint8]
Layout = Literal["CTHW", "TCHW", "THWC", "CHW"]
Arithmetic = Literal["exact", "pillow"]
Fit = Literal["short", "long"]
Beyond = Literal["black", "mean"]
Spread = Literal["step", "span", "even", "first"]
Starts = Literal["ends", "parts"]
Joined = Literal["scores", "logits"]
# Of (crops, T, C, H, W); single images are clips of one frame whose time axis is dropped.
AXES: dict[Layout, tuple[int, ...]] = {
    "CTHW": (0, 2, 1, 3, 4),
    "TCHW": (0, 1, 2, 3, 4),
    "THWC": (0, 1, 3, 4, 2),
    "CHW": (0, 1, 2, 3, 4),
}


@dataclass(frozen=True)
class InputSpec:
    """Specification of how frames become a model's input.

    Attributes:
        frames: length of a window, in frames.
        stride: frames from one window of an extractor to the next; by default `frames * step`.
        resize: (height, width) that every frame is resized to, whatever its shape; or the length of the short side,
            keeping the shape; or None.
        size: height and width of a crop.
        crops: `centre`; `three`: both ends of the long side and the centre; or `ten`: four corners and the centre, each
            also mirrored.
        mean: mean per colour, for values in [0, 1].
        std: standard deviation per colour.
        fps: frame rate that the video is resampled to; None for its own.
        step: frames of the video from one frame of a window to the next.
        layout: order of a crop's axes: colours C, time T, height H, width W. `CHW`: single images, for networks that
            take no clips; `frames` is then 1.
        colours: order of the colours.
        interpolation: interpolation of resizing.
        antialias: whether to low-pass filter when shrinking; some models were trained without.
        odd_margin: position of the centre crop if the margin is odd. `smaller`: the smaller half is above and
            to the left, as in transformers. `larger`: the larger half, as in SlowFast. `even`: the one that is an even
            number, as in torchvision.
        arithmetic: of resizing. `exact`: in floating-point numbers. `pillow`: in whole grey levels, with antialias, and
            the long side rounded down, as libraries of image classifiers prepare pictures.
        fit: side that `resize` is the length of, if it is one number: the `short` one, or the `long` one.
        beyond: padding of crops larger than the frame: `black`, the `mean` colour, or None to refuse them.
        floored: whether the long side is rounded down where the short one is resized to a length, instead of to the
            nearest.
        shrunk: height and width that a crop is resized to; None to keep its size.
        spread: position of the frames of a clip in a video. `step`: `step` frames apart. `span`: evenly from the first
            to the last of `frames * step` frames of `fps`, rounded down to frames of the video: 8 frames of step 8 are
            9 apart. `even`: in the middle of each of as many equal parts of the whole video. `first`: at the beginning
            of each.
        clips: number of clips per video, whose scores are averaged; None for the benchmark's. One that is spread over
            the whole video is enough.
        starts: starts of several clips of a span. `ends`: from the beginning of the video to its end. `parts`: where
            as many equal parts of the rest of the video begin.
        joined: values averaged over clips and crops: `scores`, or `logits`, without softmax.

    >>> spec = InputSpec(frames=2, stride=1, resize=None, size=4, crops="ten", mean=(0.5,) * 3, std=(0.5,) * 3)
    >>> spec.prepare(np.full((2, 6, 8, 3), 255, np.uint8)).shape
    torch.Size([10, 3, 2, 4, 4])
    """

    frames: int
    stride: int = None  # type: ignore[assignment]  # set by __post_init__
    resize: tuple[int, int] | int | None = ...  # type: ignore[assignment]  # must be given, as the next
    size: int = ...  # type: ignore[assignment]
    crops: Crops = "centre"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    fps: float | None = None
    step: int = 1
    layout: Layout = "CTHW"
    colours: Literal["rgb", "bgr"] = "rgb"
    interpolation: Interpolation = "bilinear"
    antialias: bool = True
    odd_margin: OddMargin = "smaller"
    arithmetic: Arithmetic = "exact"
    fit: Fit = "short"
    beyond: Beyond | None = None
    floored: bool = False
    shrunk: int | None = None
    spread: Spread = "step"
    clips: int | None = None
    starts: Starts = "ends"
    joined: Joined = "scores"

    def __post_init__(self) -> None:
        lacking = [name for name in ("resize", "size") if getattr(self, name) is ...]
        if lacking:
            raise BadValue(f"InputSpec: {' and '.join(lacking)} must be given")
        if self.stride is None:
            object.__setattr__(self, "stride", self.frames * self.step)
        _check_settings(self)

    @classmethod
    def like(cls, transform: Transform, *, frames: int, **others: Any) -> InputSpec:
        """Return the spec that prepares frames as a callable does, such as torchvision's transforms of evaluation.

        The callable is given frames, so that it may be anything that resizes them, cuts out their centre and
        normalises: a `Compose` of `Resize`, `CenterCrop`, `ToTensor` and `Normalize`, a preset, or a function. It is
        given a tensor (T, 3, H, W) uint8, or one frame after the other as pictures of Pillow or arrays if it refuses.

        Args:
            frames: length of a window, which no transform knows.
            others: further settings, such as `fps`, `step` or `layout`.

        Raises:
            BadValue: F193 if the callable is random or does something else; up to a rounding of pixels the spec
                prepares as it does, or is refused.
        """
        from jostle.models.preprocessing.transforms import settings_of_transform

        return cls(frames=frames, **{**settings_of_transform(transform, cls), **others})

    @property
    def picks(self) -> tuple[int, ...]:
        """Indices of the frames used out of `frames * step`, if they do not depend on the video.

        >>> InputSpec(frames=4, stride=64, resize=None, size=8, step=16, spread="span").picks
        (0, 21, 42, 63)
        """
        if self.spread == "span":
            last = self.frames * self.step - 1
            return tuple(i * last // max(self.frames - 1, 1) for i in range(self.frames))
        within = self.step // 2 if self.spread == "even" else 0
        return tuple(i * self.step + within for i in range(self.frames))

    def resize_for(self, size: int) -> tuple[int, int] | int | None:
        """Return the resize size for crops of another size that cover the same part of a frame.

        >>> InputSpec(frames=1, stride=1, resize=128, size=112).resize_for(56)
        64
        """
        if self.resize is None:
            return None
        scale = size / self.size
        if isinstance(self.resize, int):
            return max(size, round(self.resize * scale))
        return max(size, round(self.resize[0] * scale)), max(size, round(self.resize[1] * scale))

    def prepare(self, frames: Frames | Tensor) -> Tensor:
        """Return (crops, 3, T, size, size) float32 from (T, H, W, 3) uint8, in the axis order of `layout`."""
        return self.prepare_clips([frames])[0]

    def prepare_clips(self, clips: Sequence[Frames | Tensor]) -> Tensor:
        """Return (B, crops, 3, T, size, size) float32 from B clips (T, H, W, 3) uint8, in few steps if of one shape."""
        if self.layout == "CHW" and any(len(clip) != 1 for clip in clips):
            raise BadValue(f"single images are clips of 1 frame, not of {max(map(len, clips))}")
        if any(clip.shape != clips[0].shape for clip in clips):
            return torch.stack([self.prepare(clip) for clip in clips])
        tensors = [torch.as_tensor(clip) for clip in clips]
        frames = _checked(tensors[0] if len(tensors) == 1 else torch.cat(tensors))
        if self._fits_one_pass(frames):
            crops = self._in_one_pass(frames, len(clips[0]), self.crops, self.layout)
            return crops[:, :, 0] if self.layout == "CHW" else crops
        normal = self._normal(frames)
        if len(clips) == 1:
            return self._crops(normal)[None]  # not copied
        return torch.stack([self._crops(video) for video in torch.unflatten(normal, 0, (len(clips), -1))])

    def prepare_flow(self, flow: Frames | Tensor) -> Tensor:
        """Return (crops, 2, T, size, size) float32 from flow (T, H, W, 2) uint8 of resized frames; from -1 to 1.

        A mirrored crop keeps the sign of what moves across, as it was when public features were made.
        """
        moved = torch.as_tensor(flow).permute(0, 3, 1, 2).float()
        return self._crops(moved.div_(255).mul_(2).sub_(1))

    def resized_to(self, height: int, width: int) -> tuple[int, int]:
        """Return (height, width) that frames of a size are brought to before they are cropped.

        >>> InputSpec(frames=1, stride=1, resize=256, size=224).resized_to(480, 640)
        (256, 341)
        """
        to, short = self.resize, min(height, width)
        if not isinstance(to, int):
            return to or (height, width)
        if self.fit == "long":
            ratio = max(height, width) / to
            return round(height / ratio), round(width / ratio)
        if self.floored or self.arithmetic == "pillow":
            return height * to // short, width * to // short
        return round(height * to / short), round(width * to / short)

    def _crops(self, video: Tensor) -> Tensor:
        return self.arrange(self.shrink(cut(video, self.size, self.crops, self.odd_margin)))

    def arrange(self, crops: Tensor) -> Tensor:
        """Return (crops, T, 3, H, W) in the axis order of `layout`."""
        arranged = crops.permute(AXES[self.layout]).contiguous()
        return arranged[:, 0] if self.layout == "CHW" else arranged

    def shrink(self, crops: Tensor) -> Tensor:
        """Return (..., 3, H, W) crops at the size that they are to have in the end."""
        if self.shrunk is None:
            return crops
        return resized(crops.flatten(0, -4), (self.shrunk, self.shrunk), antialias=self.antialias).reshape(
            *crops.shape[:-2], self.shrunk, self.shrunk
        )

    def prepare_frames(self, frames: Frames | Tensor) -> Tensor:
        """Return (T, 3, size, size) float32 centre crops of (T, H, W, 3) uint8 frames."""
        video = _checked(torch.as_tensor(frames))
        if self._fits_one_pass(video):
            return self._in_one_pass(video, 1, "centre", "THWC").flatten(0, 2).permute(0, 3, 1, 2)
        centre = self.shrink(centre_crop(self._normal(video), self.size, self.odd_margin))
        return centre.contiguous(memory_format=torch.channels_last)

    def _fits_one_pass(self, frames: Tensor) -> bool:
        """Whether a GPU kernel can do all steps: no rounding in between, no border, no second resize."""
        bordered = self.beyond is not None and min(self.resized_to(*frames.shape[1:3])) < self.size
        return runs_on(frames) and self.arithmetic == "exact" and self.shrunk is None and not bordered

    def _in_one_pass(self, frames: Tensor, length: int, crops: Crops, layout: Layout) -> Tensor:
        to = self.resized_to(*frames.shape[1:3])
        return prepare_fused(
            frames,
            length,
            Resize(to, self.interpolation, self.antialias),
            crops_of(*to, self.size, crops, self.odd_margin),
            self.size,
            Normalization(self.mean, self.std),
            bgr=self.colours == "bgr",
            axes=AXES[layout],
        )

    def _normal(self, video: Tensor) -> Tensor:
        """Return (T, 3, H, W) resized, in the model's scale of values."""
        if self.colours == "bgr":
            video = video.flip(-1)
        video = self._bordered(self._resized(video.permute(0, 3, 1, 2)))
        lines = video.permute(0, 2, 3, 1)
        if not lines.is_contiguous():
            return video.div_(255).sub_(_colour(self.mean, video.device)).div_(_colour(self.std, video.device))
        # Whole lines of pixels at a time: three values at a time take more than twice as long.
        mean, std = (_colour_line(values, lines.shape[2], video.device) for values in (self.mean, self.std))
        lines.flatten(2).div_(255).sub_(mean).div_(std)
        return video

    def _resized(self, video: Tensor) -> Tensor:
        """Return (T, 3, H', W') float32 of values from 0 to 255."""
        to = self.resized_to(*video.shape[-2:])
        if self.arithmetic == "exact":
            return resized(video.float(), to, self.interpolation, antialias=self.antialias)
        return pillow_resize(video, to, self.interpolation).float()

    def _bordered(self, video: Tensor) -> Tensor:
        """Pad frames smaller than a crop; an odd row or column goes below or to the right."""
        lacking = [max(0, self.size - length) for length in video.shape[-2:]]
        if self.beyond is None or not any(lacking):
            return video
        (above, below), (left, right) = ((n // 2, n - n // 2) for n in lacking)
        colour = [round(255 * value) if self.beyond == "mean" else 0 for value in self.mean]
        height, width = video.shape[-2] + above + below, video.shape[-1] + left + right
        border = torch.tensor(colour, dtype=video.dtype, device=video.device)[:, None, None]
        border = border.repeat(len(video), 1, height, width)
        border[..., above : height - below, left : width - right] = video
        return border


def _check_settings(spec: InputSpec) -> None:
    """Raise BadValue unless each setting has a known value, and they go together."""
    for name in ("frames", "stride", "size", "step", "shrunk", "clips"):
        if getattr(spec, name) is not None and getattr(spec, name) < 1:
            raise BadValue(f"InputSpec: {name} must be at least 1, got {getattr(spec, name)}")
    for name, known in (
        ("layout", AXES),
        ("colours", ("rgb", "bgr")),
        ("interpolation", get_args(Interpolation)),
        ("crops", get_args(Crops)),
        ("odd_margin", get_args(OddMargin)),
        ("arithmetic", get_args(Arithmetic)),
        ("fit", get_args(Fit)),
        ("beyond", (*get_args(Beyond), None)),
        ("spread", get_args(Spread)),
        ("starts", get_args(Starts)),
        ("joined", get_args(Joined)),
    ):
        if getattr(spec, name) not in known:
            allowed, value = ", ".join(map(str, known)), getattr(spec, name)
            raise BadValue(f"InputSpec: {name} is one of {allowed}, not {value!r}")
    if spec.layout == "CHW" and spec.frames != 1:
        raise BadValue(f"InputSpec: layout 'CHW' is for single images; frames must be 1, not {spec.frames}")
    if min(spec.std) <= 0:
        raise BadValue(f"InputSpec: std must be above 0, got {spec.std}")
    if spec.spread in ("even", "first") and spec.clips not in (None, 1):
        raise BadValue(f"InputSpec: a clip spread '{spec.spread}' covers the whole video; clips must be 1")
    if spec.starts == "parts" and spec.spread != "span":
        raise BadValue("InputSpec: starts 'parts' needs spread 'span'")


def _checked(frames: Tensor) -> Tensor:
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != torch.uint8:
        raise BadValue(f"frames must be (T, H, W, 3) uint8, not {tuple(frames.shape)} {frames.dtype}")
    return frames


@lru_cache(maxsize=64)
def _colour(values: tuple[float, float, float], device: torch.device) -> Tensor:
    """Return (3, 1, 1) values on a device, cached: a copy to a GPU waits for all its work."""
    with torch.inference_mode(False):
        return torch.tensor(values, device=device)[:, None, None]


@lru_cache(maxsize=64)
def _colour_line(values: tuple[float, float, float], width: int, device: torch.device) -> Tensor:
    """Return (3 * width,) values of a line of pixels on a device, cached as in `_colour`."""
    with torch.inference_mode(False):
        return _colour(values, device).flatten().repeat(width)


def resized(
    video: Tensor, to: tuple[int, int] | int | None, how: Interpolation = "bilinear", *, antialias: bool = True
) -> Tensor:
    """Return (T, 3, H', W') of values from 0 to 255; see `InputSpec`."""
    height, width = video.shape[-2:]
    if to is None:
        return video
    if isinstance(to, int):
        short = min(height, width)
        to = round(height * to / short), round(width * to / short)
    if to == (height, width):
        return video
    output = F.interpolate(video, to, mode=how, align_corners=False, antialias=antialias)
    return output.clamp_(0, 255) if how == "bicubic" else output  # bicubic filters overshoot at edges
