"""Files with the predictions for one video in many cells, which let a killed run resume."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import DataError
from jostle.io.files.arrays import read_npz
from jostle.io.files.atomic import write_bytes

_META = "about"
Array = npt.NDArray[Any]


def write_results(path: Path, arrays: Mapping[str, Array], classes: Sequence[str] = ()) -> str:
    """Write one array per cell and the class names they index; return the checksum of the file."""
    columns: dict[str, Any] = {f"cell{number}": array for number, array in enumerate(arrays.values())}
    columns[_META] = np.frombuffer(json.dumps({"cells": list(arrays), "classes": list(classes)}).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez(packed, **columns)
    data = packed.getvalue()
    write_bytes(path, [data])
    return hashlib.sha256(data).hexdigest()


def read_results(path: Path, sha256: str) -> tuple[dict[str, Array], list[str]] | None:
    """Return the array of each cell and the classes, or None if the file is missing or changed."""
    if not path.is_file():  # reading a pipe might never end
        return None
    try:
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            return None
        columns = read_npz(path)
        about = json.loads(columns[_META].tobytes())
        return {name: columns[f"cell{number}"] for number, name in enumerate(about["cells"])}, about["classes"]
    except (OSError, DataError, ValueError, KeyError, TypeError, RecursionError):
        return None
