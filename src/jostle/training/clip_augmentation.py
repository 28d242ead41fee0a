"""Augmentation of clips in a step: frames, shift, mirroring, corruption, noise and PixMix patterns.

What is drawn for a clip depends on the seed, the epoch and the clip, and not on what stands beside it. Noise and
mixings are drawn on the device, keyed by the step. PixMix is of Hendrycks et al.: "PixMix: Dreamlike Pictures
Comprehensively Improve Safety Measures", CVPR 2022. There the patterns are collected fractals; here they are plasma:
noise whose waves weaken as they get shorter, bent into bands of colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.random import rng_for
from jostle.models.input_spec import InputSpec
from jostle.training.clips import PixelClips
from jostle.training.recognition_config import ClipsConfig, NoiseConfig, PatternsConfig

MIN_LEVEL = 1e-3  # floor of factors, which may have negative exponents


def plasma(seed: int, number: int, size: int) -> npt.NDArray[np.uint8]:
    """Generate a (size, size, 3) plasma pattern.

    >>> plasma(0, 1, 32).shape, bool((plasma(0, 1, 32) == plasma(0, 2, 32)).all())
    ((32, 32, 3), False)
    """
    rng = rng_for(seed, "plasma", number)
    down, across = np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)
    reach = np.hypot(down, across)
    reach[0, 0] = np.inf
    slope = rng.uniform(1.2, 2.2)  # the steeper, the smoother
    waves = rng.standard_normal((3, *reach.shape)) + 1j * rng.standard_normal((3, *reach.shape))
    fields = np.fft.irfft2(waves / reach**slope, (size, size))
    fields /= fields.std((1, 2), keepdims=True)
    bands = rng.uniform(0.5, 4.0, (3, 1, 1))
    phase = rng.uniform(0, 2 * np.pi, (3, 1, 1))
    shared = rng.uniform(0, 1)  # how much the colours follow one field
    bent = np.sin(bands * (shared * fields[:1] + (1 - shared) * fields) + phase)
    contrast = rng.uniform(0.6, 1.0)
    pattern: npt.NDArray[np.uint8] = np.round(127.5 + 127.5 * contrast * bent).astype(np.uint8).transpose(1, 2, 0)
    return pattern


def draw_patterns(config: PatternsConfig, size: int, seed: int) -> Tensor:
    """Generate (count, 3, size, size) uint8 patterns."""
    drawn = np.stack([plasma(seed, number, size) for number in range(config.count)])
    return torch.from_numpy(drawn).permute(0, 3, 1, 2).contiguous()


def mix_patterns(clips: Tensor, bank: Tensor, config: PatternsConfig) -> Tensor:
    """Mix clips (B, T, 3, H, W) in [0, 1] up to `rounds` times with a pattern or an augmented copy."""
    count, device = len(clips), clips.device
    chosen = _coin(count, config.share, device)
    rounds = torch.randint(0, config.rounds + 1, (count,), device=device)
    start = torch.where(_column(_coin(count, 0.5, device)), augment_copy(clips), clips)
    result = start
    for number in range(int(config.rounds)):
        patterns = bank[torch.randint(len(bank), (count,), device=device)].float().div_(255)[:, None]
        other = torch.where(_column(_coin(count, 0.5, device)), augment_copy(clips), patterns)
        result = torch.where(_column(number < rounds), _once(result, other, config.strength), result)
    return torch.where(_column(chosen), result, clips)


def _once(clips: Tensor, other: Tensor, strength: float) -> Tensor:
    """Mix once: the sum or the product of both, with random weights."""
    count, device = len(clips), clips.device
    strong = torch.distributions.Beta(strength, 1.0).sample((count,)).to(device)
    weak = torch.distributions.Beta(1.0, strength).sample((2, count)).to(device)
    plain = _coin(count, 0.5, device)
    a, b = _column(torch.where(plain, strong, 1 + weak[0])), _column(torch.where(plain, weak[1], -weak[1]))
    added = (a * (2 * clips - 1) + b * (2 * other - 1) + 1) / 2
    product = (2 * clips).clamp(min=MIN_LEVEL) ** a * (2 * other).clamp(min=MIN_LEVEL) ** b / 2
    return torch.where(_column(_coin(count, 0.5, device)), added, product).clamp_(0, 1)


def augment_copy(clips: Tensor) -> Tensor:
    """Return copies that are posterised, solarised, of other contrast or with swapped channels."""
    count, device = len(clips), clips.device
    kind = torch.randint(4, (count,), device=device)
    strength = _column(torch.rand(count, device=device))
    levels = (2 + 6 * strength).round()
    ways = (
        (clips * levels).round() / levels,
        torch.where(clips > 0.4 + 0.5 * strength, 1 - clips, clips),
        (0.5 + (clips - 0.5) * (0.4 + 1.4 * strength)).clamp(0, 1),
        clips.flip(2),
    )
    result = ways[0]
    for number, way in enumerate(ways[1:], 1):
        result = torch.where(_column(kind == number), way, result)
    return result


def _coin(count: int, chance: float, device: torch.device) -> Tensor:
    return torch.rand(count, device=device) < chance


def _column(values: Tensor) -> Tensor:
    """Reshape (B,) values to (B, 1, 1, 1, 1) for broadcasting."""
    return values[:, None, None, None, None]


ON_GPU = 48 * 2**30  # largest size of clips held on the GPU; larger ones are sent batch by batch
SENT_AT_ONCE = 64  # clips


@dataclass(frozen=True)
class View:
    """Selection of frames and pixels of a clip.

    Attributes:
        version: 0 is clean.
        steps: (T,) numbers of the frames.
        top: rows that the picture is moved by, from the centre.
        left: columns, likewise.
        mirrored: whether left is right.
    """

    version: int
    steps: tuple[int, ...]
    top: int = 0
    left: int = 0
    mirrored: bool = False


def plain_view(available: int, frames: int) -> View:
    """Return the view of the whole clean clip, centred."""
    return View(0, tuple(((2 * np.arange(frames) + 1) * available // (2 * frames)).tolist()))


def draw_view(
    name: str,
    shape: Sequence[int],
    frames: int,
    config: ClipsConfig,
    *,
    share: float,
    seed: int,
    epoch: int,
    steps: tuple[int, ...] | None = None,
) -> View:
    """Draw the view of a clip in an epoch.

    Args:
        shape: stored versions, frames, height and width of a clip.
        frames: number of frames of the view.
        share: chance of a corrupted version.
        steps: the frames of the view, if they are not drawn.
    """
    rng = rng_for(seed, "view", epoch, name)
    versions, available, height, width = shape
    version = int(rng.integers(1, versions)) if versions > 1 and rng.random() < share else 0
    least, most = config.span
    length = rng.uniform(least, most) * (available - 1)
    first = rng.uniform(0, available - 1 - length)
    if steps is None:
        steps = tuple(np.round(first + length * np.linspace(0, 1, frames)).astype(int).tolist())
    moves = [round(config.shift * side) for side in (height, width)]
    top, left = (int(rng.integers(-move, move + 1)) for move in moves)
    return View(version, steps, top, left, config.mirror and bool(rng.random() < 0.5))


class ClipLoader:
    """Loader of clips for a network.

    Args:
        clips: clips with their corrupted versions.
        spec: input specification of the network.
    """

    def __init__(self, clips: PixelClips, spec: InputSpec, device: torch.device) -> None:
        self.clips, self.spec, self.device = clips, spec, device
        self._on_gpu: Tensor | None = None
        if device.type == "cuda" and clips.frames[:1].nbytes * len(clips) <= ON_GPU:
            self._on_gpu = torch.empty((len(clips), *clips.frames.shape[1:]), dtype=torch.uint8, device=device)
            for lo in range(0, len(clips), SENT_AT_ONCE):
                batch = clips.frames[clips.where[lo : lo + SENT_AT_ONCE]]
                self._on_gpu[lo : lo + len(batch)] = torch.from_numpy(batch)

    def load(self, rows: Sequence[int], views: Sequence[View]) -> Tensor:
        """Return (B, T, size, size, 3) uint8 frames of these clips and views."""
        height, width = self.clips.frames.shape[3:5]
        version = np.array([view.version for view in views])
        steps = np.array([view.steps for view in views])
        down = np.stack([_crop_indices(height, self.spec.size, view.top) for view in views])
        across = np.stack(
            [_crop_indices(width, self.spec.size, view.left)[:: -1 if view.mirrored else 1] for view in views]
        )
        if self._on_gpu is None:
            pixels = self.clips.frames
            cut = [
                pixels[self.clips.where[row], version[i]][steps[i][:, None, None], down[i][:, None], across[i]]
                for i, row in enumerate(rows)
            ]
            return torch.from_numpy(np.stack(cut)).to(self.device)
        one, other = np.asarray(rows)[:, None, None, None], version[:, None, None, None]
        indices = (one, other, steps[:, :, None, None], down[:, None, :, None], across[:, None, None, :])
        return self._on_gpu[tuple(torch.from_numpy(index).to(self.device) for index in indices)]


def _crop_indices(side: int, size: int, shift: int) -> np.ndarray:
    """Return the rows (or columns) of a crop; beyond an edge the edge is repeated."""
    return np.clip((side - size) // 2 + shift + np.arange(size), 0, side - 1)


def prepare_batch(
    batch: Tensor,
    spec: InputSpec,
    *,
    noise: NoiseConfig | None = None,
    patterns: tuple[PatternsConfig, Tensor] | None = None,
) -> Tensor:
    """Convert (B, T, size, size, 3) uint8 to the network's scale and layout, with augmentation."""
    clips = batch.float().div_(255).permute(0, 1, 4, 2, 3)  # (B, T, 3, H, W)
    if patterns is not None and patterns[0].share:
        clips = mix_patterns(clips, patterns[1], patterns[0])
    if noise is not None and noise.std:
        noisy = torch.rand(len(clips), 1, 1, 1, 1, device=clips.device) < noise.share
        clips = clips + noise.std * noisy * torch.randn_like(clips)
    if spec.colours == "bgr":
        clips = clips.flip(2)
    mean, std = (torch.tensor(values, device=clips.device)[:, None, None] for values in (spec.mean, spec.std))
    return spec.arrange(spec.shrink((clips - mean) / std))
