"""Memory layout and precision of clips on a GPU during training."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def channels_last_on_gpu(network: nn.Module, device: torch.device) -> None:
    """Make the 3D convolutions of a network on a GPU read their inputs channels-last, which is faster.

    Only inputs are converted, so that weights keep the layout of files and optimisers.
    """
    if device.type != "cuda":
        return
    for module in network.modules():
        if isinstance(module, nn.Conv3d):
            module.register_forward_pre_hook(_last)


def _last(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(value.contiguous(memory_format=torch.channels_last_3d) for value in inputs)


def half_on_gpu(precision: str, device: torch.device) -> torch.autocast:
    """Return a context in which a GPU computes in bfloat16 if the precision says so.

    A CPU gains nothing from it, and on one without such arithmetic torch would turn its fast kernels off for good.
    """
    enabled = precision == "bfloat16" and device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)
