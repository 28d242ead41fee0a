"""The report: findings composed into a page, and the page written as one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from jostle.core.tables import Table
from jostle.errors import BadValue
from jostle.evaluation.results.comparison import analyse_runs
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import DRAWS, RunAnalysis
from jostle.gate.budget import Budget, read_budget
from jostle.gate.verdict import Check, check_run
from jostle.io.files.atomic import write_text
from jostle.reporting.analysis.cell_tables import cells_table
from jostle.reporting.analysis.labels import benchmark_title, run_names
from jostle.reporting.analysis.paper_tables import write_paper_tables
from jostle.reporting.charts.save import save_drawing
from jostle.reporting.html.blocks import Figure, figures_in
from jostle.reporting.html.section import PlacedSection, Report, ReportedRun, compose_sections
from jostle.reporting.html.templates import inline_assets, templates
from jostle.reporting.options import ReportConfig
from jostle.reporting.sections.videos import count_worst

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Page:
    """A whole report, before it is rendered to HTML."""

    title: str
    kicker: str  # the line over the heading
    names: tuple[str, ...]  # of the runs
    sections: tuple[PlacedSection, ...]

    @property
    def figures(self) -> Iterator[Figure]:
        """All figures, in the order of the page."""
        for one in self.sections:
            yield from figures_in(one.blocks)


def analyse_for_report(
    records: Sequence[RunRecord], *, draws: int = DRAWS, seed: int = 0, progress: Progress | None = None
) -> tuple[list[RunAnalysis], Callable[[], None]]:
    """Analyse runs; return the analyses, and a function to call after each of their worst videos."""
    cells = sum(len(record.cells) for record in records)
    total = cells + len(records) * count_worst(len(records))
    pictured = count(cells + 1)

    def report_step(done: int, _: int = 0) -> None:
        if progress is not None:
            progress(done, total)

    analyses = analyse_runs(records, draws=draws, seed=seed, progress=report_step)
    return analyses, lambda: report_step(next(pictured))


def compose(report: Report) -> Page:
    """Return the page about runs of one benchmark."""
    benchmark = benchmark_title(report.runs[0].record)
    return Page(
        title=f"{benchmark}: {', '.join(report.names)}",
        kicker=f"{benchmark} · {report.metric}",
        names=report.names,
        sections=tuple(compose_sections(report)),
    )


def render(page: Page) -> str:
    """The page as HTML: nothing in it is fetched, and nothing from outside could run.

    Raises:
        MissingExtra: if Jinja is not installed.
    """
    texts: dict[str, dict[str, str]] = {}

    def register_table(table: Table) -> str:
        """Store a table in three formats for the copy buttons, and return its name."""
        name = f"t{len(texts)}"
        texts[name] = {"csv": table.csv(), "markdown": table.markdown(), "latex": table.latex()}
        return name

    template = templates().get_template("report.html.jinja")
    styles = inline_assets(("report.css",), "report.js")
    return str(template.render(page=page, register_table=register_table, texts=texts, **styles))


def check_runs(
    records: Sequence[RunRecord], budget: Budget | None, against: str | Path | None, *, seed: int = 0
) -> list[Check | None]:
    """Decide a gate on each run but the reference; without one, on runs that ended as soon as theirs was decided."""
    if budget is None and against is None:
        return [None if record.about.stopped_early is None else check_run(record) for record in records]
    reference = None if against is None else RunRecord.read(against)
    return [
        None
        if reference is not None and record.folder.resolve() == reference.folder.resolve()
        else check_run(record, reference, budget, seed=seed)
        for record in records
    ]


def write_report(config: ReportConfig) -> Path:
    """Write the report on runs of one benchmark, and what is asked for beside it.

    Raises:
        DataError: if a run is not finished, or they are not runs of one benchmark on one ground truth.
    """
    folders = [config.runs] if isinstance(config.runs, str | Path) else list(config.runs)
    if not folders:
        raise BadValue("a report needs at least one run folder")
    templates()  # better to fail now than after the work
    budget, out = read_budget(config.budget), Path(config.out)
    records = [RunRecord.read(folder) for folder in folders]
    checks = check_runs(records, budget, config.against, seed=config.seed)
    analyses, advance = analyse_for_report(records, draws=config.draws, seed=config.seed, progress=config.progress)
    runs_in_order = map(ReportedRun, count(), run_names(records), analyses, checks)
    page = compose(Report(tuple(runs_in_order), advance))
    write_text(out, [render(page)])
    if config.csv is not None:
        write_text(Path(config.csv), [cells_table(analyses).csv()])
    if config.latex is not None:
        write_paper_tables(analyses, Path(config.latex), intervals=config.latex_intervals)
    if config.figures is not None:
        for figure in page.figures:
            save_drawing(figure.drawing, Path(config.figures), figure.name)
    return out
