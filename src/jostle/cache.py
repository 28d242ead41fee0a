"""Where jostle keeps what it can make again: generated data sets, and whatever else is safe to delete."""

from __future__ import annotations

import os
from pathlib import Path


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
