"""What was found in one video in many cells, as a small file: the unit that a killed run does not lose."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jostle.datasets.writing import write_bytes
from jostle.types.segments import Segments

_META = "about"


def write_results(path: Path, found: Mapping[str, Segments]) -> str:
    """Write the segments of each cell; gives the checksum of the file."""
    classes = list(dict.fromkeys(name for segments in found.values() for name in segments.classes))
    index = {name: i for i, name in enumerate(classes)}
    columns: dict[str, Any] = {}
    for number, segments in enumerate(found.values()):
        score = np.ones(len(segments)) if segments.score is None else segments.score
        label = np.array([index[name] for name in segments.classes], np.float64)[segments.label]
        columns[f"cell{number}"] = np.stack([segments.start, segments.end, label, score])
    columns[_META] = np.frombuffer(json.dumps({"cells": list(found), "classes": classes}).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez(packed, **columns)
    data = packed.getvalue()
    write_bytes(path, [data])
    return hashlib.sha256(data).hexdigest()


def read_results(path: Path, sha256: str) -> dict[str, Segments] | None:
    """The segments of each cell, or None if the file is not there as it was written."""
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as columns:
            about = json.loads(columns[_META].tobytes())
            return {
                name: _segments(columns[f"cell{number}"], tuple(about["classes"]))
                for number, name in enumerate(about["cells"])
            }
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _segments(columns: np.ndarray, classes: tuple[str, ...]) -> Segments:
    start, end, label, score = columns
    return Segments(start, end, label.astype(np.int64), score, classes)
