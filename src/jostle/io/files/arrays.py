"""Safe reading of NumPy files: sizes in headers are checked against the file, and no pickle is executed."""

from __future__ import annotations

import math
import os
import stat
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue, DataError

Array = npt.NDArray[Any]
MAX_BYTES = 1 << 30  # of the unpacked arrays in an npz: a million rows of scores of 256 classes
MAX_ARRAYS = 10_000

_MAX_DIMENSIONS = 8
_VERSIONS = ((1, 0), (2, 0), (3, 0))
_PLAIN = "biufU"  # booleans, integers, floats and text


class BrokenArray(Exception):
    """Bytes that are not a valid array; callers add the file name."""


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a `.npy` file; return shape, Fortran order and type.

    Raises:
        BrokenArray: if the header or the shape is invalid.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about deprecated type names
            version = np.lib.format.read_magic(stream)
            if version not in _VERSIONS:
                raise BrokenArray(f"an unknown version {version}")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(stream)
    # NumPy parses the header as Python, so damage raises several kinds of errors.
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise BrokenArray(str(error).split("\n")[0][:80] or type(error).__name__) from None
    if len(shape) > _MAX_DIMENSIONS or not all(0 <= size < 2**63 for size in shape):
        raise BrokenArray(f"a shape of {str(shape)[:40]}")
    return shape, fortran, dtype


def read_npz(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> dict[str, Array]:
    """Read the arrays of an npz file by name: numbers, booleans and text.

    Raises:
        DataError: F100 if the file is damaged, claims or unpacks to more than `max_bytes`, or is compressed in a way
            that `np.savez` does not use.
    """
    file = Path(path)
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe would block
            raise DataError(f"{file}: not a regular file; give an npz file", fault="F18")
        with zipfile.ZipFile(file) as archive:
            return _read_arrays(archive, max_bytes)
    except BrokenArray as error:
        reason = str(error)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        reason = str(error).split("\n")[0][:80] or type(error).__name__
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); check the path and its permissions") from None
    raise DataError(f"{file}: not an npz of plain arrays ({reason}); write it again", fault="F100")


def _read_arrays(archive: zipfile.ZipFile, max_bytes: int) -> dict[str, Array]:
    entries = archive.infolist()
    claimed = sum(entry.file_size for entry in entries)
    if claimed > max_bytes or len(entries) > MAX_ARRAYS:
        raise BrokenArray(f"{len(entries)} arrays of {claimed} bytes, more than the limit of {max_bytes}")
    arrays: dict[str, Array] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BrokenArray(f"{name[:40]!r} is compressed in another way than by np.savez")
        if name in arrays:
            raise BrokenArray(f"{name[:40]!r} appears twice")
        with archive.open(entry) as stream:
            arrays[name] = _read_array(stream, entry.file_size, name[:40])
    return arrays


def _read_array(stream: IO[bytes], size: int, name: str) -> Array:
    shape, fortran, dtype = read_header(stream)
    if dtype.kind not in _PLAIN or dtype.subdtype is not None:
        raise BrokenArray(f"{name!r} holds {dtype.str!r} elements, not numbers or text")
    count = math.prod(shape)
    expected, actual = count * dtype.itemsize, size - stream.tell()
    if expected != actual or (count and not dtype.itemsize):
        raise BrokenArray(f"{name!r} claims {expected} bytes for {shape} of {dtype}, and has {actual}")
    content = stream.read(expected)
    if len(content) < expected:
        raise BrokenArray(f"{name!r} ends after {len(content)} of {expected} bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def read_named_rows(
    arrays: Mapping[str, Array], names: str, scores: str, path: str | os.PathLike[str]
) -> tuple[list[str], Array]:
    """Return row names and scores: an array of text, and one of numbers with a row for each name.

    Raises:
        DataError: F101 if they have other types, different lengths, or hold NaN.
    """
    shapes = ", ".join(f"{name} {array.shape} {array.dtype}" for name, array in list(arrays.items())[:8])
    rows, table = arrays.get(names), arrays.get(scores)
    if rows is None or table is None or rows.ndim != 1 or table.ndim != 2 or rows.dtype.kind != "U":
        raise DataError(
            f"{path}: needs {names!r} (N,) text and {scores!r} (N, C) numbers; it holds {shapes or 'nothing'}",
            fault="F101",
        )
    if table.dtype.kind not in "iuf" or not table.size:
        raise DataError(f"{path}: {scores!r} is {table.dtype} of shape {table.shape}, not numbers", fault="F101")
    if len(rows) != len(table):
        raise DataError(f"{path}: {len(rows)} {names} but {len(table)} rows of scores", fault="F101")
    try:
        row_names: list[str] = rows.tolist()
    except (ValueError, SystemError):  # invalid code points
        raise DataError(f"{path}: {names!r} is not text", fault="F101") from None
    if len(set(row_names)) < len(row_names):
        raise DataError(f"{path}: {names!r} names one of them twice; write it again", fault="F101")
    # A model may give -inf to a class that it does not know; NaN and +inf cannot be ranked.
    bad = np.flatnonzero((np.isnan(table) | (table == np.inf)).any(axis=1))
    if len(bad):
        raise DataError(
            f"{path}: {len(bad)} of {len(table)} rows of scores hold NaN or infinity, the first of "
            f"{row_names[bad[0]]!r}",
            fault="F101",
        )
    return row_names, table


Features = npt.NDArray[np.float32]
_MAGIC = b"\x93NUMPY"


def read_features(path: str | os.PathLike[str], *, channels: int | None = None) -> Features:
    """Read (T, C) float32 features from a `.npy` file.

    Args:
        channels: C. If the file holds (C, T) instead, it is transposed; without `channels` it never is.

    Raises:
        DataError: F50 if the file is no array of finite floats in this machine's byte order, is cut off, or has
            another shape.
    """
    file = Path(path)
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise DataError(f"{file}: not a regular file; give a .npy file", fault="F18")
        with file.open("rb") as stream:
            values = _read_feature_array(file, stream)
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); check the path and its permissions") from None
    return _orient(file, values, channels)


def _read_feature_array(file: Path, stream: BinaryIO) -> npt.NDArray[np.float32]:
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise DataError(
            f"{file}: expected a NumPy array (.npy), found something else; save it with np.save", fault="F50"
        )
    stream.seek(0)
    try:
        shape, fortran, dtype = read_header(stream)
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
    expected, actual = math.prod(shape) * dtype.itemsize, os.fstat(stream.fileno()).st_size - stream.tell()
    if actual != expected:
        raise DataError(
            f"{file}: expected {expected} bytes for {shape} of {dtype}, found {actual}; fetch the file again",
            fault="F50",
        )
    values = np.fromfile(stream, dtype).reshape(shape, order="F" if fortran else "C")
    with np.errstate(over="ignore"):
        features = values.astype(np.float32)
    bad = ~np.isfinite(features)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            f"{file}: expected finite numbers, found {int(bad.sum())} that are not, the first in row {row}, column "
            f"{column}; extract the features again",
            fault="F50",
        )
    return features


def _orient(file: Path, values: Features, channels: int | None) -> Features:
    if channels is None:
        return values
    if values.shape == (channels, channels):
        raise DataError(
            f"{file}: {values.shape} may be (T, C) or (C, T); check it, then read it without channels", fault="F50"
        )
    if values.shape[1] == channels:
        return values
    if values.shape[0] == channels:
        return np.ascontiguousarray(values.T)
    raise DataError(
        f"{file}: expected (T, {channels}), found {values.shape}; these are not the features of this model", fault="F50"
    )


def check_length(features: Features, duration: float, fps: float, stride: int, window: int) -> None:
    """Raise a DataError unless there are as many features as a video has windows, give or take one.

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
