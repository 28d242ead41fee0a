"""Where jostle keeps what it can make again: generated data sets, and whatever else is safe to delete."""

from __future__ import annotations

import os
import re
from pathlib import Path

from jostle.errors import BadValue

USUAL_CODEC_QUOTA = 2 * 2**30
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def codec_quota() -> int:
    """Bytes of coded streams that runs may keep in the cache: `$JOSTLE_CODEC_CACHE`, as `500M` or `20G`; else 2 GiB.

    0 keeps none.
    """
    said = os.environ.get("JOSTLE_CODEC_CACHE", "").strip()
    if not said:
        return USUAL_CODEC_QUOTA
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", said, re.IGNORECASE)
    if found is None:
        raise BadValue(f"JOSTLE_CODEC_CACHE is a size such as 500M or 20G, or 0, not {said!r}")
    return int(found[1]) * _UNITS[found[2].upper()]


def cache_folder() -> Path:
    """The folder of generated files: `$JOSTLE_CACHE`, else `$XDG_CACHE_HOME/jostle`, else `~/.cache/jostle`.

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
