"""Environment of a process: the cache folder and its limits, and the versions of Python and the libraries."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jostle.errors import BadValue

DEFAULT_CODEC_QUOTA = 2 * 2**30
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def codec_quota() -> int:
    """Return the cache limit for coded streams in bytes: `$JOSTLE_CODEC_CACHE` (`500M`, `20G`), or 2 GiB.

    0 keeps none.
    """
    text = os.environ.get("JOSTLE_CODEC_CACHE", "").strip()
    if not text:
        return DEFAULT_CODEC_QUOTA
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", text, re.IGNORECASE)
    if match is None:
        raise BadValue(f"JOSTLE_CODEC_CACHE is a size such as 500M or 20G, or 0, not {text!r}")
    return int(match[1]) * _UNITS[match[2].upper()]


def refuses_gpl() -> bool:
    """Return whether `$JOSTLE_NO_GPL` forbids encoders under the GPL; empty and 0 count as not set."""
    return os.environ.get("JOSTLE_NO_GPL", "").strip() not in ("", "0")


def cache_folder() -> Path:
    """Return the cache folder: `$JOSTLE_CACHE`, else `$XDG_CACHE_HOME/jostle`, else `~/.cache/jostle`.

    It need not exist. An empty variable counts as none, and so does a relative `$XDG_CACHE_HOME`, as its
    specification asks.
    """
    own = os.environ.get("JOSTLE_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared and os.path.isabs(shared):
        return Path(shared) / "jostle"
    return Path("~/.cache/jostle").expanduser()


PACKAGES = (
    *("jostle", "numpy", "av", "opencv-python-headless", "numba", "scipy"),
    *("torch", "torchvision", "transformers", "onnxruntime"),
)


def library_versions() -> dict[str, str]:
    """Return the version of every installed library by name."""
    return dict(_library_versions())


@lru_cache(1)
def _library_versions() -> dict[str, str]:
    """Read the versions once: each takes a parser of e-mail through the description of a package."""
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
