"""Validation of columns: one-dimensional, read-only arrays of equal length."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def column(values: npt.ArrayLike, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Convert values to a read-only column; an array of the right type is viewed, not copied."""
    if np.iscomplexobj(values):
        raise BadValue(f"column {name!r} must be real numbers, got complex ones; take the part that is meant")
    array: npt.NDArray[Any] = np.asarray(values, dtype=dtype)
    if array.ndim != 1:
        raise BadValue(f"column {name!r} must be one-dimensional, got shape {array.shape}")
    array = array.view()
    array.flags.writeable = False
    return array


def set_columns(rows: Any, types: Mapping[str, npt.DTypeLike]) -> dict[str, npt.NDArray[Any]]:
    """Convert the named columns of a frozen dataclass, and return them."""
    columns = {name: column(getattr(rows, name), name, dtype) for name, dtype in types.items()}
    for name, values in columns.items():
        object.__setattr__(rows, name, values)
    return columns


def check_rows(rows: Any, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise BadValue unless the columns of a set of rows fit each other, its `videos` and its `classes`."""
    check_lengths(columns)
    check_names(rows.videos, "video")
    check_names(rows.classes, "class")
    check_indices(rows.video, "video", len(rows.videos))
    check_indices(rows.label, "label", len(rows.classes))


def select_names(names: tuple[str, ...], subset: Collection[str]) -> tuple[list[int], Indices]:
    """Return the indices of the names of a subset, and (names,) the index of each within it, -1 for others."""
    members = set(subset)
    indices = [i for i, name in enumerate(names) if name in members]
    new_index = np.full(len(names), -1, np.int32)
    new_index[indices] = np.arange(len(indices))
    return indices, new_index


def check_lengths(columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise BadValue unless all columns have the same length."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise BadValue(f"columns must have one length, got {lengths}")


def check_indices(values: npt.NDArray[Any], name: str, count: int) -> None:
    """Raise BadValue unless every value is an index into a table of `count` entries."""
    if len(values) and (values.min() < 0 or values.max() >= count):
        wrong = int(values.min() if values.min() < 0 else values.max())
        raise BadValue(f"column {name!r} must lie in 0..{count - 1}, got {wrong}")


def check_finite(values: Floats, name: str) -> None:
    """Raise BadValue if a value is NaN or infinite, naming the first."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise BadValue(f"column {name!r} must be finite; {int(bad.sum())} are not, the first in row {row}")


def check_names(names: tuple[str, ...], what: str) -> None:
    """Raise BadValue if a name appears twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadValue(f"{what} {twice!r} appears twice")
