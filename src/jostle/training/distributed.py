"""Process group of a training run: a single process, or those that torchrun started."""

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
    """This process within the process group.

    Attributes:
        rank: its index, from 0.
        count: number of processes.
        device: device it computes on.
    """

    rank: int
    count: int
    device: torch.device

    @classmethod
    def join(cls, device: Literal["auto", "cpu", "cuda"]) -> Processes:
        """Join the process group that torchrun describes in the environment."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        own_device = device_for(device)
        if count == 1:
            return cls(0, 1, own_device)
        on_gpu = own_device.type == "cuda"
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if not dist.is_initialized():
            dist.init_process_group("nccl" if on_gpu else "gloo")
        if on_gpu:
            torch.cuda.set_device(local)
        return cls(dist.get_rank(), count, torch.device("cuda", local) if on_gpu else torch.device("cpu"))

    @property
    def first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a value over all processes."""
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
