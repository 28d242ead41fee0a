"""The report: findings composed into a page, and the page written as one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from jostle.core.tables import Table
from jostle.errors import BadValue
from jostle.evaluation.results.comparison import analyse_runs
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import DRAWS, RunAnalysis, losing, video_drops
from jostle.gate.budget import Budget
from jostle.gate.verdict import Check, check_run
from jostle.io.files.atomic import write_text
from jostle.reporting.analysis.cell_tables import cells_table, drops_table, offsets_table
from jostle.reporting.analysis.labels import benchmark_title, group_word, run_names
from jostle.reporting.analysis.literature import literature_on
from jostle.reporting.analysis.paper_tables import write_paper_tables
from jostle.reporting.html import composition
from jostle.reporting.html.contents import Page
from jostle.reporting.html.templates import dressed, templates
from jostle.reporting.html.worst_videos import Album, remark_on, worst_of

WORST = {1: 6, 2: 4}  # worst videos displayed of each run, by number of runs
WORST_OF_MANY = 2
Progress = Callable[[int, int], None]


def analyse_for_report(
    records: Sequence[RunRecord], *, draws: int = DRAWS, seed: int = 0, progress: Progress | None = None
) -> tuple[list[RunAnalysis], Progress]:
    """Analyse runs; return the analyses and a progress callback for their worst videos."""
    cells = sum(len(record.cells) for record in records)
    videos = len(records) * WORST.get(len(records), WORST_OF_MANY)

    def report_cell(done: int, _: int) -> None:
        if progress is not None:
            progress(done, cells + videos)

    analyses = analyse_runs(records, draws=draws, seed=seed, progress=report_cell)
    return analyses, lambda done, _: report_cell(cells + done, 0)


def compose(
    analyses: Sequence[RunAnalysis], progress: Progress | None = None, checks: Sequence[Check | None] = ()
) -> Page:
    """A page about runs of one benchmark; `progress` is called with (videos pictured, videos in all).

    Args:
        checks: decisions of a gate on each run, None for one without.
    """
    records = [analysis.record for analysis in analyses]
    names = run_names(records)
    runs = list(zip(range(len(analyses)), analyses, names, strict=True))
    maps = [composition.map_of(analysis, name, i) for i, analysis, name in runs]
    classes = [
        made
        for made in (composition.classes_of(analysis, name, i, len(runs) == 1) for i, analysis, name in runs)
        if made
    ]
    errors, error_tables = composition.errors_of(analyses, names)
    confusions = [made for made in (composition.confusions_of(analysis, name, i) for i, analysis, name in runs) if made]
    offsets = composition.offsets_of(analyses, names)
    album, count = Album(), WORST.get(len(runs), WORST_OF_MANY)
    pictured = 0

    def advance() -> None:
        nonlocal pictured
        pictured += 1
        if progress is not None:
            progress(pictured, count * len(runs))

    worst = [one for i, analysis, name in runs for one in worst_of(analysis, name, i, count, album, advance)]
    pairs = [composition.pair_of(analyses[0], analysis, (names[0], name), i) for i, analysis, name in runs[1:]]
    metric = str(records[0].scores.metric)
    return Page(
        title=f"{benchmark_title(records[0])}: {', '.join(names)}",
        task=records[0].task,
        group=group_word(records[0].task),
        benchmark=benchmark_title(records[0]),
        metric=metric,
        heads=tuple(composition.head_of(analysis, name) for _, analysis, name in runs),
        summary=" ".join(pair.verdict for pair in pairs),
        maps=composition.figures([figure for figure, _ in maps]),
        details=tuple(detail for _, details in maps for detail in details),
        cells=cells_table(analyses),
        curves=composition.curves_of(analyses, names),
        classes=composition.figures([figure for figure, _ in classes]),
        class_tables=tuple(table for _, table in classes),
        errors=composition.figures(errors),
        error_tables=tuple(error_tables),
        worst=tuple(worst),
        worst_note=remark_on(album, worst, moments=records[0].task == "moments"),
        video_tables=tuple(_videos(analysis, name) for _, analysis, name in runs if analysis.counted),
        pairs=tuple(pairs),
        confusions=composition.figures([figure for figure, _ in confusions]),
        confusion_tables=tuple(table for _, table in confusions),
        offsets=offsets and offsets[0],
        offset_table=offsets and offsets_table(offsets[1]),
        objects=composition.objects_of(analyses, names),
        language=composition.language_of(analyses, names),
        literature=literature_on(records),
        making=tuple(composition.making_of(analysis.record, name) for _, analysis, name in runs),
        probes=composition.probes_of(records, names),
        remarks=_remarks(analyses),
        gates=tuple(composition.gate_of(check, name) for check, name in zip(checks, names, strict=False) if check),
    )


def _videos(analysis: RunAnalysis, name: str) -> Table:
    drops = losing(video_drops(analysis))
    more = f", the {composition.LISTED} of {len(drops)} that lose most" if len(drops) > composition.LISTED else ""
    return drops_table(f"Videos, {name}{more}", "video", drops[: composition.LISTED], worst=True)


def _remarks(analyses: Sequence[RunAnalysis]) -> tuple[str, ...]:
    remarks = []
    if analyses[0].interval_text:
        paired = " All cells and all runs meet the same draws, so that differences are paired." * (len(analyses) > 1)
        remarks.append(analyses[0].interval_text + paired)
    if analyses[0].record.task == "detection":
        remarks.append("The score of a single video is its own mAP over the classes it has.")
    return tuple(remarks)


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
    styles = dressed(("heat.css", "report.css"), "report.js")
    return str(template.render(page=page, register_table=register_table, texts=texts, **styles))


def check_runs(
    records: Sequence[RunRecord], budget: Budget | None, against: Path | None, *, seed: int = 0
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


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    budget: Budget | None = None,
    against: Path | None = None,
    csv: Path | None = None,
    latex: Path | None = None,
    latex_intervals: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write the report on runs of one benchmark.

    Args:
        budget: conditions of a gate, whose decisions on each run become a section of the page.
        against: the reference run of such a gate.
        csv: a file for the table of all cells as well.
        latex: a folder for tables in the layouts of papers as well.
        latex_intervals: whether those have intervals.
        draws: of the videos, for the intervals.
        progress: called with (steps done, steps in all).

    Raises:
        DataError: if a run is not finished, or they are not runs of one benchmark on one ground truth.
    """
    if not runs:
        raise BadValue("a report needs at least one run folder")
    templates()  # better to fail now than after the work
    records = [RunRecord.read(path) for path in runs]
    checks = check_runs(records, budget, against, seed=seed)
    analyses, callback = analyse_for_report(records, draws=draws, seed=seed, progress=progress)
    page = render(compose(analyses, callback, checks))
    write_text(out, [page])
    if csv is not None:
        write_text(csv, [cells_table(analyses).csv()])
    if latex is not None:
        write_paper_tables(analyses, latex, intervals=latex_intervals)
    return out
