"""How a device is fed: threads that take turns on it, memory that it reads by itself, answers that are awaited later.

On a GPU networks compute one behind the other, while frames are copied and made ready beside that. The next batch is
started before the last is done, so that there is no pause between them.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Begun = TypeVar("Begun")
Items = TypeVar("Items", bound=Any)  # an array or a tensor, a row an item
WAIT_ASLEEP = 4  # CU_CTX_SCHED_BLOCKING_SYNC
LANES = {"cpu": 1, "cuda": 3}  # while one waits for its answers, another has begun, and the third begins
_starting = threading.RLock()


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


@contextmanager
def turn(device: torch.device) -> Iterator[None]:
    """The right to start work for networks on a device, which on a GPU one thread has at a time.

    Several that started it at once would wait for each other between any two operations, as only one runs Python. What
    is done here on a GPU is done beside the networks of batches before.
    """
    if device.type != "cuda":
        yield
        return
    with _starting, torch.cuda.stream(_beside(device)):
        yield


@contextmanager
def networks(*ready: Tensor) -> Iterator[None]:
    """Where networks compute, on what was made ready in the same turn.

    All of it goes one behind the other, so that what the first makes for all, such as weights in fewer digits, is done
    before anybody needs it.
    """
    if not ready[0].is_cuda:
        yield
        return
    device = ready[0].device
    beside, main = torch.cuda.current_stream(device), torch.cuda.default_stream(device)
    main.wait_stream(beside)
    for tensor in ready:
        tensor.record_stream(main)
    with torch.cuda.stream(main):
        yield


def behind_networks(device: torch.device) -> None:
    """Have what this thread does next on a device wait for the networks that were started."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).wait_stream(torch.cuda.default_stream(device))


def device_of(frames: Tensor) -> AbstractContextManager[Any]:
    """The device of frames as the current one, on which programs are started.

    Torch's own takes a while even where it is so already.
    """
    here = not frames.is_cuda or frames.get_device() == torch.cuda.current_device()
    return nullcontext() if here else torch.cuda.device(frames.device)


@cache
def _beside(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def on_device(items: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Items on a device. On a GPU the copy goes on beside other work, and what is computed next here waits for it."""
    shareable = device.type != "cpu" and items.flags.writeable and items.flags.c_contiguous
    return torch.from_numpy(items if shareable else np.array(items, order="C")).to(device, non_blocking=True)


def on_its_way(values: Tensor) -> Callable[[], Tensor]:
    """Values on their way from a device; what is given back waits for them, and for nothing that was begun later."""
    if not values.is_cuda:
        there = values.cpu()
        return lambda: there
    here = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    here.copy_(values, non_blocking=True)
    arrived = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    arrived.record()

    def awaited() -> Tensor:
        arrived.synchronize()
        return here

    return awaited


def in_batches(parts: Sequence[Items], size: int) -> Iterator[list[Items]]:
    """The items of all parts, `size` at a time: what of each part is in a batch, as far as something is."""
    begins = [0, *itertools.accumulate(map(len, parts))]
    for lo in range(0, begins[-1], size):
        pieces = (
            part[max(lo - begin, 0) : max(lo + size - begin, 0)] for part, begin in zip(parts, begins, strict=False)
        )
        yield [piece for piece in pieces if len(piece)]


def one_ahead(begun: Iterable[Begun]) -> Iterator[Begun]:
    """What is to be finished, each when the one after it has been begun."""
    before: list[Begun] = []
    for one in begun:
        before.append(one)
        if len(before) > 1:
            yield before.pop(0)
    yield from before
