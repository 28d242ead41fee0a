"""What a device is handed: tables that it keeps, made once by the compiled side, and values of one call."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

KEPT = 64
_lock = Lock()
_kept: OrderedDict[tuple[int, torch.device], tuple[npt.NDArray[Any], Tensor]] = OrderedDict()


def held(table: npt.NDArray[Any], device: torch.device) -> Tensor:
    """A table, which is never written to, on a device."""
    key = id(table), device
    with _lock:  # a process with a model corrupts in several threads
        found = _kept.get(key)
        if found is None or found[0] is not table:  # the table is kept along, so that no other takes its identity
            found = table, torch.from_numpy(table.copy()).to(device)
            if device.type == "cuda":
                torch.cuda.current_stream(device).synchronize()  # the other threads have streams of their own
            _kept[key] = found
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
        return found[1]


def sent(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Values on their way to a device, by memory that stays where it is: otherwise all work before would be awaited."""
    given = torch.from_numpy(values)
    return given.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else given
