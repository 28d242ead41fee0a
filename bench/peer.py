"""The package we measure ourselves against: imagecorruptions 1.1.2, mended only where new libraries broke it.

Three of its nineteen functions raise on NumPy 2 and scikit-image 0.26: `fog` (asks for `np.float_`),
`gaussian_blur` and `glass_blur` (pass `multichannel=`). The two names they stumble over are replaced inside
that one module, so every formula, loop and array type stays as published and both the pixels and the speed
are the package's own.

The module also gets a random generator of its own, of the kind behind `np.random.normal` and its like, so
that it can be seeded by `seed` and leaves the global one alone. `impulse_noise` cannot be seeded at all:
current scikit-image draws from a fresh generator at each call, so two runs of it agree in distribution only.
"""

from __future__ import annotations

import functools
import types
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

Frame = npt.NDArray[np.uint8]  # (H, W, 3) RGB

NAMES = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "speckle_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "gaussian_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
    "spatter",
    "saturate",
)


@functools.cache
def module() -> types.ModuleType:
    """`imagecorruptions.corruptions` itself, mended.

    Raises:
        ImportError: the package, or the `pkg_resources` it leans on, is not installed.
    """
    with warnings.catch_warnings():
        # It imports pkg_resources and scipy.ndimage.interpolation, both on their way out; neither is our
        # business.
        warnings.simplefilter("ignore")
        from imagecorruptions import corruptions
    corruptions.np = _old_numpy()
    corruptions.gaussian = _gaussian_with_multichannel(corruptions.gaussian)
    return corruptions


def peer(name: str, frame: Frame, severity: int) -> Frame:
    """One frame through the peer's public call: (H, W, 3) uint8 in, the same out."""
    module()
    import imagecorruptions

    return imagecorruptions.corrupt(frame, severity=severity, corruption_name=name)


def seed(value: int) -> None:
    """Start the peer's random draws anew."""
    module().np.random.seed(value)


def _old_numpy() -> types.ModuleType:
    """A module with all of NumPy's names, the one that NumPy 2 dropped, and a private random state."""
    # A copy, because adding the name to NumPy itself would change it for everybody in the process.
    copy = types.ModuleType("numpy")
    copy.__dict__.update(np.__dict__)
    copy.__dict__["float_"] = np.float64
    copy.__dict__["random"] = np.random.RandomState(0)
    return copy


def _gaussian_with_multichannel(gaussian: Any) -> Any:
    """scikit-image's `gaussian`, taking the old word for `channel_axis=-1`."""

    @functools.wraps(gaussian)
    def mended(image: Any, sigma: Any, *, multichannel: bool = False, **options: Any) -> Any:
        if multichannel:
            options["channel_axis"] = -1
        return gaussian(image, sigma, **options)

    return mended
