"""Scores of classes as npz files: one row a video, or one row a frame, the same bytes for the same numbers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.datasets.writing import write_bytes
from jostle.errors import DataError

Scores = npt.NDArray[np.float32]


def write_table(path: Path, what: str, names: Sequence[str], scores: Scores, classes: Sequence[str] = ()) -> None:
    """Write names and their rows of scores.

    Args:
        what: the word that the array of names has: `videos` or `frames`.
        classes: names of the columns, where they are known.
    """
    columns: dict[str, Any] = {what: np.array(names, np.str_), "scores": scores}
    if classes:
        columns["classes"] = np.array(classes, np.str_)
    packed = io.BytesIO()
    np.savez(packed, **columns)
    write_bytes(path, [packed.getvalue()])


def read_table(path: Path, what: str) -> tuple[list[str], Scores]:
    """Names and their rows of scores.

    Raises:
        DataError: if the file is damaged or something else.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as held:
            names, scores = held[what].tolist(), held["scores"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise DataError(f"{path}: no npz of {what} and scores; delete it, and the cell is done again") from None
    return names, np.asarray(scores, np.float32)
