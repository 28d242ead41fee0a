"""Class scores as npz files: one row per video or per frame, with deterministic bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import DataError
from jostle.io.files.arrays import read_named_rows, read_npz
from jostle.io.files.atomic import write_bytes

Scores = npt.NDArray[np.float32]


def write_table(path: Path, what: str, names: Sequence[str], scores: Scores, classes: Sequence[str] = ()) -> None:
    """Write names and their rows of scores.

    Args:
        what: key of the array of names: `videos` or `frames`.
        classes: names of the columns, if known.
    """
    columns: dict[str, Any] = {what: np.array(names, np.str_), "scores": scores}
    if classes:
        columns["classes"] = np.array(classes, np.str_)
    buffer = io.BytesIO()
    np.savez(buffer, **columns)
    write_bytes(path, [buffer.getvalue()])


def read_table(path: Path, what: str) -> tuple[list[str], Scores]:
    """Read names and their rows of scores."""
    try:
        names, scores = read_named_rows(read_npz(path), what, "scores", path)
        if scores.dtype != np.float32:
            raise DataError(f"{path}: its scores are {scores.dtype}, not float32", fault="F101")
    except DataError as error:
        why = str(error).removeprefix(f"{path}: ").partition(";")[0]
        raise DataError(
            f"{path}: no npz of {what} and scores: {why}; delete it, and the cell is run again", fault=error.fault
        ) from None
    return names, scores
