"""Batch sizes in which a row of a network's step has the same bits wherever it stands and whatever stands beside it.

Outputs of single frames and windows are kept and put together from pieces, so they must not depend on their batch.
Batches of one size are not enough: libraries of matrix products take other kernels for the rows left over at the end of
a batch, on some processors. So it is proved on the processor at hand, once for each step, and the outcome is kept in
the cache folder. Where no batch size can be proved, rows are computed one by one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from jostle.core.environment import cache_folder, library_versions
from jostle.errors import JostleError
from jostle.io.files.atomic import write_text

Step = Callable[[Tensor], Tensor]

# Prefixes of variables that choose kernels: of MKL, OpenMP, oneDNN, torch and NVIDIA's libraries.
KERNEL_VARIABLES = ("MKL_", "OMP_", "KMP_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH_", "CUBLAS_", "CUDNN_", "NVIDIA_")
KEPT = 1000  # outcomes in the cache folder


class RowBatches:
    """Proved batch sizes of a network's steps.

    Args:
        network: the network that the steps belong to. Outcomes are kept by its weights and its code.
    """

    def __init__(self, network: Callable[..., object]) -> None:
        self._network = network
        self._sizes: dict[Hashable, int] = {}

    def size(self, name: str, step: Step, row: Tensor, largest: int) -> int:
        """Return the number of rows to compute together; 1 if rows depend on their batch in every size tried.

        Args:
            name: of the step, unique in the network.
            step: maps (N, ...) rows to (N, ...) rows.
            row: (1, ...) a row; its shape, type, layout and device count, not its values.
            largest: the batch size to try first; where all rows agree in it, no other is tried.
        """
        if largest == 1:
            return 1
        kind = (tuple(row.shape[1:]), _layout(row), str(row.dtype), str(row.device))
        key = (name, largest, *kind, *_arithmetic(row.device))
        if key not in self._sizes:
            # A GPU proves faster than it hands out its weights.
            path = self._path(key) if row.device.type == "cpu" else None
            sizes = batch_sizes(largest, row.device)
            known = None if path is None else _recall(path)
            if known not in (*sizes, 1):
                known = next((size for size in sizes if rows_agree(step, row, size)), 1)
                if path is not None:
                    _keep(path, known)
            self._sizes[key] = known
        return self._sizes[key]

    def _path(self, key: tuple[Hashable, ...]) -> Path | None:
        """Return the file of an outcome in the cache folder; None for a network whose code has no file."""
        if not isinstance(self._network, nn.Module) or (code := _code_of(self._network)) is None:
            return None
        digest = hashlib.sha256(repr((key, code, _processor(), sorted(library_versions().items()))).encode())
        digest.update(f"{self._network!r} {getattr(self._network, 'config', None)!r}".encode())
        for name, tensor in sorted(self._network.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} {tensor.stride()}\n".encode())
            if isinstance(tensor, Tensor) and tensor.device.type == "cpu":
                digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return cache_folder() / "rows" / digest.hexdigest()[:32]


def batch_sizes(largest: int, device: torch.device) -> tuple[int, ...]:
    """Return the batch sizes to try, in this order: kernels that fail in one size often agree in another.

    >>> batch_sizes(32, torch.device("cpu"))
    (32, 16, 64)
    """
    others = (largest // 2, 2 * largest) if device.type == "cpu" else (largest // 2,)  # memory of a GPU is scarce
    return largest, *(size for size in others if size > 1)


@torch.no_grad()
def rows_agree(step: Step, row: Tensor, size: int) -> bool:
    """Return whether each row of a batch of a step has the same bits in every place and whatever the batch.

    Two rows are tried in every place of a batch, and all rows in three places, in other company. The rows are noise of
    always the same values, so that the outcome does not depend on what is computed first. Outputs that are the same for
    all rows prove nothing.
    """
    layout = _layout(row)
    back = [0, *(1 + layout.index(d) for d in range(1, row.ndim))]

    def bits(rows: Tensor) -> Tensor:
        # In memory of their own, and with axes in the order of the row's. As bytes NaN equals itself, and not -0 0.
        output = step(rows.permute(0, *layout).clone(memory_format=torch.contiguous_format).permute(back))
        return output.reshape(size, -1).contiguous().view(torch.uint8)

    rows = _noise(row, size)
    outputs = bits(rows)
    if (outputs == outputs[:1]).all():
        return False
    orders = [torch.full((size,), i) for i in (0, size // 2)] + [torch.arange(size).roll(by) for by in (1, size // 2)]
    return all(torch.equal(bits(rows[order]), outputs[order]) for order in (one.to(row.device) for one in orders))


def _noise(row: Tensor, size: int) -> Tensor:
    """Return (size, ...) random rows like one: of standard normal values, or of all bytes."""
    generator = torch.Generator().manual_seed(0)
    shape = (size, *row.shape[1:])
    if row.dtype == torch.uint8:
        return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8).to(row.device)
    return torch.randn(shape, generator=generator).to(row.device, row.dtype)


def _layout(row: Tensor) -> tuple[int, ...]:
    """Return the axes within a row, the one of the longest stride first."""
    return tuple(sorted(range(1, row.ndim), key=row.stride, reverse=True))


def _arithmetic(device: torch.device) -> tuple[Hashable, ...]:
    """Return the settings of torch that choose kernels on a device."""
    kind = device.type
    shared = (torch.is_autocast_enabled(kind), str(torch.get_autocast_dtype(kind)), torch.get_num_threads())
    if kind == "cpu":
        return shared
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    return *shared, matmul.allow_tf32, convolution.allow_tf32, convolution.benchmark, convolution.deterministic


@lru_cache(1)
def _processor() -> str:
    """Describe the processor, the libraries that torch calls, and the variables that choose their kernels."""
    facts = [platform.machine(), platform.processor(), torch.__config__.show()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
        # Clock rates change by themselves.
        facts += [line for line in lines if line.startswith(("vendor_id", "cpu family", "model", "stepping", "flags"))]
        facts += [line for line in lines if line.startswith(("CPU ", "Features"))]  # on ARM
    facts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(KERNEL_VARIABLES)]
    return "\n".join(facts)


def _code_of(network: nn.Module) -> str | None:
    """Return a hash of the files that define a network's modules, torch's own left out; None if one has no file."""
    names = {type(module).__module__ for module in network.modules()}
    digest = hashlib.sha256()
    for name in sorted(name for name in names if name.partition(".")[0] != "torch"):
        file = getattr(sys.modules.get(name), "__file__", None)
        try:
            digest.update(Path(file).read_bytes() if file is not None else b"")
        except OSError:
            file = None
        if file is None:
            return None
    return digest.hexdigest()


def _recall(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return None


def _keep(path: Path, size: int) -> None:
    """Keep an outcome; where the cache folder cannot be written, it is proved again the next time."""
    with contextlib.suppress(OSError, JostleError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, [f"{size}\n"])
        files = list(path.parent.iterdir())
        if len(files) > KEPT:
            for old in sorted(files, key=lambda file: file.stat().st_mtime)[: KEPT // 2]:
                old.unlink()
