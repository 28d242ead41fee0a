"""The map of cells of each run, and the detail behind every square."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from jostle.core.tables import Table
from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.run_analysis import class_drops, losing, video_drops
from jostle.evaluation.run_folder.metadata import Step
from jostle.reporting.analysis.cell_tables import cells_table, drops_table
from jostle.reporting.analysis.error_profile import error_profile
from jostle.reporting.analysis.labels import grid_of, plural, short_name
from jostle.reporting.analysis.verdict import between, percent
from jostle.reporting.charts.bars import draw_profile
from jostle.reporting.charts.heat_maps import Square, draw_heat_map
from jostle.reporting.html.blocks import Block, Detail, Details, Facts, Figure, Fold, Side, Text
from jostle.reporting.html.section import Report, ReportedRun, Section, section

HURT = 5  # classes and videos in the detail of a cell
NARROW = 460  # of a drawing beside others
HINT = "Choose a square to see its effect on a video, the classes and videos that lose most, and the errors it causes."


@section("map", after="gate", title="Every corruption at every severity", short="Map")
def map_of_cells(report: Report) -> Section | None:
    """Draw the score of every cell, coloured by what is lost."""
    made = [both for run in report.runs if (both := _map_of(report, run))]
    if not made:
        return None
    maps = tuple(figure for figure, _ in made)
    return Section(
        Text(f"Each square opens its detail{' below' if len(maps) > 1 else ''}.", "lead"),
        Details(maps, HINT, tuple(detail for _, details in made for detail in details)),
        Fold("All cells as a table", cells_table([run.analysis for run in report.runs])),
    )


def _map_of(report: Report, run: ReportedRun) -> tuple[Figure, list[Detail]] | None:
    analysis = run.analysis
    grid = grid_of(analysis.cells, analysis.counted)
    if not grid.rows:
        return None
    cells = [cell for row in grid.rows for _, cell in sorted(row.cells.items(), key=lambda item: item[0] or 0)]
    address = {cell: f"r{run.number}c{i}" for i, cell in enumerate(cells)}
    squares = {}
    for cell in cells:
        own, left = analysis.of(cell), analysis.relative([cell]).value
        hint = f"{short_name(cell)}: {percent(own.value)} {between(own)}, {percent(left)} % of clean"
        squares[cell] = Square(own.value, left, address[cell], hint)
    metric = run.record.scores.metric
    drawing = draw_heat_map(grid, squares, f"{metric} of {run.name} by corruption and severity")
    note = f"{metric} in each cell; colour is what is lost of the clean score."
    details = []
    for i, cell in enumerate(cells):
        before = address[cells[i - 1]] if i else ""
        after = address[cells[i + 1]] if i + 1 < len(cells) else ""
        blocks, back = _blocks_of(report, run, cell, address[cell]), f"figure-map-{run.number}"
        title = f"{short_name(cell)}, {run.name}"
        details.append(Detail(address[cell], title, *blocks, back=back, before=before, after=after))
    return Figure(f"map-{run.number}", run.name, drawing, note), details


def _blocks_of(report: Report, run: ReportedRun, cell: str, address: str) -> Iterator[Block]:
    """Yield what is done to a video in a cell, what it costs, and which errors, classes and videos it hits."""
    analysis, record = run.analysis, run.record
    own, left, clean = analysis.of(cell), analysis.relative([cell]), analysis.of(CLEAN)
    facts = (
        (str(record.scores.metric), f"{percent(own.value)} {between(own)}"),
        ("clean", f"{percent(clean.value)} {between(clean)}"),
        ("of clean", f"{percent(left.value)} % {between(left)}"),
        ("in the means", "yes" if cell in analysis.counted else "no"),
    )
    yield from (describe_step(step) for one in record.about.content.cells if one.cell == cell for step in one.done)
    yield Facts(facts)
    profile = error_profile(record, [cell])
    if profile is not None and profile.corrupted is not None:
        chart = draw_profile([("clean", profile.clean), ("here", profile.corrupted)], NARROW)
        yield Figure(f"errors-{address}", "Kinds of error", chart)
    yield Side(*_largest_drops(report, run, cell))


def _largest_drops(report: Report, run: ReportedRun, cell: str) -> Iterator[Table]:
    group = report.words.group
    for many, word, drops in ((plural(group), group, class_drops), ("Videos", "video", video_drops)):
        if worst := losing(drops(run.analysis, [cell]))[:HURT]:
            yield drops_table(f"{many} with the largest drop", word, worst)


def describe_step(step: Step) -> str:
    """Say what a corruption does to a video, with the values that it has here."""
    known = step.corruption in corruptions
    summary = _with_values(corruptions[step.corruption], step) if known else ""
    options = "".join(f", {key} {value}" for key, value in step.options.items())
    return f"{step.spec}: {summary} Strength {step.value}{options}; placed {step.placement}."


def _with_values(corruption: Corruption, step: Step) -> str:
    """Return the summary of a corruption with the values of the parameters that it names."""
    strength = [*inspect.signature(corruption.function).parameters][1]  # as all levels have it
    values = {strength: step.value} | step.options

    def named(match: re.Match[str]) -> str:
        name = match[1]
        return f"{values[name]} ({name.replace('_', ' ')})" if name in values else name

    return re.sub(r"`([^`]*)`", named, corruption.summary)
