"""Check of a copy of a data set: every annotated video must exist and open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.datasets.dataset import Dataset
from jostle.errors import JostleError
from jostle.io.files.video_ids import join_names, quote_name
from jostle.io.video.probe import probe


@dataclass(frozen=True)
class CheckedData:
    """Result of a check of a data set.

    Attributes:
        data: the set.
        altered: nothing, as nobody knows what the files of others were.
        lacking: videos that are not there or cannot be opened, and files that nobody annotated.
    """

    data: Dataset
    lacking: tuple[str, ...]
    altered: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Summary of the result in one line."""
        variant = f", {self.data.variant}" if self.data.variant else ""
        return f"{self.data!r}{variant}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        data = self.data
        facts: dict[str, Any] = {"dataset": data.name, "subset": data.subset, "folder": str(data.folder)}
        facts |= {"task": data.task, "variant": data.variant, "videos": len(data.videos)}
        facts |= {"missing": list(data.missing), "unlisted": [str(path) for path in data.unlisted]}
        return {"format": 1, **facts, "notes": list(data.notes), "altered": [], "lacking": list(self.lacking)}


def check_data(data: Dataset, progress: Callable[[int, int], None] | None = None) -> CheckedData:
    """Open every video of a data set, without decoding it."""
    lacking = []
    if data.missing:
        lacking.append(
            f"{len(data.missing)} are annotated and have no file: {join_names(map(quote_name, data.missing))}"
        )
    for done, (name, path) in enumerate(data.videos.items(), 1):
        why = _wrong_with(path)
        if why is not None:
            lacking.append(f"{quote_name(name)} cannot be used: {why}")
        if progress is not None:
            progress(done, len(data.videos))
    return CheckedData(data, tuple(lacking))


def _wrong_with(path: Path) -> str | None:
    try:
        probe(path)
    except JostleError as error:
        return str(error)
    return None
