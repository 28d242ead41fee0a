"""Checks of arrays that models computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import NonFiniteOutput


def check_finite(values: npt.NDArray[Any], what: str) -> None:
    """Raise if an output of a model is not finite.

    Args:
        values: (N, ...) one row for each item of a batch.
        what: the model and its output, for the message.

    Raises:
        NonFiniteOutput: F121, with the rows.
    """
    finite = np.isfinite(values)
    if not finite.all():
        rows = np.flatnonzero(~finite.reshape(len(values), -1).all(1))
        wrong = finite.size - int(np.count_nonzero(finite))
        raise NonFiniteOutput(
            f"{what}: {wrong} of {values.size} values are not finite; check its weights, and its precision if it is "
            "not float32",
            rows=rows.tolist(),
        )


@contextmanager
def naming(*, video: str = "", cell: str = "") -> Iterator[None]:
    """Name a video or a cell in errors about outputs of models that are not finite."""
    try:
        yield
    except NonFiniteOutput as error:
        raise error.at(video=video, cell=cell) from error.__cause__
