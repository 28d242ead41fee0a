"""Optimisers with parameter groups, and the running average of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from jostle.models.detection.blocks.attention import Depthwise
from jostle.training.schedule import OptimiserConfig, decay_at


def decayed_parameters(model: nn.Module) -> frozenset[str]:
    """Return the names of parameters with weight decay: weights of convolutions and linear layers."""
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.Linear, Depthwise)
    return frozenset(
        f"{name}.weight" if name else "weight" for name, module in model.named_modules() if isinstance(module, kinds)
    )


def make_optimiser(
    model: nn.Module, config: OptimiserConfig, rates: Mapping[str, float] = MappingProxyType({})
) -> torch.optim.Optimizer:
    """Create the optimiser, with groups by weight decay and by learning rate.

    Args:
        rates: share of the learning rate by a part of a parameter's name, of several the first that is in it; kept with
            the group as `share`.
    """
    named = list(model.named_parameters())
    decay = decayed_parameters(model) if config.decays == "convolutions" else frozenset(name for name, _ in named)
    groups: list[dict[str, Any]] = []
    for part, share in {"": 1.0, **rates}.items():
        mine = [(n, p) for n, p in named if next((some for some in rates if some in n), "") == part]
        for decays, value in ((True, config.weight_decay), (False, 0.0)):
            params = [p for name, p in mine if (name in decay) == decays and p.requires_grad]
            if params or not part:
                groups.append({"params": params, "weight_decay": value, "share": share})
    fused = bool(named) and named[0][1].is_cuda  # one kernel for all parameters
    if config.method == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, fused=fused)
    method = torch.optim.Adam if config.method == "adam" else torch.optim.AdamW
    return method(groups, lr=config.lr, fused=fused)


class Average:
    """A running average of a model's weights, started from the weights themselves.

    Args:
        decay, ramp: as `OptimiserConfig` has them.

    Attributes:
        weights: by name, detached copies.
        updates: how often it was moved.
    """

    def __init__(self, model: nn.Module, decay: float, *, ramp: bool) -> None:
        self.decay, self.ramp, self.updates = decay, ramp, 0
        self.weights: dict[str, Tensor] = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move the average towards the model by `1 - decay`."""
        self.updates += 1
        decay = decay_at(self.decay, self.updates, ramp=self.ramp)
        now = {name: value.detach() for name, value in model.state_dict().items()}
        whole = [name for name, mine in self.weights.items() if not mine.is_floating_point()]
        for name in whole:
            self.weights[name].copy_(now[name])
        names = [name for name in self.weights if name not in whole]
        mine = [self.weights[name] for name in names]
        torch._foreach_mul_(mine, decay)  # all at once: hundreds of small kernels would take longer than the step
        torch._foreach_add_(mine, [now[name] for name in names], alpha=1 - decay)
