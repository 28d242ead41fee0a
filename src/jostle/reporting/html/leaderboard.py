"""The leaderboard: an index and one page a benchmark, in a folder that can be put on any web server as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jostle.core.results import plain
from jostle.errors import DataError
from jostle.evaluation.results.run_analysis import DRAWS
from jostle.evaluation.results.run_analysis import Estimate as Estimated
from jostle.evaluation.run_folder.metadata import format_adaptation
from jostle.io.files.atomic import write_text
from jostle.io.files.video_ids import file_name_for
from jostle.metrics.bootstrap import warn_of_few
from jostle.reporting.analysis.leaderboard import (
    Board,
    LeaderboardEntry,
    LeaderboardGroup,
    boards_of,
    label_corruptions,
)
from jostle.reporting.analysis.literature import ALWAYS
from jostle.reporting.analysis.loss_steps import step_of
from jostle.reporting.analysis.summary import Number, RunSummary, write_summary
from jostle.reporting.analysis.verdict import between, describe_mending, percent
from jostle.reporting.html.blocks import Facts
from jostle.reporting.html.templates import inline_assets, templates
from jostle.reporting.published.table import PublishedModel

Progress = Callable[[int, int], None]
INDEX = "index.html"
DATA = "board.json"  # the tables as data
RECORDS, REPORTS = "records", "reports"


@dataclass(frozen=True)
class RankedFigure:
    """A number in a table."""

    text: str  # its text
    beside: str = ""  # its interval
    order: str = ""  # what it is sorted by; empty where there is none, which comes last
    kind: str = ""  # the class that colours it


@dataclass(frozen=True)
class Line:
    """A row of a table."""

    name: str  # of the model
    partial: str  # what it lacks; empty where it is whole
    self_reported: bool  # whether it is from a record, whose means nobody can compute again
    conditions: tuple[str, ...]  # that are not the default, in words
    guesses: bool  # whether it is at chance level, so that relative robustness is left out
    figures: tuple[RankedFigure, ...]  # the three numbers
    corruptions: tuple[RankedFigure, ...]  # what is left under each corruption, in the order of the heads
    source: str  # of a published row, whose it is
    making: Facts | None  # how a run was made; None of a published row
    # Links; empty where there is none
    record: str = ""
    report: str = ""


@dataclass(frozen=True)
class RankingTable:
    """A table of rows that may be compared."""

    name: str
    title: str
    heads: tuple[str, ...]
    corruptions: tuple[str, ...]
    lines: tuple[Line, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Files:
    """Files that the rows of a leaderboard link to."""

    records: dict[str, RunSummary]
    reports: dict[str, Path]


def rankings_of(board: Board, files: Files) -> tuple[list[RankingTable], RankingTable | None]:
    """The tables of a benchmark: what was measured, and what is published."""
    heads: tuple[str, ...] = (
        ("accuracy on anchors", "pm-k", "") if board.frames else ("clean", "corrupted, mean", "relative robustness")
    )
    measured = [_ranking(board, group, i, heads, files) for i, group in enumerate(board.groups)]
    if not board.published:
        return measured, None
    corruptions = label_corruptions(board.corruptions)
    lines = tuple(_published(one, [name for name, _ in corruptions]) for one in board.published)
    if any(one.absolute is not None for one in board.published):
        heads = (*heads, "absolute robustness")
    columns = [i for i, head in enumerate(heads) if head and any(line.figures[i].order for line in lines)]
    return measured, RankingTable(
        "published",
        f"Published on {board.title}, not measured here",
        tuple(heads[i] for i in columns),
        tuple(label for _, label in corruptions),
        tuple(_only(line, columns) for line in lines),
        (ALWAYS,),
    )


def _ranking(board: Board, group: LeaderboardGroup, number: int, heads: tuple[str, ...], files: Files) -> RankingTable:
    corruptions = label_corruptions(group.corruptions)
    names = [name for name, _ in corruptions]
    lines = [_line(entry, names, files) for entry in group.entries]
    columns = [i for i, head in enumerate(heads) if head]
    rows = tuple(_only(line, columns) for line in lines)
    levels = sorted({entry.summary.chance for entry in group.entries if entry.summary.chance})
    chance = f"; chance level {' and '.join(f'{percent(level)} %' for level in levels)}" if levels else ""
    return RankingTable(
        f"group-{number}",
        group.scope + chance,
        tuple(heads[i] for i in columns),
        tuple(label for _, label in corruptions),
        rows,
    )


def _only(line: Line, columns: Sequence[int]) -> Line:
    return replace(line, figures=tuple(line.figures[i] for i in columns))


def _line(entry: LeaderboardEntry, corruptions: Sequence[str], files: Files) -> Line:
    own, facts = entry.summary, entry.summary.facts
    digits = own.checksum.removeprefix("sha256:")[:12]
    record = f"{RECORDS}/{file_name_for(f'{facts.benchmark}-{digits}', '.json')}"
    files.records[record] = own
    report = ""
    if entry.report is not None:
        report = f"{REPORTS}/{file_name_for(f'{facts.benchmark}-{digits}', '.html')}"
        files.reports[report] = entry.report
    clean = own.clean.value
    left = own.by_corruption
    listed = [
        ("weights", f"{facts.weights or 'unknown'} ({facts.weights_from})"),
        *([("mended", mended)] if (mended := describe_mending(facts.mend, facts.mend_weights)) else []),
        *([("adapted", str(format_adaptation(facts.adapt)))] if facts.adapt else []),
        *([("extractor", f"{facts.extractor}, {facts.extractor_weights or 'unknown'}")] if facts.extractor else []),
        ("on", own.coverage_text),
        ("ground truth", facts.truth),
        ("made with", ", ".join(f"{key} {value}" for key, value in own.versions.items())),
        ("device and seed", f"{facts.device}, {facts.seed}"),
        ("intervals", _interval_text(own)),
        *([("chance level", f"{percent(own.chance)} %")] if own.chance else []),
        ("taken from", _origin(entry)),
        ("checksum", own.checksum),
    ]
    return Line(
        entry.name,
        "" if own.whole else own.coverage_text,
        entry.self_reported,
        tuple(f"{what}: {value}" for what, value in own.conditions.items()),
        own.guesses,
        (_figure(own.clean), _figure(own.corrupted), _figure(Number(None) if own.guesses else own.relative)),
        tuple(_cell(left.get(name), None if own.guesses else clean) for name in corruptions),
        "",
        Facts(tuple(listed), "provenance"),
        record,
        report,
    )


def _interval_text(own: RunSummary) -> str:
    if not own.draws:
        return "none"
    few = "; too narrow, as videos are few" if warn_of_few(own.coverage.videos) else ""
    return f"95 %, {own.draws} draws of the videos{own.words.interval_note}{few}"


def _origin(entry: LeaderboardEntry) -> str:
    if not entry.self_reported:
        return f"run folder {entry.origin}, computed here from its predictions"
    return f"record {entry.origin}, self-reported: it fits its recipe, and has no results of videos to compute it from"


def _published(model: PublishedModel, corruptions: Sequence[str]) -> Line:
    figures = (
        _figure(Number(model.clean, model.intervals.get("clean"))),
        _figure(Number(model.corrupted, model.intervals.get("corrupted"))),
        _figure(Number(model.relative)),
        _figure(Number(model.absolute)),
    )
    cells = tuple(_cell(model.by_corruption.get(name), model.clean) for name in corruptions)
    return Line(model.name, "", False, (), False, figures, cells, f"{model.source}; {model.metric}", None)


def _figure(number: Number) -> RankedFigure:
    order = "" if number.value is None else repr(number.value)
    return RankedFigure(percent(number.value), between(Estimated(number.value, number.interval)), order)


def _cell(value: float | None, clean: float | None) -> RankedFigure:
    if value is None:
        return RankedFigure("", kind="none")
    return RankedFigure(percent(value), order=repr(value), kind=step_of(value / clean) if clean else "none")


def page_name(board: Board) -> str:
    """The file of a benchmark's page, which is never that of the index."""
    name = file_name_for(board.benchmark, ".html")
    return f"benchmark-{name}" if name.lower() == INDEX else name


def write_board(
    sources: Sequence[Path],
    out: Path,
    *,
    title: str = "Leaderboard",
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write the pages of run folders and records into a folder; files of those names are replaced.

    Returns:
        The index.

    Raises:
        DataError: if the folder is none, or a source cannot be used.
        Tampered: if a record is not as it was written.
    """
    environment = templates()  # better to fail now than after the work
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: is a file; name a folder for the board")
    boards = boards_of(sources, draws=draws, seed=seed, progress=progress)
    assets = inline_assets(("report.css", "board.css"), "board.js")
    files = Files({}, {})
    pages = {}
    for board in boards:
        measured, published = rankings_of(board, files)
        html = environment.get_template("board.html.jinja").render(
            board=board,
            measured=measured,
            published=published,
            self_reported=any(line.self_reported for table in measured for line in table.lines),
            title=title,
            **assets,
        )
        pages[page_name(board)] = html
    cards = [(board, page_name(board)) for board in boards]
    pages[INDEX] = environment.get_template("board-index.html.jinja").render(
        cards=cards, title=title, percent=percent, **assets
    )
    for folder in (out, out / RECORDS, *([out / REPORTS] if files.reports else [])):
        folder.mkdir(parents=True, exist_ok=True)
    for name, summary in files.records.items():
        write_summary(summary, out / name)
    for name, report in files.reports.items():
        shutil.copyfile(report, out / name)
    for name, page in pages.items():
        write_text(out / name, [page])
    data = {"format": 1, "title": title, "boards": plain(boards)}
    write_text(out / DATA, [json.dumps(data, indent=1, ensure_ascii=False), "\n"])
    return out / INDEX
