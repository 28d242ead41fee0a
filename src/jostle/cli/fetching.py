"""Weights that are asked for by a word are fetched before the work begins, with a bar of their own."""

from __future__ import annotations

import os

from jostle import api
from jostle.cli import voice
from jostle.plugins import is_place


def fetch(kind: str, name: str | None, weights: str | None) -> None:
    """Have weights in the cache, if they are to be fetched; whoever uses them finds them there."""
    from jostle.shipped.places import is_fetched

    if name is None or is_place(name) or not is_fetched(weights) or weights is None:
        return
    if voice.quiet():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the hub's library draws its own
    with voice.progress(f"fetching weights of {name}, MiB") as advance:
        api.fetch_weights(kind, name, weights, progress=advance)
