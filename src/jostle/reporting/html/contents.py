"""Content of a report as plain data in page order, before it is rendered to HTML."""

from __future__ import annotations

from dataclasses import dataclass, field

from jostle.reporting.analysis.literature import Literature
from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.tables import Table
from jostle.reporting.analysis.timeline import VideoTimeline
from jostle.reporting.analysis.verdict import between, percent
from jostle.reporting.html.pictures import Strip


@dataclass(frozen=True)
class Figure:
    """A drawing that can be saved.

    Attributes:
        name: of the file it is saved to.
        title: its heading.
        svg: the drawing.
        note: how to read it.
    """

    name: str
    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class Figures:
    """Group of drawings, side by side where there is room."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Headline:
    """One of the three numbers."""

    label: str
    found: Estimate

    @property
    def value(self) -> str:
        """The number, as a percentage."""
        return percent(self.found.value)

    @property
    def interval(self) -> str:
        """Interval of the number, in brackets."""
        return between(self.found)


@dataclass(frozen=True)
class Detail:
    """A square of the map, opened.

    Attributes:
        address: its anchor in the page.
        facts: (what, value) pairs.
        steps: what is done to a video, a sentence each.
        drawing: clean against this cell, where there is a diagnosis; else empty.
        classes, videos: who is hurt most here.
        before, after: addresses of its neighbours; empty at the ends.
        back: the address of the map.
    """

    address: str
    title: str
    facts: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    drawing: Figure | None
    classes: Table | None
    videos: Table | None
    before: str
    after: str
    back: str


@dataclass(frozen=True)
class Head:
    """A run at the top of the page.

    Attributes:
        name: as it is called in this page.
        numbers: clean, corrupted, and what is left.
        coverage: how many videos and cells they are over.
        complete: whether that is all there are.
    """

    name: str
    verdict: str
    numbers: tuple[Headline, ...]
    coverage: str
    complete: bool


@dataclass(frozen=True)
class Taken:
    """Classes a recogniser assigned to a video, before and after corruption."""

    true: str
    clean: str
    corrupted: str


@dataclass(frozen=True)
class Worst:
    """A video that is hit hard.

    Attributes:
        name: of the video.
        run: whose.
        cell: the corruption that hurts it most.
        clean, corrupted: its own score, before and after.
        drawing: the timeline of detections, for detection.
        found: the same as data.
        taken: what a recogniser took it for, for recognition.
        strip: pictures; None where there are none, and `why` says why.
    """

    name: str
    run: str
    cell: str
    clean: float
    corrupted: float
    drawing: Figure | None
    found: VideoTimeline | None
    taken: Taken | None
    strip: Strip | None
    why: str


@dataclass(frozen=True)
class Pair:
    """Two runs side by side."""

    title: str
    verdict: str
    figure: Figure
    table: Table


@dataclass(frozen=True)
class Making:
    """Facts on how a run was obtained.

    Attributes:
        facts: (what, value) pairs.
        failures: (video, why) of what could not be used.
    """

    run: str
    facts: tuple[tuple[str, str], ...]
    failures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Page:
    """Content of a whole report."""

    title: str
    task: str
    benchmark: str
    metric: str
    heads: tuple[Head, ...]
    summary: str
    maps: Figures
    details: tuple[Detail, ...]
    cells: Table
    curves: Figure | None
    classes: Figures
    class_tables: tuple[Table, ...]
    errors: Figures
    error_tables: tuple[Table, ...]
    worst: tuple[Worst, ...]
    worst_note: str
    video_tables: tuple[Table, ...]
    pairs: tuple[Pair, ...]
    confusions: Figures
    confusion_tables: tuple[Table, ...]
    offsets: Figure | None
    offset_table: Table | None
    objects: Table | None
    literature: Literature | None
    making: tuple[Making, ...]
    remarks: tuple[str, ...] = field(default=())
