"""Files of adapted states, from which an online run resumes, and of statistics of clean videos."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jostle.errors import JostleError
from jostle.io.files.arrays import read_npz
from jostle.io.files.atomic import write_bytes
from jostle.models.adaptation.method import State

_HISTORY = "history"  # key of the text beside the tensors, whose names contain a dot


def write_state(path: Path, history: str, state: State) -> None:
    """Write a state, and the history of videos that it has seen."""
    write_bytes(path, [pack_state(history, state)])


def pack_state(history: str, state: Mapping[str, Tensor]) -> bytes:
    """Return the content of a file of tensors and a text."""
    columns = {name: value.cpu().numpy() for name, value in state.items()}
    columns[_HISTORY] = np.frombuffer(history.encode(), np.uint8)
    packed = io.BytesIO()
    np.savez(packed, **columns)  # type: ignore[arg-type]
    return packed.getvalue()


def read_state(path: Path, device: torch.device | str = "cpu") -> tuple[str, State] | None:
    """Read a state and its history; None if the file is missing or damaged."""
    if not path.is_file():
        return None
    try:
        columns = read_npz(path)
        history = columns.pop(_HISTORY).tobytes().decode()
        return history, {name: torch.from_numpy(np.array(value)).to(device) for name, value in columns.items()}
    except (JostleError, OSError, KeyError, ValueError, TypeError):
        return None
