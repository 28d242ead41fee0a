"""Options of what is told of finished runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import option, reworded
from jostle.core.progress import ProgressOptions
from jostle.core.tables import TableOptions
from jostle.corruptions.options import SeedOptions
from jostle.gate.options import CheckConfig, StopOptions
from jostle.io.options import OutOptions
from jostle.metrics.options import ScoreOptions

if TYPE_CHECKING:
    from jostle.gate.budget import Budget


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalOptions(SeedOptions):
    """Intervals"""

    draws: int = field(
        default=1000,
        metadata=reworded(
            ScoreOptions,
            "bootstrap",
            "Number of bootstrap draws of intervals.",
            more="They are draws of the videos; 0 for no intervals.",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportOptions(ProgressOptions):
    """Report"""

    runs: str | Path | Iterable[str | Path] = field(
        kw_only=False, metadata=option("Run folders; the first is the reference.", metavar="RUN...")
    )
    out: str | Path = field(
        kw_only=False,
        default="report.html",
        metadata=reworded(OutOptions, "out", "HTML file to write.", metavar="HTML"),
    )
    budget: str | Path | Mapping[str, Any] | Budget | None = field(
        default=None,
        metadata=reworded(
            CheckConfig,
            "budget",
            "Budget of `jostle check`, which adds a section.",
            more="It has the decisions on each run; that of a run that stopped early is on the page anyway.",
        ),
    )
    against: str | Path | None = field(
        default=None,
        metadata=reworded(
            StopOptions, "against", "Reference run of the budget.", more="Alone, with the default budget."
        ),
    )
    csv: str | Path | None = field(
        default=None, metadata=reworded(TableOptions, "csv", "Write a CSV table of all cells.")
    )
    latex: str | Path | None = field(
        default=None,
        metadata=reworded(TableOptions, "latex", "Write tables in the layouts of the papers.", metavar="DIR"),
    )
    latex_intervals: bool = field(default=False, metadata=option("Add intervals to these tables."))
    figures: str | Path | None = field(
        default=None, metadata=option("Write every figure as png, pdf and svg.", metavar="DIR")
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportConfig(ReportOptions, IntervalOptions):
    """Options of a report, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DiffConfig(IntervalOptions, ProgressOptions):
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


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordConfig(IntervalOptions, ProgressOptions):
    """Record"""

    run: str | Path = field(kw_only=False, metadata=reworded(ReportOptions, "runs", "Run folder.", metavar="RUN"))
    out: str | Path = field(kw_only=False, metadata=reworded(OutOptions, "out", "File of the record."))
    partial: bool = field(
        default=False,
        metadata=option("Export a run that lacks videos or cells too.", more="Boards mark it."),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BoardConfig(IntervalOptions, ProgressOptions):
    """Leaderboard"""

    runs: str | Path | Iterable[str | Path] = field(
        kw_only=False, metadata=reworded(ReportOptions, "runs", "Run folders, and records of runs.")
    )
    out: str | Path = field(
        kw_only=False,
        metadata=reworded(
            OutOptions, "out", "Folder of the leaderboard.", more="Pages of the same names are replaced.", metavar="DIR"
        ),
    )
    title: str = field(default="Leaderboard", metadata=option("Heading of the leaderboard.", metavar="TEXT"))
