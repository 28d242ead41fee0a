"""How the numbers of a clip lie in a GPU's memory while a network learns from it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def channels_last_on_gpu(network: nn.Module, device: torch.device) -> None:
    """Have 3D convolutions of a network on a GPU read clips with their channels last, as they are faster so.

    It is done to what they read and not to their weights: those lie as files and optimisers have them.
    """
    if device.type != "cuda":
        return
    for module in network.modules():
        if isinstance(module, nn.Conv3d):
            module.register_forward_pre_hook(_last)


def _last(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(value.contiguous(memory_format=torch.channels_last_3d) for value in inputs)


def half_on_gpu(precision: str, device: torch.device) -> torch.autocast:
    """A context in which a GPU computes in bfloat16 if that is asked for.

    A CPU gains nothing from it, and on one without such arithmetic torch would turn its fast kernels off for good.
    """
    wanted = precision == "bfloat16" and device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)
