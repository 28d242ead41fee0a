"""Feature arrays, one `.npy` a video: read without pickles, and refused where shape, type or length is not right."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue, DataError
from jostle.filing.arrays import BrokenArray, read_header

Features = npt.NDArray[np.float32]
_MAGIC = b"\x93NUMPY"


def read_features(path: str | os.PathLike[str], *, channels: int | None = None) -> Features:
    """The (T, C) float32 features in a `.npy` file.

    Args:
        channels: C. If the file holds (C, T) instead, it is turned round; without `channels` it never is.

    Raises:
        DataError: F50 if the file is no array of finite floats in this machine's byte order, is cut off, or has
            another shape.
    """
    file = Path(path)
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise DataError(f"{file}: not a regular file; give a .npy file", fault="F18")
        with file.open("rb") as opened:
            values = _array(file, opened)
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); check the path and its permissions") from None
    return _turned(file, values, channels)


def _array(file: Path, opened: BinaryIO) -> npt.NDArray[np.float32]:
    if opened.read(len(_MAGIC)) != _MAGIC:
        raise DataError(
            f"{file}: expected a NumPy array (.npy), found something else; save it with np.save", fault="F50"
        )
    opened.seek(0)
    try:
        shape, fortran, dtype = read_header(opened)
    except BrokenArray as error:
        raise DataError(f"{file}: broken header ({error}); save it again", fault="F50") from None
    if dtype.kind != "f" or not dtype.isnative:
        kind = "objects, which only running a pickle could read" if dtype.hasobject else f"{dtype.str!r} elements"
        raise DataError(
            f"{file}: expected floats in this machine's byte order, found {kind}; "
            "save it again with array.astype('float32')",
            fault="F50",
        )
    if len(shape) != 2 or not all(shape):
        raise DataError(
            f"{file}: expected an array of shape (T, C), found {shape}; save one row a grid step", fault="F50"
        )
    expected, found = math.prod(shape) * dtype.itemsize, os.fstat(opened.fileno()).st_size - opened.tell()
    if found != expected:
        raise DataError(
            f"{file}: expected {expected} bytes for {shape} of {dtype}, found {found}; fetch the file again",
            fault="F50",
        )
    values = np.fromfile(opened, dtype).reshape(shape, order="F" if fortran else "C")
    with np.errstate(over="ignore"):
        made = values.astype(np.float32)
    bad = ~np.isfinite(made)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"{file}: expected finite numbers, found {int(bad.sum())} that are not, the first in row {row}, column "
            f"{column}; extract the features again",
            fault="F50",
        )
    return made


def _turned(file: Path, values: Features, channels: int | None) -> Features:
    if channels is None:
        return values
    if values.shape == (channels, channels):
        raise DataError(
            f"{file}: {values.shape} may be (T, C) or (C, T); make sure of it, then read it without channels",
            fault="F50",
        )
    if values.shape[1] == channels:
        return values
    if values.shape[0] == channels:
        return np.ascontiguousarray(values.T)
    raise DataError(
        f"{file}: expected (T, {channels}), found {values.shape}; these are not the features of this model",
        fault="F50",
    )


def check_length(features: Features, duration: float, fps: float, stride: int, window: int) -> None:
    """Raise unless features are as many as a video of `duration` seconds has windows, give or take one.

    Args:
        fps: frames per second at which the features were extracted.
        stride: frames from one window to the next.
        window: frames of a window.

    Raises:
        BadValue: if a number is not positive.
        DataError: F51, with the formula filled in.

    >>> check_length(np.zeros((247, 8), np.float32), 33.5, 30, 4, 16)
    """
    if not all(math.isfinite(value) and value > 0 for value in (duration, fps, stride, window)):
        raise BadValue(f"duration, fps, stride and window must be positive, got {duration}, {fps}, {stride}, {window}")
    expected = max(1, math.floor((duration * fps - window) / stride) + 1)
    if abs(len(features) - expected) > 1:
        raise DataError(
            f"{len(features)} rows of features, expected {expected} = (duration {duration:g} s x {fps:g} fps - window "
            f"{window}) / stride {stride} + 1; check the rate and the stride they were extracted with",
            fault="F51",
        )
