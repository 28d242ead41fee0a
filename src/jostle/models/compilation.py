"""Compilation of networks with torch.compile: faster on a GPU, with differences in the last digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from jostle.errors import BadValue

USED = ("forward", "features", "see", "join")  # what recognisers, extractors and detectors call of a network


def check_compiling(device: str) -> None:
    """Raise unless networks can be compiled on a device.

    Raises:
        BadValue: on a CPU, where it would ask for a C++ compiler.
    """
    if not device.startswith("cuda"):
        raise BadValue("networks are compiled for GPUs, and these run on the CPU; leave --compile out")


def compile_networks(look: Any) -> None:
    """Compile the networks of a predictor when they are first called."""
    for role in ("model", "extractor", "detector"):
        part = getattr(look, role, None)
        network = getattr(part, "network", part)
        if not isinstance(network, nn.Module):
            continue
        if hasattr(getattr(network, "config", None), "compiled"):
            network.config = replace(network.config, compiled=True)  # type: ignore[type-var]
        else:
            _compile(network)


def _compile(network: nn.Module) -> None:
    for name in USED:
        # One's own network may be loaded more than once, and is compiled the first time.
        if callable(getattr(network, name, None)) and name not in vars(network):
            setattr(network, name, torch.compile(getattr(network, name), dynamic=False))
