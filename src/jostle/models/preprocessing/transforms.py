"""Preparation of frames by a callable, such as torchvision's transforms: called, measured and compared.

What a callable does is not read from its attributes but measured: it is given black and white frames (normalisation),
ramps (scale of resizing) and texture of odd sizes (rounding of sizes, position of the crop, filter).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.random import rng_for
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.errors import BadValue

Transform = Callable[[Any], Any]
Frames = npt.NDArray[np.uint8]


class Preparer(Protocol):
    """Preparation of frames as an `InputSpec` does it."""

    @property
    def std(self) -> tuple[float, float, float]:
        """Standard deviation per colour."""

    def prepare_frames(self, frames: Frames) -> Tensor:
        """Return (T, 3, size, size) float32 of (T, H, W, 3) uint8."""


BuildSpec = Callable[..., Preparer]

SIDES = (192, 256)  # of ramps: a grey level is a whole number of pixels along the longer side
ODD = ((203, 341), (347, 211), (240, 321))  # sizes at which the ways of rounding differ
TOLERANCE = 1.05  # grey levels: one rounding of a pixel, which transforms of uint8 do and `exact` arithmetic does not
SAME = 0.02  # grey levels that are rounding of floating-point numbers alone
SCALE = 0.02  # relative error of a scale that is measured on a ramp
CHOICES: dict[str, tuple[Any, ...]] = {
    "arithmetic": ("exact", "pillow"),
    "interpolation": ("bilinear", "bicubic"),
    "antialias": (True, False),
    "floored": (True, False),
    "odd_margin": ("even", "smaller", "larger"),
}


def apply_transform(transform: Transform, frames: Frames) -> Tensor:
    """Return (T, 3, H, W) float32 that a callable makes of (T, H, W, 3) uint8.

    It is given a tensor (T, 3, H, W) uint8, as torchvision's transforms take; if it refuses that, single frames as
    pictures of Pillow; and if it refuses those, as arrays (H, W, 3). What comes back may have time before or after the
    colours, or the colours last.

    Raises:
        BadValue: F193 if it takes none of them, or gives no frames of one square size.
    """
    refusals = []
    for what, call in (("a tensor (T, 3, H, W)", _of_tensor), ("pictures", _of_pictures), ("arrays", _of_arrays)):
        try:
            output = call(transform, frames)
        except Exception as error:  # whatever somebody else's code raises
            refusals.append(f"{what}: {type(error).__name__}: {error}")
            continue
        return _as_frames(output, len(frames))
    raise BadValue(f"the transform takes no frames; it refuses {'; '.join(refusals)[:600]}", fault="F193")


def _of_tensor(transform: Transform, frames: Frames) -> Any:
    return transform(torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous())


def _of_pictures(transform: Transform, frames: Frames) -> Any:
    from PIL import Image

    return torch.stack([torch.as_tensor(np.asarray(transform(Image.fromarray(frame)))) for frame in frames])


def _of_arrays(transform: Transform, frames: Frames) -> Any:
    return torch.stack([torch.as_tensor(np.asarray(transform(frame.copy()))) for frame in frames])


def _as_frames(output: Any, count: int) -> Tensor:
    if isinstance(output, Mapping):  # image processors of transformers
        output = next(iter(output.values()), None)
    try:
        video = torch.as_tensor(np.asarray(output) if not isinstance(output, Tensor) else output).float()
    except (TypeError, ValueError):
        raise BadValue(
            f"the transform gives a {type(output).__name__}, not a tensor or an array", fault="F193"
        ) from None
    while video.ndim > 4 and video.shape[0] == 1:
        video = video[0]
    if video.ndim == 4 and video.shape[:2] == (count, 3):
        return video
    if video.ndim == 4 and video.shape[:2] == (3, count):
        return video.transpose(0, 1)
    if video.ndim == 4 and video.shape[0] == count and video.shape[-1] == 3:
        return video.permute(0, 3, 1, 2)
    raise BadValue(f"the transform gives {tuple(video.shape)} of {count} frames, not ({count}, 3, H, W)", fault="F193")


def settings_of_transform(transform: Transform, build: BuildSpec) -> dict[str, Any]:
    """Return the settings of an `InputSpec` that prepares as a callable does.

    Args:
        build: returns a spec of settings, as its class does.

    Raises:
        BadValue: F193 if the callable is random, or does something else than to resize, cut the centre and normalise.
    """
    texture = _texture(*ODD[0])
    first, second = apply_transform(transform, texture), apply_transform(transform, texture)
    if first.shape != second.shape or not torch.equal(first, second):
        raise BadValue("the transform is random; give the one that is used in evaluation", fault="F193")
    if first.shape[-1] != first.shape[-2]:
        raise BadValue(f"the transform gives frames of {tuple(first.shape[-2:])}; crops are square", fault="F193")
    size = first.shape[-1]
    colours = _colours(transform)
    mean, std = _normalisation(transform)
    known = {"size": size, "colours": colours, "mean": mean, "std": std}
    best: tuple[float, dict[str, Any]] = (float("inf"), {})
    examples = [(frames, apply_transform(transform, frames)) for frames in (_texture(*shape) for shape in ODD)]
    for resize in _resizes(transform, size, mean, std):
        for values in product(*CHOICES.values()):
            settings = {**known, "resize": resize, **dict(zip(CHOICES, values, strict=True))}
            if settings["arithmetic"] == "pillow" and not settings["antialias"]:
                continue  # it always filters
            distance = _distance(build(frames=1, layout="TCHW", **settings), examples, best[0])
            if distance < best[0]:
                best = (distance, settings)
            if distance <= SAME:
                return settings
    distance, settings = best
    if distance > TOLERANCE:
        raise BadValue(
            "the transform does something else than to resize frames, cut their centre and normalise: the nearest "
            f"settings differ by up to {distance:.1f} grey levels ({_written(settings)}); give a model that prepares "
            "its frames itself, as a callable",
            fault="F193",
        )
    return settings


def _distance(spec: Preparer, examples: Iterable[tuple[Frames, Tensor]], enough: float) -> float:
    """Return the largest difference in grey levels; the search ends once it is more than `enough`."""
    worst = 0.0
    levels = 255 * torch.tensor(spec.std)[:, None, None]
    for frames, output in examples:
        try:
            prepared = spec.prepare_frames(frames)
        except BadValue:  # the crop is larger than the frame
            return float("inf")
        if prepared.shape != output.shape:
            return float("inf")
        worst = max(worst, float(((prepared - output) * levels).abs().max()))
        if worst > enough:
            break
    return worst


def _texture(height: int, width: int) -> Frames:
    """Return one frame of soft texture and grain, in which every shift and filter shows."""
    y, x = np.mgrid[:height, :width]
    waves = [127 + 60 * np.sin(x / (7 + c)) + 50 * np.cos(y / (5 + c)) for c in range(3)]
    grain = rng_for(0, "transform", height, width).integers(-15, 16, (height, width, 3))
    return np.clip(np.stack(waves, -1) + grain, 0, 255).astype(np.uint8)[None]


def _normalisation(transform: Transform) -> tuple[tuple[float, ...], tuple[float, ...]]:
    black, white = (
        apply_transform(transform, np.full((1, *SIDES, 3), level, np.uint8)).double().mean((0, 2, 3))
        for level in (0, 255)
    )
    if not bool((white > black).all()):
        raise BadValue("the transform does not make white frames brighter than black ones", fault="F193")
    std = 1 / (white - black)
    mean = -black * std
    return tuple(_plain(mean)), tuple(_plain(std))


def _plain(values: Tensor) -> list[float]:
    """Return numbers without the noise of float32: 0.485 rather than 0.48500001."""
    return [float(f"{value:.5g}") + 0.0 if abs(value) > 1e-6 else 0.0 for value in values.tolist()]


def _colours(transform: Transform) -> str:
    """Return the order of the colours, from a frame that is red."""
    red = np.zeros((1, *SIDES, 3), np.uint8)
    black = apply_transform(transform, red).mean((0, 2, 3))
    red[..., 0] = 255
    change = (apply_transform(transform, red).mean((0, 2, 3)) - black).abs()
    if int(change.argmax()) == 1 or int((change > 1e-6).sum()) != 1:
        raise BadValue("the transform mixes colours", fault="F193")
    return "rgb" if int(change.argmax()) == 0 else "bgr"


def _resizes(
    transform: Transform, size: int, mean: tuple[float, ...], std: tuple[float, ...]
) -> list[tuple[int, int] | int | None]:
    """Return what frames may be resized to, from ramps in an upright and a lying frame."""
    lying, upright = SIDES, SIDES[::-1]
    sizes = []
    for height, width in (lying, upright):
        y, x = np.mgrid[:height, :width]
        scales = []
        for ramp, axis in ((y, -2), (x, -1)):
            frames = np.repeat(np.minimum(ramp, 255).astype(np.uint8)[None, ..., None], 3, -1)
            levels = 255 * (apply_transform(transform, frames)[0, 0].double() * std[0] + mean[0])
            line = levels.mean(-1 if axis == -2 else -2)
            middle = line[len(line) // 5 : max(len(line) - len(line) // 5, len(line) // 5 + 2)]
            scales.append(float((middle[-1] - middle[0]) / max(len(middle) - 1, 1)))
        if min(scales) <= 0:
            raise BadValue("the transform turns, mirrors or pads frames", fault="F193")
        sizes.append((height / scales[0], width / scales[1]))
    found: list[tuple[int, int] | int | None] = []
    (low, wide), (high, narrow) = sizes
    if max(abs(low / SIDES[0] - 1), abs(wide / SIDES[1] - 1)) < SCALE:
        found.append(None)
    if abs(low / high - 1) < SCALE and abs(wide / narrow - 1) < SCALE:
        found += [(h, w) for h in _near(low, size) for w in _near(wide, size)]
    if abs(low / narrow - 1) < SCALE:
        found += _near((low + narrow) / 2, size)
    return found


def _near(length: float, size: int) -> list[int]:
    """Return whole numbers near a measured length, from the nearest on; lengths are seldom below the crop's."""
    least = size if round(length) >= size else 1
    return sorted(range(max(round(length) - 1, least), round(length) + 2), key=lambda one: abs(one - length))


def _written(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items() if name not in ("mean", "std"))


@dataclass(frozen=True)
class PreparationDifference(Result):
    """Difference between the frames that a spec and a callable prepare from the same clip.

    Attributes:
        shapes: (height, width) of both, the spec's first.
        largest: difference of a value in grey levels, None where the shapes differ.
        mean: mean difference in grey levels, likewise.
        share: share of values that differ by more than one grey level, likewise.
        change: settings of the spec that would make both alike, with their values; None where there are none.
    """

    json_keys = ("alike", "shapes", "largest", "mean", "share", "change")

    shapes: tuple[tuple[int, int], tuple[int, int]]
    largest: float | None
    mean: float | None
    share: float | None
    change: dict[str, Any] | None

    @property
    def alike(self) -> bool:
        """Whether both prepare the same, up to one rounding of a pixel."""
        return self.largest is not None and self.largest <= TOLERANCE

    def tables(self) -> tuple[Table, ...]:
        """Return how far the frames are apart, and what would make them alike."""
        title, rows = "", []
        if self.largest is None:
            one, other = ("x".join(map(str, shape)) for shape in self.shapes)
            title = f"sizes differ: the model is given {one}, the transform gives {other}"
        else:
            rows = [
                ("largest difference", f"{self.largest:.2f} grey levels"),
                ("mean difference", f"{self.mean:.3f} grey levels"),
                ("more than one level", f"{100 * (self.share or 0):.2f} % of all values"),
            ]
        verdict = "no settings of an InputSpec prepare as the transform does"
        if self.alike:
            verdict = "both prepare alike"
        elif self.change:
            verdict = f"to prepare as the transform does, change {_written_all(self.change)}"
        return (Table(title, (Column("what"), Column("difference")), tuple(rows), (verdict,)),)


def _written_all(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def compare_preparation(spec: Preparer, transform: Transform, frames: Frames | None = None) -> PreparationDifference:
    """Compare the centre crops of a spec with what a callable makes of the same frames.

    Args:
        frames: (T, H, W, 3) uint8; by default texture of several odd sizes, of which the one that differs most counts.
    """
    if frames is None:
        every = [_compare(spec, transform, _texture(*shape)) for shape in ODD]
        return max(every, key=lambda one: float("inf") if one.largest is None else one.largest)
    return _compare(spec, transform, frames)


def _compare(spec: Preparer, transform: Transform, frames: Frames) -> PreparationDifference:
    one, other = spec.prepare_frames(frames), apply_transform(transform, frames)
    shapes = ((one.shape[-2], one.shape[-1]), (other.shape[-2], other.shape[-1]))
    largest = mean = share = None
    if one.shape == other.shape:
        levels = ((one - other) * 255 * torch.tensor(spec.std)[:, None, None]).abs()
        largest, mean, share = float(levels.max()), float(levels.mean()), float((levels > TOLERANCE).float().mean())
    change: dict[str, Any] | None = {}
    if largest is None or largest > TOLERANCE:
        try:
            settings = settings_of_transform(transform, type(spec))
            change = {name: value for name, value in settings.items() if getattr(spec, name) != value}
        except BadValue:
            change = None
    return PreparationDifference(shapes, largest, mean, share, change)
