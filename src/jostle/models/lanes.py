"""How a device is fed: threads that take turns on it, and memory that it reads by itself."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

WAIT_ASLEEP = 4  # CU_CTX_SCHED_BLOCKING_SYNC
LANES = {"cpu": 1, "cuda": 2}  # while one waits for its answers, the other copies and computes


@dataclass(frozen=True)
class Lanes:
    """How a process with a model uses its device.

    Attributes:
        device: `cpu` or `cuda`.
    """

    device: str

    @property
    def count(self) -> int:
        """Threads that work side by side."""
        return LANES[self.device]

    def begin(self) -> None:
        """Settle how the process waits for its GPU, before anything is loaded: asleep, not turning round on a core.

        Cores are for decoding and corrupting. Where the driver cannot be told, it waits as it likes to.
        """
        if self.device == "cpu":
            return
        with suppress(OSError, AttributeError):
            driver = ctypes.CDLL("libcuda.so.1")
            driver.cuInit(0)
            driver.cuDevicePrimaryCtxSetFlags_v2(0, WAIT_ASLEEP)

    @contextmanager
    def lane(self) -> Iterator[None]:
        """What each of them works in: on a GPU, a stream of its own."""
        if self.device == "cpu":
            yield
            return
        with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
            yield

    def pinned(self, memory: mmap.mmap) -> Callable[[], None]:
        """Let a GPU read memory by itself, without a copy first and while it computes; gives what ends that.

        Where the system does not let it, copies are slower, and that is all.
        """
        if self.device == "cpu":
            return _nothing
        pointer = np.frombuffer(memory, np.uint8).ctypes.data
        library: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        if int(library.cudaHostRegister(pointer, len(memory), 0)) == 0:
            return lambda: library.cudaHostUnregister(pointer)
        with suppress(RuntimeError):  # the library keeps the error for whoever computes next
            torch.zeros(1, device=self.device)
        return _nothing


def _nothing() -> None:
    pass


def on_device(items: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Items on a device. On a GPU the copy goes on beside other work, and what is computed next here waits for it."""
    shareable = device.type != "cpu" and items.flags.writeable and items.flags.c_contiguous
    return torch.from_numpy(items if shareable else np.array(items, order="C")).to(device, non_blocking=True)
