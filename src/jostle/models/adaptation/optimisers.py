"""Optimisers of adaptation steps, with their state among the tensors that a method remembers."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import torch
from torch import Tensor, nn


@torch.no_grad()
def sgd_step(
    parameters: Mapping[str, nn.Parameter],
    gradients: Mapping[str, Tensor],
    memory: MutableMapping[str, Tensor],
    *,
    lr: float,
    momentum: float = 0.0,
) -> None:
    """Take a step of stochastic gradient descent with momentum: v = momentum v + g, x = x - lr v."""
    for name, parameter in parameters.items():
        velocity = gradients[name]
        if momentum:
            before = memory.get(f"velocity.{name}")
            velocity = velocity.clone() if before is None else momentum * before + velocity
            memory[f"velocity.{name}"] = velocity
        parameter.sub_(lr * velocity)


@torch.no_grad()
def adam_step(
    parameters: Mapping[str, nn.Parameter],
    gradients: Mapping[str, Tensor],
    memory: MutableMapping[str, Tensor],
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """Take a step of Adam (Kingma & Ba, 2015)."""
    number = int(memory.get("adam.step", torch.zeros((), dtype=torch.int64))) + 1
    memory["adam.step"] = torch.tensor(number)
    for name, parameter in parameters.items():
        gradient = gradients[name]
        first = memory.get(f"adam.first.{name}", torch.zeros_like(gradient))
        second = memory.get(f"adam.second.{name}", torch.zeros_like(gradient))
        memory[f"adam.first.{name}"] = first = betas[0] * first + (1 - betas[0]) * gradient
        memory[f"adam.second.{name}"] = second = betas[1] * second + (1 - betas[1]) * gradient**2
        root = (second / (1 - betas[1] ** number)).sqrt() + eps
        parameter.sub_(lr * (first / (1 - betas[0] ** number)) / root)
