"""Content of a report as plain data in page order, before it is rendered to HTML."""

from __future__ import annotations

from dataclasses import dataclass, field

from jostle.core.tables import Table
from jostle.evaluation.results.run_analysis import Estimate
from jostle.reporting.analysis.literature import Literature
from jostle.reporting.analysis.verdict import between, percent
from jostle.reporting.analysis.video_results import VideoTimeline
from jostle.reporting.html.pictures import Strip


@dataclass(frozen=True)
class Figure:
    """A drawing that can be saved."""

    name: str  # of the file it is saved to
    title: str  # its heading
    svg: str  # the drawing
    note: str = ""  # how to read it


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
    """A square of the map, opened."""

    address: str  # its anchor in the page
    title: str
    facts: tuple[tuple[str, str], ...]  # (what, value) pairs
    steps: tuple[str, ...]  # what is done to a video, a sentence each
    drawing: Figure | None  # clean against this cell, where there is a diagnosis; else empty
    # What drops most here
    classes: Table | None
    videos: Table | None
    # Addresses of its neighbours; empty at the ends
    before: str
    after: str
    back: str  # the address of the map


@dataclass(frozen=True)
class RunHeader:
    """A run at the top of the page."""

    name: str  # as it is called in this page
    verdict: str
    numbers: tuple[Headline, ...]  # clean, corrupted, and what is left
    coverage: str  # how many videos and cells they are over
    complete: bool  # whether that is all there are


@dataclass(frozen=True)
class Taken:
    """Classes a recogniser assigned to a video, before and after corruption."""

    true: str
    clean: str
    corrupted: str


@dataclass(frozen=True)
class Worst:
    """A video that is hit hard."""

    name: str  # of the video
    run: str  # whose
    cell: str  # the corruption that hurts it most
    # Its own score, before and after
    clean: float
    corrupted: float
    drawing: Figure | None  # the timeline of detections, for detection
    found: VideoTimeline | None  # the same as data
    taken: Taken | None  # what a recogniser took it for, for recognition
    answers: Table | None  # the questions whose answers changed, for questions
    strip: Strip | None  # pictures; None where there are none, and `why` says why
    why: str


@dataclass(frozen=True)
class Pair:
    """Two runs side by side."""

    title: str
    verdict: str
    figure: Figure
    table: Table


@dataclass(frozen=True)
class GateResult:
    """Decisions of a gate on one run."""

    run: str  # as it is called in this page
    decision: str  # `pass`, `fail` or `undecided`
    summary: str
    table: Table
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Making:
    """Facts on how a run was obtained."""

    run: str
    facts: tuple[tuple[str, str], ...]  # (what, value) pairs
    failures: tuple[tuple[str, str], ...]  # (video, why) of what could not be used


@dataclass(frozen=True)
class ProbeSection:
    """Breaking points of a run."""

    name: str  # of the run
    summary: str
    rule: str  # when an item counts as lost
    shares: Figure
    curves: Figures  # of the items that break first
    table: Table
    class_tables: tuple[Table, ...]
    comparison: Table | None  # with the first run


@dataclass(frozen=True)
class LanguageSection:
    """Answers or windows of runs of questions and moments."""

    title: str
    summaries: tuple[str, ...]  # a sentence on the baselines of each run
    tables: tuple[Table, ...]
    remark: str  # how to read them


@dataclass(frozen=True)
class Page:
    """Content of a whole report."""

    title: str
    task: str
    group: str  # name of a class, as `type of question`
    benchmark: str
    metric: str
    heads: tuple[RunHeader, ...]
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
    language: LanguageSection | None
    literature: Literature | None
    making: tuple[Making, ...]
    probes: tuple[ProbeSection, ...] = ()
    remarks: tuple[str, ...] = field(default=())
    gates: tuple[GateResult, ...] = field(default=())
