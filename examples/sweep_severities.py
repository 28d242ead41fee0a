"""Print the peak signal-to-noise ratio at each severity: python examples/sweep_severities.py [SPEC ...]

Each ratio is printed as a bar of text. The frames are generated; replace them by your own, of shape (T, H, W, 3).
"""

from __future__ import annotations

import sys

import numpy as np

import jostle

SPECS = ("gaussian_noise", "fog", "imagenet-c/fog", "jpeg_compression")
MAX_DB = 40.0  # length of the longest bar


def make_frames() -> np.ndarray:
    """Return sixteen frames of a bright square that moves across a soft gradient."""
    y, x = np.mgrid[:96, :128]
    clip = np.repeat(np.stack([x + 60, y + 80, 200 - x], -1)[None], 16, axis=0)
    for t in range(16):
        clip[t, 30:60, 4 * t : 4 * t + 30] = (240, 200, 40)
    return clip.astype(np.uint8)


def psnr(clean: np.ndarray, corrupted: np.ndarray) -> float:
    """Return 10 log10(255^2 / mean squared difference), in decibels; infinite for equal frames."""
    error = np.mean((clean.astype(float) - corrupted) ** 2)
    return float("inf") if error == 0 else float(10 * np.log10(255**2 / error))


def main(specs: list[str]) -> None:
    """Print a bar for every spec and severity."""
    clean = make_frames()
    for spec in specs:
        print(spec)
        for severity in range(1, 6):
            ratio = psnr(clean, jostle.corrupt(clean, f"{spec}:{severity}", video_id="sweep"))
            print(f"  {severity}  {ratio:5.1f} dB  {'#' * round(min(ratio, MAX_DB))}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(SPECS))
