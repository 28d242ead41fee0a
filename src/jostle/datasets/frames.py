"""Files of frame classifiers: scores of frames, the sets of similar frames, their labels (Shankar et al., 2021)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.datasets.text import describe, read_json
from jostle.errors import DataError


def read_frame_scores(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The scores of each frame: JSON `{frame: [scores]}`, or npz with `frames` (N,) and one (N, C) array.

    Raises:
        DataError: if the file is neither, or its arrays do not belong together.
    """
    file = Path(path)
    try:
        zipped = zipfile.is_zipfile(file)
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); check the path and its permissions") from None
    if zipped:
        return _read_npz(file)
    content = read_json(file)
    if "results" in content or "database" in content:
        raise DataError(f"{file}: these are detections or annotations; pm-k needs {{frame: [scores]}}", fault="F28")
    wrong = next((frame for frame, scores in content.items() if not isinstance(scores, list | int)), None)
    if wrong is not None:
        raise DataError(f"{file}: {wrong!r} has {describe(content[wrong])}, not a list of scores or a class number")
    return {frame: np.asarray(scores) if isinstance(scores, list) else scores for frame, scores in content.items()}


def read_frame_sets(path: str | Path) -> dict[str, list[str]]:
    """The neighbours of each anchor: `{anchor: [frames]}`.

    Raises:
        DataError: if the file holds something else.
    """
    content = read_json(path)
    for anchor, frames in content.items():
        if not isinstance(frames, list) or not all(isinstance(frame, str) for frame in frames):
            raise DataError(f"{path}: {anchor!r} has {describe(frames)}, not a list of frame names", fault="F28")
    return content


def read_frame_labels(path: str | Path) -> dict[str, list[int] | int]:
    """The classes of each frame: `{frame: [class numbers]}`.

    Raises:
        DataError: if the file holds something else.
    """
    content = read_json(path)
    for frame, labels in content.items():
        numbers = labels if isinstance(labels, list) else [labels]
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
            raise DataError(f"{path}: {frame!r} has {describe(labels)}, not class numbers", fault="F28")
    return content


def _read_npz(file: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: not an npz of plain arrays ({error}); write it again", fault="F50") from None
    tables = [name for name, values in held.items() if values.ndim == 2 and values.dtype.kind in "fiu"]
    names = held.get("frames")
    if names is None or names.ndim != 1 or names.dtype.kind != "U" or len(tables) != 1:
        shapes = ", ".join(f"{name} {values.shape} {values.dtype}" for name, values in held.items())
        raise DataError(
            f"{file}: needs 'frames' (N,) text and one (N, C) array of scores; it holds {shapes}", fault="F50"
        )
    scores = held[tables[0]]
    if len(scores) != len(names):
        raise DataError(f"{file}: {len(names)} frames but {len(scores)} rows of scores", fault="F50")
    return dict(zip(names.tolist(), scores, strict=True))
