"""Floating-point precision of networks: lower ones are faster on a GPU, and change scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from jostle.errors import BadValue, UnknownName

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")


def check_precision(precision: str, device: str) -> None:
    """Raise unless a device supports a precision.

    Raises:
        UnknownName: if there is no such precision.
        BadValue: if the device has none such.
    """
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
def compute_context(device: str, precision: str) -> Iterator[None]:
    """Limit networks to one thread, and use this precision where it is safe."""
    with one_thread():
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


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the CPU to one thread, for bit-identical results on every machine with the same kernels."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
