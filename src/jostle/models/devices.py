"""Devices that networks run on, and how they compute there: precision, memory layout and compilation.

Lower precisions and compiled networks are faster on a GPU, and change scores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import torch
from torch import Tensor, nn

from jostle.errors import BadValue, ResourceError, UnknownName
from jostle.models.options import ComputeOptions, Precision

VISIBLE = "CUDA_VISIBLE_DEVICES"


def device_for(name: str) -> torch.device:
    """Return the device of a name; `auto` takes a GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ResourceError("no CUDA device here; pass --device cpu, or auto", fault="F70")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def one_gpu_each(processes: int | None) -> list[dict[str, str]]:
    """Return environment variables for processes that use one GPU each; by default one per GPU.

    They are shared out in turns where there are more processes than GPUs.
    """
    named = os.environ.get(VISIBLE)
    count = torch.cuda.device_count()
    gpus = [str(number) for number in range(count)] if named is None else [one.strip() for one in named.split(",")]
    return [{VISIBLE: gpus[number % count]} for number in range(count if processes is None else processes)]


PRECISIONS = get_args(Precision)


def check_compute(options: ComputeOptions, device: str) -> None:
    """Raise unless a device can compute as requested."""
    if options.compiled:
        check_compiling(device)
    check_precision(options.precision, device)


def check_precision(precision: str, device: str) -> None:
    """Raise unless a device supports a precision."""
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if precision == "tf32" and not device.startswith("cuda"):
        raise BadValue("tf32 is a precision of GPUs, and the networks run on the CPU; leave it out, or take bfloat16")


def inference_mode() -> AbstractContextManager[Any]:
    """Return a context without gradients.

    Under autocast, weights are then converted once per `compute_context`; torch's inference mode would convert them
    with every batch.
    """
    fewer = torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")
    return torch.no_grad() if fewer else torch.inference_mode()


@contextmanager
def compute_context(device: str, options: ComputeOptions) -> Iterator[None]:
    """Limit networks to their threads, and use the precision where it is safe."""
    precision = options.precision
    with limit_threads(options.threads):
        if precision in ("bfloat16", "float16"):
            with torch.autocast(device.partition(":")[0], getattr(torch, precision)):
                yield
        elif precision == "tf32":
            before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
            try:
                yield
            finally:
                torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
        else:
            yield


def one_thread() -> AbstractContextManager[None]:
    """Limit the CPU to one thread, so that results do not depend on how many cores there are."""
    return limit_threads(1)


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Limit the CPU to a number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


USED = ("forward", "features", "see", "join")  # what recognisers, extractors and detectors call of a network


def compute_as_requested(predictor: Any, device: str, options: ComputeOptions) -> Any:
    """Return a predictor whose networks compute as requested."""
    if options.compiled:
        compile_networks(predictor)
    if options == replace(ComputeOptions(), compiled=options.compiled):
        return predictor  # its own guard limits it to one thread
    return replace(predictor, guard=partial(compute_context, device, options))


def check_compiling(device: str) -> None:
    """Raise unless networks can be compiled on a device."""
    if not device.startswith("cuda"):
        raise BadValue("networks are compiled for GPUs, and these run on the CPU; leave --compile out")


def compile_networks(look: Any) -> None:
    """Compile the networks of a predictor when they are first called."""
    for role in ("model", "extractor", "detector"):
        part = getattr(look, role, None)
        network = getattr(part, "network", part)
        if not isinstance(network, nn.Module):
            continue
        if hasattr(getattr(network, "config", None), "compiled"):
            network.config = replace(network.config, compiled=True)  # type: ignore[type-var]
            continue
        for name in USED:
            # One's own network may be loaded more than once, and is compiled the first time.
            if callable(getattr(network, name, None)) and name not in vars(network):
                setattr(network, name, torch.compile(getattr(network, name), dynamic=False))
