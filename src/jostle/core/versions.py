"""Versions of Python and the libraries, which besides the seed decide the exact results."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    *("jostle", "numpy", "av", "opencv-python-headless", "numba", "scipy"),
    *("torch", "torchvision", "transformers", "onnxruntime"),
)


def library_versions() -> dict[str, str]:
    """Return the version of every installed library by name."""
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
