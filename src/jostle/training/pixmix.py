"""Mixing with pictures of nothing: patterns drawn from a seed, and the mixing rules of PixMix.

Hendrycks et al.: "PixMix: Dreamlike Pictures Comprehensively Improve Safety Measures", CVPR 2022. There the patterns
are collected fractals; here they are plasma: noise whose waves weaken as they get shorter, bent into bands of colour.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.random import rng_for
from jostle.training.recognition_config import PatternsConfig

LEAST = 1e-3  # a multiplication divides by what is darker than this as if it were not


def plasma(seed: int, number: int, size: int) -> npt.NDArray[np.uint8]:
    """(size, size, 3), one of endlessly many patterns.

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
    made: npt.NDArray[np.uint8] = np.round(127.5 + 127.5 * contrast * bent).astype(np.uint8).transpose(1, 2, 0)
    return made


def pattern_shelf(config: PatternsConfig, size: int, seed: int) -> Tensor:
    """(count, 3, size, size) uint8."""
    drawn = np.stack([plasma(seed, number, size) for number in range(config.count)])
    return torch.from_numpy(drawn).permute(0, 3, 1, 2).contiguous()


def mixed(clips: Tensor, shelf: Tensor, config: PatternsConfig) -> Tensor:
    """Clips (B, T, 3, H, W) in [0, 1], each mixed up to `rounds` times with a pattern or a roughened copy of itself."""
    count, device = len(clips), clips.device
    chosen = _coin(count, config.share, device)
    rounds = torch.randint(0, config.rounds + 1, (count,), device=device)
    start = torch.where(_column(_coin(count, 0.5, device)), roughened(clips), clips)
    made = start
    for number in range(int(config.rounds)):
        patterns = shelf[torch.randint(len(shelf), (count,), device=device)].float().div_(255)[:, None]
        other = torch.where(_column(_coin(count, 0.5, device)), roughened(clips), patterns)
        made = torch.where(_column(number < rounds), _once(made, other, config.strength), made)
    return torch.where(_column(chosen), made, clips)


def _once(clips: Tensor, other: Tensor, strength: float) -> Tensor:
    """One mixing: the sum or the product of both, each by a weight of its own."""
    count, device = len(clips), clips.device
    strong = torch.distributions.Beta(strength, 1.0).sample((count,)).to(device)
    weak = torch.distributions.Beta(1.0, strength).sample((2, count)).to(device)
    kept = _coin(count, 0.5, device)
    a, b = _column(torch.where(kept, strong, 1 + weak[0])), _column(torch.where(kept, weak[1], -weak[1]))
    added = (a * (2 * clips - 1) + b * (2 * other - 1) + 1) / 2
    product = (2 * clips).clamp(min=LEAST) ** a * (2 * other).clamp(min=LEAST) ** b / 2
    return torch.where(_column(_coin(count, 0.5, device)), added, product).clamp_(0, 1)


def roughened(clips: Tensor) -> Tensor:
    """Copies in fewer levels, with bright parts inverted, with other contrast or with colours exchanged."""
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
    made = ways[0]
    for number, way in enumerate(ways[1:], 1):
        made = torch.where(_column(kind == number), way, made)
    return made


def _coin(count: int, chance: float, device: torch.device) -> Tensor:
    return torch.rand(count, device=device) < chance


def _column(values: Tensor) -> Tensor:
    """(B, 1, 1, 1, 1)."""
    return values[:, None, None, None, None]
