"""Is it what it was? Runs, written benchmarks and data sets, checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.data import load_dataset

if TYPE_CHECKING:
    from jostle.benchmarks.building import CheckedCopies
    from jostle.datasets.data_check import CheckedData
    from jostle.running.check import Checked

Progress = Callable[[int, int], None]


def verify(
    folder: str | Path, *, dataset: str | None = None, subset: str | None = None, progress: Progress | None = None
) -> Checked | CheckedCopies | CheckedData:
    """Check a folder: of a run, of copies that `build` wrote, or of a data set.

    Of the first two every file is compared with its hash; of a data set every video is opened. The result lists what
    is `altered` and what is `lacking`.

    Args:
        dataset: one of `jostle names datasets`, if the folder is a copy of one.
        subset: the part of it; by default the one that results are given for.
        progress: called with (files checked, files in all).

    Raises:
        DataError: if the folder holds nothing that could be checked.
    """
    from jostle.benchmarks.building import check_built, is_built
    from jostle.datasets.data_check import check_data
    from jostle.running.check import check_run

    place = Path(folder)
    if dataset is not None:
        return check_data(load_dataset(dataset, subset, root=place), progress)
    return check_built(place, progress) if is_built(place) else check_run(place)
