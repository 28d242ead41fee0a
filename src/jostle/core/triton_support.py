"""Availability of Triton, which comes with the GPU builds of torch.

A Triton program does in one pass over memory what takes several tensor operations. Where Triton is missing or cannot
compile, frames are corrupted by the CPU kernels, with the same bytes, and network inputs are prepared by tensor
operations, which agree to the last digits. Programs are launched with `EXACT`, because Triton may otherwise fuse a
product and a sum and round once, where the CPU kernels round twice.
"""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, Protocol

EXACT: Final = {"enable_fp_fusion": False}
STRIP = 256  # values of a row per program
MIN_CAPABILITY = 70  # compute capability times ten that Triton needs


class HasDevice(Protocol):
    """Anything that knows whether it is on a GPU, such as a tensor."""

    @property
    def is_cuda(self) -> bool: ...


def runs_on(frames: HasDevice) -> bool:
    """Return whether Triton programs can process these frames; its interpreter also takes frames on a CPU."""
    return (frames.is_cuda or _uses_interpreter()) and can_compile()


def strips(rows: int, values: int) -> tuple[tuple[int, int], dict[str, Any]]:
    """Return the grid and the launch options of a program that processes each row in strips."""
    return (rows, -(-values // STRIP)), {"SIZE": STRIP, **EXACT}


@lru_cache(1)
def has_triton() -> bool:
    """Return whether Triton is installed."""
    return find_spec("triton") is not None


@lru_cache(1)
def can_compile() -> bool:
    """Return whether Triton can compile programs here; warns once if there is a GPU and it cannot."""
    if _uses_interpreter():
        return True
    if not has_triton():
        return False
    if (why := _compile_problem()) is not None:
        warnings.warn(
            f"Triton cannot compile for this GPU: {why}. Frames are prepared by slower tensor operations instead, and "
            "corrupted on the CPU",
            stacklevel=3,
        )
    return why is None


def _compile_problem() -> str | None:
    """Return why Triton cannot compile: no C compiler, no Python headers, or an old GPU; None if it can."""
    try:
        from triton.runtime import driver

        target = driver.active.get_current_target()  # compiles its driver interface
    except Exception as error:  # compilers and drivers may raise anything
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason'}"
    old = target.backend == "cuda" and target.arch < MIN_CAPABILITY
    return f"it is of compute capability {target.arch / 10}, and {MIN_CAPABILITY / 10} is needed" if old else None


@lru_cache(1)
def _uses_interpreter() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
