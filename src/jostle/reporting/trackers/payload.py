"""Payload for experiment trackers: scalars by tag, a summary, the configuration, and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.folder import RunFolder
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
