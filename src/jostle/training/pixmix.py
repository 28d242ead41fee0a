"""PixMix augmentation with generated plasma patterns.

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
