"""Files of frame classifiers: scores of frames, sets of similar frames, and labels (Shankar et al., 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.formatting import describe
from jostle.errors import DataError
from jostle.io.files.arrays import read_named_rows, read_npz
from jostle.io.files.text import read_head, read_json

_ZIP = b"PK\x03\x04"


def read_frame_scores(path: str | Path) -> dict[str, npt.NDArray[Any] | int]:
    """Read the scores of each frame: JSON `{frame: [scores]}`, or npz with `frames` (N,) and one (N, C) array.

    Raises:
        DataError: if the file is neither, or its arrays do not match.
    """
    file = Path(path)
    if read_head(file, len(_ZIP)) == _ZIP:
        return _read_npz(file)
    content = read_json(file)
    if "results" in content or "database" in content:
        raise DataError(f"{file}: these are detections or annotations; pm-k needs {{frame: [scores]}}", fault="F28")
    return {frame: _row(file, frame, scores) for frame, scores in content.items()}


def read_frame_sets(path: str | Path) -> dict[str, list[str]]:
    """Read the neighbours of each anchor: `{anchor: [frames]}`. Raises DataError if the file holds something else."""
    content = read_json(path)
    for anchor, frames in content.items():
        if not isinstance(frames, list) or not all(isinstance(frame, str) for frame in frames):
            raise DataError(f"{path}: {anchor!r} has {describe(frames)}, not a list of frame names", fault="F28")
    return content


def read_frame_labels(path: str | Path) -> dict[str, list[int] | int]:
    """Read the classes of each frame: `{frame: [class numbers]}`. Raises DataError if the file holds something else."""
    content = read_json(path)
    for frame, labels in content.items():
        numbers = labels if isinstance(labels, list) else [labels]
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
            raise DataError(f"{path}: {frame!r} has {describe(labels)}, not class numbers", fault="F28")
    return content


def _read_npz(file: Path) -> dict[str, npt.NDArray[Any] | int]:
    arrays = read_npz(file)
    tables = [name for name, values in arrays.items() if values.ndim == 2]
    names, scores = read_named_rows(arrays, "frames", tables[0] if len(tables) == 1 else "scores", file)
    return dict(zip(names, scores, strict=True))


def _row(file: Path, frame: str, scores: object) -> npt.NDArray[Any] | int:
    if type(scores) is int:
        return scores
    if isinstance(scores, list) and all(type(score) in (int, float) for score in scores):
        return np.array(scores, np.float64)
    raise DataError(f"{file}: {frame!r} has {describe(scores)}, not a list of numbers or a class number", fault="F101")
