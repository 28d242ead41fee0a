"""Tables that a device keeps: they are made once by the compiled side, and handed over once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

KEPT = 64
_kept: OrderedDict[tuple[int, torch.device], tuple[npt.NDArray[Any], Tensor]] = OrderedDict()


def held(table: npt.NDArray[Any], device: torch.device) -> Tensor:
    """A table, which is never written to, on a device."""
    key = id(table), device
    found = _kept.get(key)
    if found is None or found[0] is not table:  # the table is kept along, so that no other takes its identity
        found = _kept[key] = table, torch.from_numpy(table.copy()).to(device)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return found[1]
