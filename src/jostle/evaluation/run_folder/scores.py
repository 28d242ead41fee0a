"""What the predictions of a run are worth: the content of scores.json, as far as anything reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jostle.io.files.records import Count, Interval, Misfit, Share, Within

Ratio = Annotated[float, Within(0)]


@dataclass(frozen=True)
class PmKScore:
    """pm-k of one cell; `PmK` says what each number means."""

    k: Count
    anchors: Count
    accuracy: Share
    accuracy_interval: Interval | None
    pm_k: Share
    pm_k_interval: Interval | None
    error_by_offset: dict[int, Share]


@dataclass(frozen=True)
class BoxScore:
    """Mean average precision on anchors, and on the worst frame near each; `PmKDetection` says what numbers mean."""

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
    """What an object detector is worth in one cell.

    Attributes:
        classes: of the data set's, how many it can find and is measured on, of how many.
        detection: with the right class; as `localisation` with any.
    """

    classes: Count
    of_classes: Count
    detection: BoxScore
    localisation: BoxScore


@dataclass(frozen=True)
class MoreOfClean:
    """What the clean cell is worth besides its value."""

    interval: Interval | None = None
    pm_k: PmKScore | None = None
    objects: ObjectScore | None = None


@dataclass(frozen=True)
class CellScore:
    """One cell: its value by the benchmark's metric, and what else is known of it."""

    cell: str
    value: Share
    interval: Interval | None = None
    pm_k: PmKScore | None = None
    objects: ObjectScore | None = None


@dataclass(frozen=True)
class Coverage:
    """On how many videos and classes the scores are, and of how many, by the published list if it is known."""

    videos: Count
    of: Count
    classes: Count | None = None
    of_classes: Count | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.videos >= self.of and (self.classes or 0) >= (self.of_classes or 0)

    def __str__(self) -> str:
        classes = ""
        if self.classes is not None and self.of_classes is not None and self.classes < self.of_classes:
            classes = f" and {self.classes} of {self.of_classes} classes"
        return f"{self.videos} of {self.of} videos{classes}"


@dataclass(frozen=True)
class Counted:
    """Over how many cells the means are, and of how many."""

    cells: Count
    of: Count


@dataclass(frozen=True)
class Scores:
    """What scores.json holds.

    Attributes:
        metric: what the value of a cell is called.
        clean: the value on clean video, a fraction.
        clean_more: what else is known of it.
        cells: those that the means are over.
        beside: the others.
        mean_corrupted: the mean over cells; None without any. So are the next ones, which compare it with `clean`.
    """

    format: Literal[1]
    metric: str
    clean: Share
    clean_more: MoreOfClean
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
            raise Misfit("hold one cell twice").under("cells")
        if (self.mean_corrupted is None) != (not self.cells):
            raise Misfit(f"is {self.mean_corrupted}, with {len(self.cells)} cells").under("mean_corrupted")

    @property
    def listed(self) -> tuple[CellScore, ...]:
        """All cells but the clean one."""
        return self.cells + self.beside
