"""ActionFormer's `eval_results.pkl`: a pickled dict of columns, with numbers for classes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.formatting import describe
from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.io.files.atomic import write_bytes
from jostle.io.files.class_numbers import class_numbers
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.pickles import read_pickle
from jostle.io.files.prediction_table import NameIndex, build_predictions
from jostle.io.files.source import Source

_COLUMNS = ("video-id", "t-start", "t-end", "label", "score")
_PROTOCOL = 4  # fixed, so that equal results give equal bytes


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    return FormatMatch("predictions", "it is a pickle") if source.is_pickle else None


def read(source: Source, fix: bool) -> Predictions:
    """Read the detections in the columns, in their order."""
    content = read_pickle(source.content, source.path)
    if not isinstance(content, dict) or not set(_COLUMNS) <= set(content):
        raise DataError(
            f"{source.path}: not predictions: the pickle holds {_describe(content)}, not a dict of the columns "
            f"{', '.join(_COLUMNS)}",
            fault="F28",
        )
    videos = _check_list(source, "video-id", content["video-id"])
    wrong = next((video for video in videos if not isinstance(video, str) or not video), None)
    if wrong is not None or (videos and None in videos):
        raise DataError(f"{source.path}: 'video-id' holds {_describe(wrong)}, not an id", fault="F28")
    numbers = {name: _check_numbers(source, name, content[name]) for name in _COLUMNS[1:]}
    lengths = {"video-id": len(videos), **{name: len(values) for name, values in numbers.items()}}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{source.path}: the columns have different lengths, {lengths}; write them again", fault="F39")
    label = numbers["label"]
    if label.dtype.kind not in "iu":
        if not np.array_equal(label, label.astype(np.int64)):
            raise DataError(
                f"{source.path}: 'label' holds numbers that are not whole; write class numbers", fault="F45"
            )
        label = label.astype(np.int64)
    index = NameIndex(ids=True)
    known, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # classes in the order of their first detection
    return build_predictions(
        source.path,
        videos=_all_names(index, videos),
        labels=[int(number) for number in known[order]],
        columns={
            "video": np.array([index[video] for video in videos], np.int32),
            "start": numbers["t-start"].astype(np.float64),
            "end": numbers["t-end"].astype(np.float64),
            "label": np.argsort(order, kind="stable")[inverse].astype(np.int32),
            "score": numbers["score"].astype(np.float64),
        },
        where=lambda row: f"row {row} ({videos[row]})",
        fix=fix,
    )


def _all_names(index: NameIndex, videos: list[str]) -> list[str]:
    for video in videos:
        index[video]
    return list(index.names)


def _check_list(source: Source, name: str, values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return list(values)
    raise DataError(f"{source.path}: '{name}' is {_describe(values)}, not a list of ids", fault="F28")


def _check_numbers(source: Source, name: str, values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(values, list | tuple) and all(type(value) in (int, float) for value in values):
        try:
            values = np.array(values, np.float64 if name != "label" else None) if values else np.zeros(0)
        except OverflowError:
            values = None
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iuf":
        raise DataError(f"{source.path}: '{name}' is {_describe(values)}, not one column of numbers", fault="F28")
    return values


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return describe(value)
    return describe(value) if isinstance(value, str | list | int | float | None) else f"a {type(value).__name__}"


def write(predictions: Predictions, path: Path) -> None:
    """Write the columns, with class numbers."""
    numbers = class_numbers(predictions, {})
    columns = {
        "video-id": [predictions.videos[video] for video in predictions.video.tolist()],
        "t-start": np.ascontiguousarray(predictions.start),
        "t-end": np.ascontiguousarray(predictions.end),
        "label": numbers[predictions.label],
        "score": np.ascontiguousarray(predictions.score),
    }
    write_bytes(path, [pickle.dumps(columns, _PROTOCOL)])


formats.add(
    "actionformer",
    Format(
        about="ActionFormer's eval_results.pkl, a pickle of columns that is read without running it",
        recognise=recognise,
        read_predictions=read,
        write_predictions=write,
        writes={"predictions": (".pkl", ".pickle")},
        holds=frozenset(("row_order", "numbers")),
    ),
)
