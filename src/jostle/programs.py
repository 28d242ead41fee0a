"""Where Triton's programs can run: on a GPU, if Triton is there, as it is with torch for GPUs.

A program makes in one pass over memory what takes plain tensor operations many. Both give the same bytes, and the
plain form serves where there is no Triton. Programs are started with `EXACT`: by itself Triton may fuse a product and
a sum, and round once where the kernels round twice.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, Protocol

EXACT: Final = {"enable_fp_fusion": False}
STRIP = 256  # values of a row for one program


class Placed(Protocol):
    """A tensor, of which nothing matters here but where it lies."""

    @property
    def is_cuda(self) -> bool: ...


def runs_on(frames: Placed) -> bool:
    """Whether programs can work on these; Triton's interpreter, where it is asked for, takes what lies on a CPU."""
    return (frames.is_cuda or _interpreted()) and has_triton()


def strips(rows: int, values: int) -> tuple[tuple[int, int], dict[str, Any]]:
    """A program for each part of each row: their grid, and what it is to be started with."""
    return (rows, -(-values // STRIP)), {"SIZE": STRIP, **EXACT}


@lru_cache(1)
def has_triton() -> bool:
    """Whether there is Triton, which torch for GPUs brings."""
    return find_spec("triton") is not None


@lru_cache(1)
def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
