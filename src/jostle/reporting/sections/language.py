"""Runs on language: answers to questions about videos, and windows in time that were found for sentences."""

from __future__ import annotations

from collections.abc import Callable

from jostle.core.tables import Table
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.language import (
    answers_table,
    changes_table,
    describe_baselines,
    types_table,
    windows_table,
)
from jostle.reporting.html.blocks import Text
from jostle.reporting.html.section import Report, Section, section

ANSWERS = (
    "Resist rate: share of the answers right on clean video that stay right. Corrective flips: share of the "
    "wrong ones that become right, which noise brings as well. Temporal sensitivity: share of the answers "
    "right on clean video that change where the order of events is destroyed; high is good. An answer that no "
    "rule can read is unreadable, which is wrong, and never guessed or left out."
)
WINDOWS = (
    "R@1: share of sentences whose first window overlaps a true one that much. mAP is QVHighlights' mean over "
    "overlaps of 0.5 to 0.95. A sentence without a window counts as 0."
)
OVER_ALL = " These tables are over all videos of each run."
MakeTable = Callable[[RunRecord, str], Table | None]


@section("answers", after="severity", title="Answers")
def answers(report: Report) -> Section | None:
    """Tabulate kinds of answers, what corruption changes in them, and types of question."""
    return _tables(report, ANSWERS, answers_table, changes_table, types_table)


@section("windows", after="answers", title="Windows")
def windows(report: Report) -> Section | None:
    """Tabulate how well windows in time fit their sentences."""
    return _tables(report, WINDOWS, windows_table)


def _tables(report: Report, remark: str, *kinds: MakeTable) -> Section | None:
    """Return the tables of each run, behind a sentence on what it scores with less than the video."""
    tables = [table for run in report.runs for make in kinds if (table := make(run.record, run.name))]
    if not tables:
        return None
    levels = [(run.name, text) for run in report.runs if (text := describe_baselines(run.record))]
    fewer = any(len(run.analysis.videos) < run.record.scores.coverage.videos for run in report.runs)
    return Section(
        *(Text(text if report.alone else f"{name}: {text}", "lead") for name, text in levels),
        *tables,
        Text(remark + OVER_ALL * fewer, "pale"),
    )
