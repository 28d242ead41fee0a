"""Triton's programs where there is no GPU: run by its interpreter, and compiled for one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

# Numbers with a fraction that programs are given; all others are whole.
REAL = ("kept", "rest", "scale", "unit", "spread", "thickness", "threshold")


def interpreted(script: str, *given: str) -> None:
    """Run a script by Triton's interpreter, which a process has from its start or not at all."""
    result = subprocess.run(
        [sys.executable, "-c", script, *given], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True
    )
    assert result.returncode == 0, result.stderr.decode()[-2000:]


def compiled(program: Any, pointers: Sequence[str], fixed: Mapping[str, Any]) -> str:
    """What a program is for an H100, in letters.

    Args:
        pointers: what its first arguments point to; the others are numbers.
        fixed: arguments that are known when it is compiled.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = dict(zip(program.arg_names, pointers, strict=False))
    signature = {
        argument: "constexpr" if argument in fixed else types.get(argument, "fp32" if argument in REAL else "i32")
        for argument in program.arg_names
    }
    known = {(program.arg_names.index(argument),): value for argument, value in fixed.items()}
    source = ASTSource(fn=program, signature=signature, constexprs=known)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False})
    letters: str = made.asm["ptx"]
    return letters


def multiplied_and_added(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c of float32 tensors, rounded once, as `jostle.core.kernels.multiply_add` and a GPU do.

    Double precision has room for a product, and not for every sum. A sum that lost something is made odd in its last
    bit, so that rounding it again ends where rounding all of it at once does (Boldo and Melquiond, 2008).
    """
    import torch

    product, added = a.double() * b.double(), c.double()
    total = product + added
    part = total - product
    lost = (product - (total - part)) + (added - part)
    bits = total.view(torch.int64)
    away = torch.where((lost > 0) == (total > 0), 1, -1)  # from 0, or towards it
    odd = torch.where((lost != 0) & (bits & 1 == 0), bits + away, bits)
    return odd.view(torch.float64).float()
