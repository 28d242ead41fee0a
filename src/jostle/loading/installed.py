"""What has to be installed before a model can be had."""

from __future__ import annotations

from importlib.util import find_spec

from jostle.errors import MissingExtra


def need_torch(what: str) -> None:
    """Say what to install where networks cannot run."""
    if find_spec("torch") is None:
        raise MissingExtra(what, "torch")
