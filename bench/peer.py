"""The package that corruptions are compared with: imagecorruptions 1.1.2, patched only where new libraries broke it.

Three of its nineteen functions raise on NumPy 2 and scikit-image 0.26: `fog` (uses `np.float_`),
`gaussian_blur` and `glass_blur` (pass `multichannel=`). Both names are replaced inside that one module, so every
formula, loop and array type stays as published and both the pixels and the speed are the package's own.

The module also gets a random generator of its own, of the kind behind `np.random.normal`, so
that it can be seeded by `seed` without a change to the global one. `impulse_noise` cannot be seeded at all:
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
    """Return the patched module `imagecorruptions.corruptions`.

    Raises:
        ImportError: if the package, or the `pkg_resources` it imports, is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports pkg_resources and scipy.ndimage.interpolation, both deprecated
        from imagecorruptions import corruptions
    corruptions.np = _old_numpy()
    corruptions.gaussian = _gaussian_with_multichannel(corruptions.gaussian)
    return corruptions


def peer(name: str, frame: Frame, severity: int) -> Frame:
    """Corrupt a frame, (H, W, 3) uint8, by the public function of the package."""
    module()
    import imagecorruptions

    return imagecorruptions.corrupt(frame, severity=severity, corruption_name=name)


def seed(value: int) -> None:
    """Seed the random generator of the package."""
    module().np.random.seed(value)


def _old_numpy() -> types.ModuleType:
    """Return a module with all names of NumPy, the one that NumPy 2 removed, and a random state of its own."""
    # A copy, because adding the name to NumPy itself would change it for the whole process.
    copy = types.ModuleType("numpy")
    copy.__dict__.update(np.__dict__)
    copy.__dict__["float_"] = np.float64
    copy.__dict__["random"] = np.random.RandomState(0)
    return copy


def _gaussian_with_multichannel(gaussian: Any) -> Any:
    """Return scikit-image's `gaussian` with the old argument `multichannel` in place of `channel_axis`."""

    @functools.wraps(gaussian)
    def patched(image: Any, sigma: Any, *, multichannel: bool = False, **options: Any) -> Any:
        if multichannel:
            options["channel_axis"] = -1
        return gaussian(image, sigma, **options)

    return patched
