"""Where Triton's programs can run: on a GPU, if Triton is there, as it is with torch for GPUs.

A program makes in one pass over memory what takes plain tensor operations many. The plain form serves where there is no
Triton, or where it can build nothing: corruptions have the same bytes either way, and what networks are given is the
same to its last digits. Programs are started with `EXACT`: by itself Triton may fuse a product and a sum, and round
once where the kernels round twice.
"""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, Protocol

EXACT: Final = {"enable_fp_fusion": False}
STRIP = 256  # values of a row for one program
OLDEST = 70  # compute capability, times ten, that Triton knows


class Placed(Protocol):
    """A tensor, of which nothing matters here but where it lies."""

    @property
    def is_cuda(self) -> bool: ...


def runs_on(frames: Placed) -> bool:
    """Whether programs can work on these; Triton's interpreter, where it is asked for, takes what lies on a CPU."""
    return (frames.is_cuda or _interpreted()) and builds()


def strips(rows: int, values: int) -> tuple[tuple[int, int], dict[str, Any]]:
    """A program for each part of each row: their grid, and what it is to be started with."""
    return (rows, -(-values // STRIP)), {"SIZE": STRIP, **EXACT}


@lru_cache(1)
def has_triton() -> bool:
    """Whether there is Triton, which torch for GPUs brings."""
    return find_spec("triton") is not None


@lru_cache(1)
def builds() -> bool:
    """Whether Triton can build programs for the GPU here; if there is one and it cannot, it is said why, once."""
    if _interpreted():
        return True
    if not has_triton():
        return False
    if (why := _hindrance()) is not None:
        warnings.warn(
            f"Triton cannot build programs for this GPU: {why}. Plain operations do, more slowly", stacklevel=3
        )
    return why is None


def _hindrance() -> str | None:
    """What is in the way: it needs a C compiler and Python's headers, which small images lack, and no old GPU."""
    try:
        from triton.runtime import driver

        target = driver.active.get_current_target()  # builds what it talks to the driver by
    except Exception as error:  # whatever a compiler or a driver may end in
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason'}"
    old = target.backend == "cuda" and target.arch < OLDEST
    return f"it is of compute capability {target.arch / 10}, and {OLDEST / 10} is needed" if old else None


@lru_cache(1)
def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
