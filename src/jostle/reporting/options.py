"""Options of what is told of finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import option
from jostle.corruptions.options import SeedOptions

if TYPE_CHECKING:
    from jostle.gate.budget import Budget


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalOptions(SeedOptions):
    """Intervals"""

    draws: int = field(
        default=1000,
        metadata=option(
            "Number of bootstrap draws of intervals.",
            more="They are draws of the videos; 0 for no intervals.",
            flag="--bootstrap",
            metavar="N",
            least=0,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportOptions:
    """Report"""

    runs: str | Path | Iterable[str | Path] = field(
        kw_only=False, metadata=option("Run folders; the first is the reference.", metavar="RUN...")
    )
    out: str | Path = field(
        kw_only=False,
        default="report.html",
        metadata=option("HTML file to write.", flag="--out", short="-o", metavar="HTML"),
    )
    budget: str | Path | Mapping[str, Any] | Budget | None = field(
        default=None,
        metadata=option(
            "Budget of `jostle check`, which adds a section.",
            more="It has the decisions on each run; that of a run that stopped early is on the page anyway.",
            metavar="FILE",
        ),
    )
    against: str | Path | None = field(
        default=None,
        metadata=option("Reference run of the budget.", more="Alone, with the default budget.", metavar="RUN"),
    )
    csv: str | Path | None = field(default=None, metadata=option("Write a CSV table of all cells.", metavar="FILE"))
    latex: str | Path | None = field(
        default=None, metadata=option("Write tables in the layouts of the papers.", metavar="DIR")
    )
    latex_intervals: bool = field(default=False, metadata=option("Add intervals to these tables."))
    figures: str | Path | None = field(
        default=None, metadata=option("Write every figure as png, pdf and svg.", metavar="DIR")
    )
    progress: Callable[[int, int], None] | None = field(
        default=None, metadata=option("Called with (steps done, steps in all).", python=True)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportConfig(ReportOptions, IntervalOptions):
    """Options of a report, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DiffConfig(IntervalOptions):
    """Comparison"""

    first: str | Path = field(kw_only=False, metadata=option("Run folder.", metavar="RUN_A"))
    second: str | Path = field(kw_only=False, metadata=option("Another run of the same benchmark.", metavar="RUN_B"))
    any_truth: bool = field(
        default=False,
        metadata=option("Compare runs with different ground truths too, each scored by its own."),
    )
    any_data: bool = field(
        default=False,
        metadata=option(
            "Compare runs of one recipe on different data, each on its own videos.",
            more="They have draws of their own: what a model loses on UCF101-DS of what it has on UCF101.",
        ),
    )
    by: str | Path | None = field(
        default=None,
        metadata=option(
            "CSV file with the group of each video of RUN_B; default column: category.",
            more="The clean accuracy of recognisers is then also compared group by group, paired by class.",
            metavar="FILE[:COLUMN]",
        ),
    )
    progress: Callable[[int, int], None] | None = field(
        default=None, metadata=option("Called with (cells done, cells in all).", python=True)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BoardConfig(IntervalOptions):
    """Leaderboard"""

    runs: str | Path | Iterable[str | Path] = field(
        kw_only=False, metadata=option("Run folders, and records of runs.", metavar="RUN...")
    )
    out: str | Path = field(
        kw_only=False,
        metadata=option("Folder of the leaderboard.", more="Pages of the same names are replaced.", metavar="DIR"),
    )
    title: str = field(default="Leaderboard", metadata=option("Heading of the leaderboard.", metavar="TEXT"))
    progress: Callable[[int, int], None] | None = field(
        default=None, metadata=option("Called with (runs read, runs in all).", python=True)
    )
