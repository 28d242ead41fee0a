"""Detected boxes as npz files: one row a box, frame after frame; the same bytes for the same numbers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue, DataError
from jostle.filing.arrays import read_npz
from jostle.filing.writing import write_bytes
from jostle.types.boxes import Boxes

COLUMNS = 6  # label, score, x1, y1, x2, y2
Table = npt.NDArray[np.float64]


def table_of(boxes: Sequence[Boxes]) -> tuple[npt.NDArray[np.int64], Table]:
    """How many boxes each frame has, and (boxes, 6) label, score, x1, y1, x2, y2."""
    counts = np.array([len(one) for one in boxes], np.int64)
    rows = [np.column_stack([one.label, one.sure, one.box]) for one in boxes if len(one)]
    return counts, np.concatenate(rows) if rows else np.zeros((0, COLUMNS))


def boxes_of(counts: npt.NDArray[np.int64], table: Table) -> list[Boxes]:
    """What `table_of` was given."""
    edges = np.concatenate([[0], np.cumsum(counts)])
    return [
        Boxes(table[lo:hi, 2:], table[lo:hi, 0].astype(np.int64), table[lo:hi, 1])
        for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def write_boxes(path: Path, found: Mapping[str, Boxes], known: Sequence[str]) -> None:
    """Write what was found in frames.

    Args:
        known: classes of the data set that the detector can find.
    """
    counts, table = table_of(list(found.values()))
    columns: dict[str, Any] = {"frames": np.array(list(found), np.str_), "counts": counts, "boxes": table}
    packed = io.BytesIO()
    np.savez(packed, **columns, known=np.array(known, np.str_))
    write_bytes(path, [packed.getvalue()])


def read_boxes(path: Path) -> tuple[dict[str, Boxes], tuple[str, ...]]:
    """What was found in each frame, and the classes that the detector can find.

    Raises:
        DataError: if the file is damaged or something else.
    """
    held = read_npz(path)
    try:
        frames, counts, table, known = (held[name] for name in ("frames", "counts", "boxes", "known"))
        fits = (
            (frames.dtype.kind, known.dtype.kind, counts.dtype.kind) == ("U", "U", "i")
            and frames.ndim == known.ndim == 1
            and counts.shape == frames.shape
            and table.dtype == np.float64
            and table.shape == (counts.sum(), COLUMNS)
            and (counts >= 0).all()
        )
        if not fits:
            raise KeyError
        return dict(zip(frames.tolist(), boxes_of(counts, table), strict=True)), tuple(known.tolist())
    except (KeyError, BadValue):
        raise DataError(
            f"{path}: no npz of frames and their boxes; delete it, and the cell is done again", fault="F101"
        ) from None
