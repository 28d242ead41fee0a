"""Storage of predictions: in result files a video at a time, and in a predictions file a cell at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic

import numpy as np
import numpy.typing as npt

from jostle.errors import DataError, JostleError
from jostle.evaluation.inference.jobs import Output
from jostle.io.files.atomic import write_text
from jostle.io.files.text import read_json

Array = npt.NDArray[Any]


class OutputStorage(Generic[Output]):
    """How the predictions of a task are stored; by default as one plain value a video, in JSON.

    Attributes:
        name: of the task, in recipes; its decorator sets it.
        suffix: of predictions files.
    """

    name: ClassVar[str] = ""
    suffix: ClassVar[str] = ".json"

    def portions(self, name: str) -> Sequence[int | None]:
        """Return the numbers of the portions that results of a video are stored by; (None,) for the whole."""
        return (None,)

    def join_portions(self, outputs: Sequence[Output]) -> Output:
        """Join the predictions for the portions of a video."""
        (whole,) = outputs
        return whole

    def to_plain(self, output: Output) -> Any:
        """Convert the prediction for a video to plain values; by default it is one."""
        return output

    def from_plain(self, value: Any, /) -> Output:
        """Convert the plain values of `to_plain` back; what is malformed raises KeyError, TypeError or ValueError."""
        output: Output = value
        return output

    def pack(self, outputs: Mapping[str, Output]) -> tuple[dict[str, Array], list[str]]:
        """Convert the predictions for a video, by cell, to arrays and the class names they index."""
        texts = {cell: json.dumps(self.to_plain(output)).encode() for cell, output in outputs.items()}
        return {cell: np.frombuffer(text, np.uint8) for cell, text in texts.items()}, []

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Output]:
        """Convert the arrays of `pack` back to predictions."""
        return {cell: self.from_plain(json.loads(array.tobytes())) for cell, array in arrays.items()}

    def write(self, path: Path, outputs: Mapping[str, Output]) -> None:
        """Write the predictions of one cell, by video."""
        write_text(path, [json.dumps({name: self.to_plain(output) for name, output in outputs.items()}), "\n"])

    def read(self, path: Path) -> dict[str, Output]:
        """Read the predictions that `write` wrote, by video."""
        with self.refusing_rows(path):
            return {name: self.from_plain(value) for name, value in read_json(path).items()}

    @contextmanager
    def refusing_rows(self, path: Path) -> Iterator[None]:
        """Raise DataError F101 for whatever is wrong with the content of a predictions file."""
        try:
            yield
        except (JostleError, KeyError, TypeError, ValueError, AttributeError) as error:
            why = str(error).removeprefix(f"{path}: ").partition(";")[0]
            raise DataError(
                f"{path}: no predictions of {self.name}: {why}; delete it, and the cell is run again", fault="F101"
            ) from None

    def to_predictions(self, outputs: Mapping[str, Output]) -> Any:
        """Join predictions by video to what the metric takes; by default a mapping."""
        return dict(outputs)

    def read_predictions(self, path: Path) -> Any:
        """Read the predictions of a cell as the metric takes them."""
        return self.to_predictions(self.read(path))

    def videos_of(self, predictions: Any) -> Sequence[str]:
        """Return the videos that predictions are about."""
        return tuple(predictions)

    def restrict(self, predictions: Any, names: Sequence[str]) -> Any:
        """Return the predictions for these videos, where the metric does not leave out the others itself."""
        return predictions
