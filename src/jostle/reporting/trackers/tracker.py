"""Experiment trackers: their registry, and what a run gives them.

Whatever a tracker raises becomes one error, and the run is untouched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.registry import Registry
from jostle.errors import JostleError, MissingExtra, ResourceError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import format_adaptation
from jostle.reporting.analysis.labels import cell_labels
from jostle.reporting.analysis.record import RunRecord

_SUMMARY = {
    "clean": "clean",
    "mPC": "mpc",
    "rPC": "rpc",
    "mean_corrupted": "mean_corrupted",
    "relative_robustness": "relative_robustness",
    "absolute_robustness": "absolute_robustness",
}


@dataclass(frozen=True)
class TrackerPayload:
    """A run, ready for a tracker.

    Attributes:
        name: of the run: its folder.
        scalars: fractions by tag, `robustness/<metric>/<corruption>/<severity>`; clean video is severity 0.
        summary: the numbers of the whole run that there are, as `mPC` and `rPC`.
        config: what ran, flat.
        cells: (cell, value, of clean) for a table.
        files: the run's own records, and its report where there is one.
    """

    name: str
    scalars: dict[str, float]
    summary: dict[str, float]
    config: dict[str, str | int]
    cells: tuple[tuple[str, float, float | None], ...]
    files: tuple[Path, ...]


def tracker_payload(record: RunRecord) -> TrackerPayload:
    """Collect the payload of a run; numbers without meaning are left out."""
    scores, clean = record.scores, record.scores.clean
    listed = scores.listed
    metric = record.about.content.metric
    tags = cell_labels([one.cell for one in listed], "/")
    scalars = {f"robustness/{metric}/{CLEAN}/0": clean}
    scalars |= {f"robustness/{metric}/{tags[one.cell]}": one.value for one in listed}
    return TrackerPayload(
        name=record.folder.resolve().name,
        scalars=scalars,
        summary={name: value for name, key in _SUMMARY.items() if (value := getattr(scores, key)) is not None},
        config=_config(record),
        cells=tuple((one.cell, one.value, one.value / clean if clean else None) for one in listed),
        files=tuple(path for path in _files(record.folder) if path.is_file()),
    )


def _config(record: RunRecord) -> dict[str, str | int]:
    about = record.about
    what = ("benchmark", "recipe", "fingerprint", "model", "weights", "extractor", "mend", "mend_weights")
    data = ("dataset", "subset", "truth", "seed", "videos")
    config: dict[str, Any] = {name: getattr(about, name) for name in what + data}
    config["adapt"] = format_adaptation(about.adapt)
    config |= {"metric": record.scores.metric, "task": record.task}
    config |= {f"version/{package}": version for package, version in about.versions.items()}
    return {name: value for name, value in config.items() if value is not None}


def _files(folder: Path) -> list[Path]:
    own = RunFolder(folder)
    return [
        own.about,
        own.scores,
        own.diagnosis,
        own.failures,
        folder / "report.html",
        folder / "report" / "report.html",
    ]


# Gets a run and a folder for what it keeps, which need not be there, and says where the run can be seen.
Tracker = Callable[[TrackerPayload, Path], str]

trackers: Registry[Tracker] = Registry("tracker", "jostle.reporting.trackers")


def tracker(name: str) -> Callable[[Tracker], Tracker]:
    """Register the decorated function, which stays as it is."""

    def register(function: Tracker) -> Tracker:
        trackers.add(name, function)
        return function

    return register


def track_run(record: RunRecord, to: str, folder: Path) -> str:
    """Log a finished run to a tracker.

    Args:
        to: the name of a tracker.
        folder: for what it keeps on this machine; made by the tracker.

    Returns:
        Where the run can be seen.

    Raises:
        MissingExtra: if the tracker is not installed.
        ResourceError: if it fails; the run folder is as it was.
    """
    log = trackers[to]
    payload = tracker_payload(record)
    try:
        return log(payload, folder)
    except JostleError:
        raise
    except ImportError as error:
        raise MissingExtra(f"tracking with {to} ({error})", to) from error
    except Exception as error:  # whatever a foreign library raises; the run itself is complete
        raise ResourceError(
            f"{to} did not take the run ({type(error).__name__}: {error}); {record.folder} is complete, "
            "and can be given to it again",
            fault="F88",
        ) from error


@contextmanager
def environment(**defaults: str) -> Iterator[None]:
    """Environment variables for a while; those that the user has set stay."""
    added = [name for name in defaults if name not in os.environ]
    os.environ.update({name: defaults[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
