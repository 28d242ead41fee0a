"""CUDA streams, pinned memory and asynchronous copies, so that a GPU never waits for the next batch.

On a GPU networks compute one after the other, while frames are copied and prepared on side streams. The next batch is
launched before the last is done, so that there is no pause between them.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Started = TypeVar("Started")
Output = TypeVar("Output")
Items = TypeVar("Items", bound=Any)  # an array or a tensor with a row for each item
BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC
MOST_GRAPHS = 32  # that a network has, as each holds memory for all of its intermediate values
THREAD_COUNTS = {"cpu": 1, "cuda": 3}  # on a GPU, one waits for results, one computes, and one prepares
_launch_lock = threading.RLock()


@dataclass(frozen=True)
class CudaStreams:
    """How a model server uses its device: one CUDA stream for each thread."""

    device: str  # `cpu` or `cuda`
    grad: bool = True  # whether operations are recorded for gradients, as in the caller's thread
    index: int | None = None  # current GPU of the caller's thread

    @classmethod
    def like_here(cls, device: str) -> CudaStreams:
        """Return streams whose threads compute as the calling thread does."""
        index = torch.cuda.current_device() if device == "cuda" else None
        return cls(device, torch.is_grad_enabled(), index)

    @property
    def count(self) -> int:
        """Number of threads that compute concurrently."""
        return THREAD_COUNTS[self.device]

    def initialize(self) -> None:
        """Have the process sleep while it waits for its GPU, instead of spinning on a core.

        Called before anything is loaded. Cores are needed for decoding and corrupting. Where the driver does not
        support it, its default remains.
        """
        if self.device == "cpu":
            return
        with suppress(OSError, AttributeError):
            driver = ctypes.CDLL("libcuda.so.1")
            driver.cuInit(0)
            driver.cuDevicePrimaryCtxSetFlags_v2(0, BLOCKING_SYNC)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Enter a CUDA stream of the thread's own."""
        with torch.set_grad_enabled(self.grad):
            if self.device == "cpu":
                yield
                return
            if self.index is not None:
                torch.cuda.set_device(self.index)
            with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
                yield

    def pin_memory(self, memory: mmap.mmap) -> Callable[[], None]:
        """Pin memory for direct access by the GPU; returns a function that unpins it.

        Where the system does not allow it, copies are slower.
        """
        if self.device == "cpu":
            return _do_nothing
        pointer = np.frombuffer(memory, np.uint8).ctypes.data
        library: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        if int(library.cudaHostRegister(pointer, len(memory), 0)) == 0:
            return lambda: library.cudaHostUnregister(pointer)
        with suppress(RuntimeError):  # clears the error, which CUDA would report to the next call
            torch.zeros(1, device=self.device)
        return _do_nothing


def _do_nothing() -> None:
    pass


@contextmanager
def launch_turn(device: torch.device) -> Iterator[None]:
    """Hold the right to launch network operations on a device; on a GPU one thread has it at a time.

    Threads that launched at once would wait for each other between any two operations, as only one runs Python. The
    block's own operations run on a side stream, beside the networks of earlier batches.
    """
    if device.type != "cuda":
        yield
        return
    with _launch_lock, torch.cuda.stream(_side_stream(device)):
        yield


@contextmanager
def network_stream(*inputs: Tensor) -> Iterator[None]:
    """Enter the stream in which all networks compute, after the inputs are ready.

    The networks run one after the other, so that what the first computes for all, such as weights in lower precision,
    is done before others need it.
    """
    if not inputs[0].is_cuda:
        yield
        return
    device = inputs[0].device
    side, main = torch.cuda.current_stream(device), torch.cuda.default_stream(device)
    main.wait_stream(side)
    for tensor in inputs:
        tensor.record_stream(main)
    with torch.cuda.stream(main):
        yield


class GraphReplays:
    """CUDA graphs of a network's methods: what a method launches operation by operation starts as one.

    A method is recorded at its third call with inputs of one kind, after its kernels were chosen and compiled. It must
    launch the same operations whatever the values of its inputs. Calls are in a `network_stream`, one after the other;
    an output is overwritten by the next call. A graph reads weights where they were when it was recorded, so it is
    not replayed once they have moved.

    Args:
        network: whose weights the methods use.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._calls: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...], Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphReplays, (self._network,)  # a copy records its own

    def __call__(self, method: Callable[..., Output], *inputs: Tensor) -> Output:
        """Return `method(*inputs)`, with the same bits."""
        if not inputs[0].is_cuda:
            return method(*inputs)
        precision = (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
        tf32 = (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
        mode = (torch.is_inference_mode_enabled(), *precision, *tf32)
        layout = tuple((x.device, x.dtype, x.shape, x.stride()) for x in inputs)
        weights = tuple(weight.data_ptr() for weight in self._network.parameters())
        key = (method, layout, weights, mode)
        if key not in self._graphs:
            self._calls[key] += 1
            if self._calls[key] < 3 or len(self._graphs) >= MOST_GRAPHS:
                return method(*inputs)
            self._graphs[key] = self._record(method, inputs, *precision)
        graph, static, outputs = self._graphs[key]
        for buffer, value in zip(static, inputs, strict=True):
            buffer.copy_(value)
        graph.replay()
        return cast(Output, outputs)

    @staticmethod
    def _record(
        method: Callable[..., Any], inputs: tuple[Tensor, ...], autocast: bool, dtype: torch.dtype
    ) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...], Any]:
        graph, static, device = torch.cuda.CUDAGraph(), tuple(x.clone() for x in inputs), inputs[0].device
        stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        # Weights in lower precision are computed in the graph: a cached copy would be freed with its context.
        with torch.autocast("cuda", dtype, enabled=autocast, cache_enabled=False):
            with torch.cuda.stream(stream):
                method(*static)  # libraries set up each thread and stream at its first call, which cannot be recorded
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):  # others go on copying
                outputs = method(*static)
        return graph, static, outputs


def wait_for_networks(device: torch.device) -> None:
    """Have the thread's next operations on a device wait for the networks that were launched."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).wait_stream(torch.cuda.default_stream(device))


def device_context(frames: Tensor) -> AbstractContextManager[Any]:
    """Make the frames' device the current one, on which Triton programs are launched.

    Torch's own context is slow even if the device is current already.
    """
    current = not frames.is_cuda or frames.get_device() == torch.cuda.current_device()
    return nullcontext() if current else torch.cuda.device(frames.device)


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def to_device(items: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Copy items to a device; on a GPU asynchronously, and later operations of the stream wait for the copy."""
    shareable = device.type != "cpu" and items.flags.writeable and items.flags.c_contiguous
    return torch.from_numpy(items if shareable else np.array(items, order="C")).to(device, non_blocking=True)


def to_host_async(values: Tensor) -> Callable[[], Tensor]:
    """Start copying values to the CPU; the returned function waits for them, and for no later work."""
    if not values.is_cuda:
        values_on_host = values.cpu()
        return lambda: values_on_host
    buffer = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    buffer.copy_(values, non_blocking=True)
    arrived = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    arrived.record()

    def awaited() -> Tensor:
        arrived.synchronize()
        return buffer

    return awaited


def iter_batches(parts: Sequence[Items], size: int) -> Iterator[list[Items]]:
    """Split the items of all parts into batches of `size`; yields the pieces of the parts in each batch."""
    begins = [0, *itertools.accumulate(map(len, parts))]
    for lo in range(0, begins[-1], size):
        pieces = (
            part[max(lo - begin, 0) : max(lo + size - begin, 0)] for part, begin in zip(parts, begins, strict=False)
        )
        yield [piece for piece in pieces if len(piece)]


def prefetch_one(started: Iterable[Started]) -> Iterator[Started]:
    """Yield each item after the next one has been started."""
    waiting: list[Started] = []
    for item in started:
        waiting.append(item)
        if len(waiting) > 1:
            yield waiting.pop(0)
    yield from waiting
