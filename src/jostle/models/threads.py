"""How many threads a network may use: libraries divide sums among them, so that another number gives other bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """On a CPU, one thread for what is computed inside: the same bits on every machine with the same kernels."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
