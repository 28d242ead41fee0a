"""Which builds of which libraries work here: what decides, besides the seed, which bits come out."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    *("jostle", "numpy", "av", "opencv-python-headless", "numba", "scipy"),
    *("torch", "torchvision", "transformers", "onnxruntime"),
)


def builds() -> dict[str, str]:
    """Versions by name; what is not installed is not there."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
