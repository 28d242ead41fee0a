"""How many digits a network computes with while it learns."""

from __future__ import annotations

import torch


def half_on_gpu(precision: str, device: torch.device) -> torch.autocast:
    """A context in which a GPU computes in bfloat16 if that is asked for.

    A CPU gains nothing from it, and on one without such arithmetic torch would turn its fast kernels off for good.
    """
    wanted = precision == "bfloat16" and device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)
