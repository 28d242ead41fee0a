"""What a device is handed: tables that it keeps, made once by the compiled side, and values of one call."""

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
class _Kept:
    """A table on a device.

    Attributes:
        table: kept along, so that no other takes its identity.
        stream: that copied it to a GPU, and when it had done so; None elsewhere.
    """

    table: npt.NDArray[Any]
    there: Tensor
    stream: torch.cuda.Stream | None = None
    copied: torch.cuda.Event | None = None


_kept: OrderedDict[tuple[int, torch.device], _Kept] = OrderedDict()


def held(table: npt.NDArray[Any], device: torch.device) -> Tensor:
    """A table, which is never written to, on a device."""
    key = id(table), device
    with _lock:  # a process may corrupt in several threads
        found = _kept.get(key)
        if found is None or found.table is not table:
            there = sent(table.copy(), device)
            stream = torch.cuda.current_stream(device) if there.is_cuda else None
            found = _kept[key] = _Kept(table, there, stream, None if stream is None else stream.record_event())
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
    if found.stream is not None and (here := torch.cuda.current_stream(device)) != found.stream:
        assert found.copied is not None
        here.wait_event(found.copied)
        found.there.record_stream(here)
    return found.there


def sent(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Values on their way to a device, by memory that stays where it is: otherwise all work before would be awaited."""
    given = torch.from_numpy(values)
    return given.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else given
