"""Scores of a run: the content of scores.json, and the fields of it that are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from jostle.core.schema import Bounds, Count, Interval, Mismatch, Share
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe
from jostle.evaluation.run_folder.metadata import FORMAT
from jostle.metrics.answers import AnswerChange, AnswerShare, Calibration, TemporalSensitivity
from jostle.metrics.measured import MetricValue
from jostle.metrics.robustness import robustness

Ratio = Annotated[float, Bounds(0)]


# Names of clean scores with less than the video, by key.
BASELINES = {"whole_video": "whole video as window", "blind": "without video", "one_frame": "with one frame"}


@dataclass(frozen=True)
class PmKScore:
    """Value of pm-k in one cell; see `PmK` for the fields."""

    k: Count
    anchors: Count
    accuracy: Share
    accuracy_interval: Interval | None
    pm_k: Share
    pm_k_interval: Interval | None
    error_by_offset: dict[int, Share]
    videos: Count | None = None  # None in older runs, whose intervals are over anchors


@dataclass(frozen=True)
class BoxScore:
    """Mean average precision on anchors, and on the worst frame near each; see `PmKDetection` for the fields."""

    k: Count
    iou: Share
    anchors: Count
    mean_ap: Share
    mean_ap_interval: Interval | None
    pm_k: Share
    pm_k_interval: Interval | None
    chosen_by_offset: dict[int, Count]


@dataclass(frozen=True)
class ObjectScore:
    """Scores of an object detector in one cell."""

    classes: Count  # number of the data set's classes that it knows and is evaluated on
    of_classes: Count  # number of the data set's classes
    detection: BoxScore  # boxes count with the right class
    localisation: BoxScore  # boxes count with any class


@dataclass(frozen=True)
class BaselineScore:
    """Score without the video, with one frame, or with the whole video as the window; or why there is none."""

    accuracy: Share | None = None  # of answers
    value: Share | None = None  # of windows, by the benchmark's metric
    interval: Interval | None = None
    unreadable: Count | None = None
    missing: Count | None = None
    by_type: dict[str, AnswerShare] | None = None
    order: AnswerShare | None = None
    mean_iou: Share | None = None
    failed: str = ""

    @property
    def score(self) -> float | None:
        """Value by the benchmark's metric, or None if the baseline could not be had."""
        return self.value if self.accuracy is None else self.accuracy


@dataclass(frozen=True, kw_only=True)
class FurtherScores:
    """Scores of a cell besides its value; those of answers and windows are None in runs of other tasks."""

    interval: Interval | None = None
    pm_k: PmKScore | None = None
    objects: ObjectScore | None = None
    count: Count | None = None  # questions or sentences
    unreadable: Count | None = None  # answers that no rule could read
    missing: Count | None = None  # questions without an answer, sentences without a prediction
    by_type: dict[str, AnswerShare] | None = None
    order: AnswerShare | None = None  # questions that need the order of events
    calibration: Calibration | None = None
    change: AnswerChange | None = None  # against the clean cell
    temporal_sensitivity: TemporalSensitivity | None = None  # where the cell destroys order
    recall: dict[str, Share] | None = None  # R@1 by overlap
    recall_intervals: dict[str, Interval | None] | None = None
    mean_iou: Share | None = None
    mean_iou_interval: Interval | None = None
    average_map: Share | None = None  # by QVHighlights' rules
    average_map_interval: Interval | None = None
    empty: Count | None = None  # sentences with a prediction that holds no window


@dataclass(frozen=True)
class CleanDetails(FurtherScores):
    """Scores of the clean cell besides its value."""

    chance: Share | None = None
    baselines: dict[str, BaselineScore] | None = None


@dataclass(frozen=True)
class CellScore(FurtherScores):
    """Scores of one cell: its value by the benchmark's metric, and further ones."""

    cell: str
    value: Share


@dataclass(frozen=True)
class Coverage:
    """Numbers of videos and classes that the scores cover, and in all (of the published list, if known)."""

    videos: Count
    of: Count
    classes: Count | None = None
    of_classes: Count | None = None

    @property
    def whole(self) -> bool:
        """Whether all videos and classes are covered."""
        return self.videos >= self.of and (self.classes or 0) >= (self.of_classes or 0)

    def __str__(self) -> str:
        classes = ""
        if self.classes is not None and self.of_classes is not None and self.classes < self.of_classes:
            classes = f" and {self.classes} of {self.of_classes} classes"
        return f"{self.videos} of {self.of} videos{classes}"


@dataclass(frozen=True)
class Counted:
    """Number of cells that the means include, and in all."""

    cells: Count
    of: Count


@dataclass(frozen=True)
class Scores:
    """Content of a run's scores.json."""

    format: Literal[1]
    metric: str  # name of the value of a cell
    clean: Share  # the value on clean video, a fraction
    clean_more: CleanDetails  # further scores of clean video
    cells: tuple[CellScore, ...]  # cells that the means include
    beside: tuple[CellScore, ...]  # other cells
    # Mean over `cells`; None without any, as are the following ones, which compare it with `clean`.
    mean_corrupted: Share | None
    relative_robustness: Ratio | None
    absolute_robustness: float | None
    mpc: Share | None
    rpc: Ratio | None
    counted: Counted
    coverage: Coverage

    def __post_init__(self) -> None:
        names = [one.cell for one in self.listed]
        if len(set(names)) < len(names):
            raise Mismatch("contain a cell twice").under("cells")
        if (self.mean_corrupted is None) != (not self.cells):
            raise Mismatch(f"is {self.mean_corrupted}, with {len(self.cells)} cells").under("mean_corrupted")

    @property
    def listed(self) -> tuple[CellScore, ...]:
        """All cells except the clean one."""
        return self.cells + self.beside


def summarize_scores(
    recipe: Recipe,
    model: str,
    cells: Sequence[Cell],
    measured: Mapping[str, MetricValue],
    coverage: Mapping[str, int],
    mend: str | None = None,
    adapt: str | None = None,
) -> dict[str, Any]:
    """Summarize the values of cells and the robustness of the model.

    Args:
        coverage: number of videos and classes used, and in all.
    """
    videos = {key: coverage[key] for key in ("videos", "of")}
    counted = {cell.name: measured[cell.name].value for cell in cells if cell.counted}
    summary: dict[str, Any] = {"format": FORMAT, "benchmark": recipe.name, "model": model, "metric": recipe.measure}
    if mend is not None:
        summary["mend"] = mend
    if adapt is not None:
        summary["adapt"] = adapt
    summary |= _robustness(recipe, measured[CLEAN].value, counted)
    summary["clean_more"] = measured[CLEAN].more
    # The chance level is one for all cells, and stands with the clean one.
    more = {name: {key: one for key, one in value.more.items() if key != "chance"} for name, value in measured.items()}
    summary["cells"] = [cell | more[cell["cell"]] | videos for cell in summary["cells"]]
    summary["beside"] = [
        {"cell": cell.name, "value": measured[cell.name].value, **more[cell.name], **videos}
        for cell in cells
        if not cell.counted and cell.name != CLEAN
    ]
    summary["counted"] = {"cells": len(counted), "of": sum(cell.counted for cell in recipe.cells)}
    summary["coverage"] = dict(coverage)
    return summary


def _robustness(recipe: Recipe, clean: float, counted: Mapping[str, float]) -> dict[str, Any]:
    if counted:
        by_group = robustness(clean, counted, families=recipe.corruption_groups, percent=False).to_dict()["by_family"]
        summary = robustness(clean, counted, families=recipe.families, percent=False).to_dict()
        return summary | {"by_group": by_group}
    # Only clean videos: the same keys, without values.
    none = robustness(clean, {"none:1": None}, percent=False)
    return replace(none, cells=(), by_corruption={}, by_severity={}, missing=()).to_dict() | {"by_group": {}}
