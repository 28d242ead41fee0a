"""The processes of one run: alone, or those that torchrun started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor

from jostle.models.devices import device_for


@dataclass(frozen=True)
class Processes:
    """This process among its fellows.

    Attributes:
        rank: its number, from 0.
        count: how many there are.
        device: what it computes on.
    """

    rank: int
    count: int
    device: torch.device

    @classmethod
    def join(cls, device: Literal["auto", "cpu", "cuda"]) -> Processes:
        """Find the fellows through what torchrun left in the environment."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        found = device_for(device)
        if count == 1:
            return cls(0, 1, found)
        on_gpu = found.type == "cuda"
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if not dist.is_initialized():
            dist.init_process_group("nccl" if on_gpu else "gloo")
        if on_gpu:
            torch.cuda.set_device(local)
        return cls(dist.get_rank(), count, torch.device("cuda", local) if on_gpu else torch.device("cpu"))

    @property
    def first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def total(self, value: Tensor) -> Tensor:
        """The sum of a number over all processes."""
        if self.count > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def add_up(self, gradients: Sequence[Tensor]) -> None:
        """Add the gradients of all processes, in place: each saw its share of one batch."""
        if self.count == 1 or not gradients:
            return
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        first = 0
        for gradient in gradients:
            gradient.copy_(flat[first : first + gradient.numel()].view_as(gradient))
            first += gradient.numel()
