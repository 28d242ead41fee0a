"""Scores of a run: the fields of scores.json that are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jostle.io.files.records import Bounds, Count, Interval, Share, ValidationError

Ratio = Annotated[float, Bounds(0)]


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
    """Scores of an object detector in one cell.

    Attributes:
        classes: number of the data set's classes that it knows and is evaluated on.
        of_classes: number of the data set's classes.
        detection: boxes count with the right class.
        localisation: boxes count with any class.
    """

    classes: Count
    of_classes: Count
    detection: BoxScore
    localisation: BoxScore


@dataclass(frozen=True)
class CleanDetails:
    """Scores of the clean cell besides its value."""

    interval: Interval | None = None
    pm_k: PmKScore | None = None
    objects: ObjectScore | None = None


@dataclass(frozen=True)
class CellScore:
    """Scores of one cell: its value by the benchmark's metric, and further ones."""

    cell: str
    value: Share
    interval: Interval | None = None
    pm_k: PmKScore | None = None
    objects: ObjectScore | None = None


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
    """Content of a run's scores.json.

    Attributes:
        metric: name of the value of a cell.
        clean: the value on clean video, a fraction.
        clean_more: further scores of clean video.
        cells: cells that the means include.
        beside: other cells.
        mean_corrupted: mean over `cells`; None without any, as are the following ones, which compare it with `clean`.
    """

    format: Literal[1]
    metric: str
    clean: Share
    clean_more: CleanDetails
    cells: tuple[CellScore, ...]
    beside: tuple[CellScore, ...]
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
            raise ValidationError("contain a cell twice").under("cells")
        if (self.mean_corrupted is None) != (not self.cells):
            raise ValidationError(f"is {self.mean_corrupted}, with {len(self.cells)} cells").under("mean_corrupted")

    @property
    def listed(self) -> tuple[CellScore, ...]:
        """All cells except the clean one."""
        return self.cells + self.beside
