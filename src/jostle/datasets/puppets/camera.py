"""Camera and light of a film: direction, zoom, shake and brightness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.difficulty import Difficulty
from jostle.datasets.puppets.motion import wander
from jostle.datasets.puppets.rasterize import Ints
from jostle.datasets.puppets.shapes import Points, Reals

MIDDLE = complex(128.0, 78.0)  # of the stage, in world pixels
FOLLOWING_S = 1.6  # how slowly the camera follows the main puppet


@dataclass(frozen=True, eq=False)
class Lens:
    """Camera centre in every frame, its zoom, the drift of the wall, and the light (T, 4)."""

    centre: Points
    zoom: Reals
    drift: Reals
    light: Ints

    def windows(self, size: tuple[int, int]) -> Ints:
        """Return the backdrop's left edges of wall and floor, top edge (256ths), texels a pixel (65536ths)."""
        height, width = size
        step = np.rint(65536 / self.zoom)
        left = (self.centre.real * 256) - (width - 1) / 512 * step
        top = (self.centre.imag * 256) - (height - 1) / 512 * step
        rows = np.stack([left + 256 * self.drift, left, top, step], axis=1)
        rows[:, :3] -= 128  # a texel's colour is that of its middle
        windows: Ints = np.rint(rows).astype(np.int32)
        return windows


def lens_of(seed: int, name: str, difficulty: Difficulty, main: Reals, frames: int) -> Lens:
    """Create the camera and the light of a film; `main` is the position of the main puppet."""
    rng = rng_for(seed, name, "camera")
    size = difficulty.camera
    follows = rng.uniform(0.25, 0.85)
    span = round(FOLLOWING_S * 24)
    padded = np.pad(main, span, mode="edge")
    sums = np.cumsum(np.concatenate(([0.0], padded)))
    width = 2 * span + 1
    calm = (sums[width:] - sums[:-width]) / width
    shake = rng.uniform(0.0, 0.9) ** 2 * size
    x = (
        MIDDLE.real
        + follows * (calm - MIDDLE.real)
        + size * (5.0 * wander(rng, frames, 0.01, 0.08) + rng.uniform(-8.0, 8.0))
    )
    y = MIDDLE.imag + size * (2.0 * wander(rng, frames, 0.01, 0.08) + rng.uniform(-4.0, 4.0))
    x += shake * wander(rng, frames, 1.0, 4.0)
    y += shake * wander(rng, frames, 1.0, 4.0)
    zoom = np.exp(size * (0.045 * wander(rng, frames, 0.01, 0.07) + rng.uniform(-0.1, 0.12)))
    drift = -rng.uniform(0.05, 0.2) * (x - MIDDLE.real) + size * rng.uniform(-0.5, 0.5) * np.arange(frames) / 24
    rng = rng_for(seed, name, "light")
    size = difficulty.light
    glow = 1.0 + size * (rng.uniform(-0.22, 0.12) + 0.1 * wander(rng, frames, 0.01, 0.12))
    glow += size * rng.uniform(0.0, 0.03) * wander(rng, frames, 1.0, 5.0)
    tints = [
        glow * (1.0 + size * (rng.uniform(-0.08, 0.08) + 0.03 * wander(rng, frames, 0.01, 0.06))) for _ in range(3)
    ]
    slope = size * (rng.uniform(-0.25, 0.25) + 0.12 * wander(rng, frames, 0.01, 0.06))
    light = np.stack([*tints, slope], axis=1)
    light[:, :3] = np.clip(light[:, :3], 0.35, 1.5)
    return Lens(x + 1j * y, zoom, drift, np.rint(np.clip(light, -0.6, 1.5) * 256).astype(np.int32))
