"""Transfer of tables and values to a device; tables are cached there."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

KEPT = 64
_lock = Lock()


@dataclass(frozen=True)
class _DeviceTable:
    """A table and its copy on a device.

    Attributes:
        table: kept along, so that no other takes its identity.
        stream: that copied it to a GPU, and when it had done so; None elsewhere.
    """

    table: npt.NDArray[Any]
    there: Tensor
    stream: torch.cuda.Stream | None = None
    copied: torch.cuda.Event | None = None


_kept: OrderedDict[tuple[int, torch.device], _DeviceTable] = OrderedDict()


def device_table(table: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return the cached copy of a constant table on a device."""
    key = id(table), device
    with _lock:  # a process may corrupt in several threads
        entry = _kept.get(key)
        if entry is None or entry.table is not table:
            there = send_values(table.copy(), device)
            stream = torch.cuda.current_stream(device) if there.is_cuda else None
            entry = _kept[key] = _DeviceTable(table, there, stream, None if stream is None else stream.record_event())
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
    if entry.stream is not None and (here := torch.cuda.current_stream(device)) != entry.stream:
        assert entry.copied is not None
        here.wait_event(entry.copied)
        entry.there.record_stream(here)
    return entry.there


def send_values(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Copy values to a device from pinned memory, so that the copy does not wait for queued work."""
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
