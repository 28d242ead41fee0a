"""From findings to the parts of a page: figures, tables and words of one report."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.tables import Table
from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.evaluation.probing.probe import Probe
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.comparison import chance_of, compared
from jostle.evaluation.results.pm_k import OffsetErrors, object_findings, objects_table, offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis, class_drops, losing, video_drops
from jostle.evaluation.run_folder.metadata import Content, Step
from jostle.gate.verdict import Check
from jostle.metrics.moments import RANGES
from jostle.reporting.analysis.breaking_points import (
    FrailItem,
    breaking_comparison_table,
    breaking_table,
    class_breaking_table,
    describe_probe,
    frailest_items,
    lost_shares,
    probe_of,
)
from jostle.reporting.analysis.cell_tables import comparison_table, confusion_table, drops_table, errors_table
from jostle.reporting.analysis.error_profile import ErrorProfile, ProfileSide, confusion_of, error_profile
from jostle.reporting.analysis.labels import Grid, grid_of, group_word, plural, short_name
from jostle.reporting.analysis.language import describe_baselines, language_tables
from jostle.reporting.analysis.verdict import (
    between,
    comparison_verdict,
    describe_adaptation,
    describe_mending,
    describe_windows,
    describe_work,
    percent,
    verdict_of,
)
from jostle.reporting.html import charts
from jostle.reporting.html.contents import (
    Detail,
    Figure,
    Figures,
    GateResult,
    Headline,
    LanguageSection,
    Making,
    Pair,
    ProbeSection,
    RunHeader,
)

LISTED = 50  # rows of the longer tables
HURT = 5  # classes and videos in the detail of a cell
WIDE, NARROW = 780, 460  # of drawings that stand alone, and beside others
FRAIL = 6  # items whose frailty curve is drawn
MOST_CONFUSED = 40  # classes that a matrix can show


def head_of(analysis: RunAnalysis, name: str) -> RunHeader:
    """The verdict on a run and its three numbers."""
    scores = analysis.record.scores
    coverage, counted = scores.coverage, scores.counted
    offsets, objects = offset_errors(analysis.record), object_findings(analysis.record)
    level = chance_of(analysis).text
    chance = f", {level}" if level else ""
    if objects and not analysis.counted:
        first = objects[0]
        numbers = (
            Headline("mAP on anchors", Estimate(first.score.mean_ap, first.score.mean_ap_interval)),
            Headline(f"pm-{first.score.k} mAP", Estimate(first.score.pm_k, first.score.pm_k_interval)),
            Headline("drop, in points", Estimate(first.drop)),
        )
    elif offsets and not analysis.counted:
        own = offsets[0]
        numbers = (
            Headline(f"accuracy on anchors{chance}", Estimate(own.accuracy, own.accuracy_interval)),
            Headline(f"pm-{own.k}", Estimate(own.pm_k, own.pm_k_interval)),
            Headline("drop, in points", Estimate(own.drop)),
        )
    else:
        metric = scores.metric
        numbers = (
            Headline(f"clean {metric}{chance}", analysis.of(CLEAN)),
            Headline(f"corrupted {metric}", analysis.corrupted()),
            Headline("relative robustness", analysis.relative()),
        )
    cells = f", {counted.cells} of {counted.of} cells" if counted.of else ""
    coverage_text = f"{coverage}{cells}"
    if len(analysis.videos) < coverage.videos:
        coverage_text += f"; compared on the {len(analysis.videos)} that all runs have"
    whole = coverage.whole and counted.cells == counted.of
    return RunHeader(name, verdict_of(analysis, name), numbers, coverage_text, whole)


def map_of(analysis: RunAnalysis, name: str, run: int) -> tuple[Figure | None, list[Detail]]:
    """The map of cells of a run, and the detail behind every square."""
    grid = grid_of(analysis.cells, analysis.counted)
    if not grid.rows:
        return None, []
    cells = [cell for row in grid.rows for _, cell in sorted(row.cells.items(), key=lambda item: item[0] or 0)]
    address = {cell: f"r{run}c{i}" for i, cell in enumerate(cells)}
    squares = {}
    for cell in cells:
        own, left = analysis.of(cell), analysis.relative([cell]).value
        hint = f"{short_name(cell)}: {percent(own.value)} {between(own)}, {percent(left)} % of clean"
        squares[cell] = charts.Square(own.value, left, address[cell], hint)
    metric = analysis.record.scores.metric
    svg = charts.draw_heat_map(grid, squares, f"{metric} of {name} by corruption and severity")
    figure = Figure(f"map-{run}", name, svg, f"{metric} in each cell; colour is what is lost of the clean score.")
    details = []
    for i, cell in enumerate(cells):
        before = address[cells[i - 1]] if i else ""
        after = address[cells[i + 1]] if i + 1 < len(cells) else ""
        details.append(_detail(analysis, cell, name, address[cell], (before, after), f"map-{run}"))
    return figure, details


def _detail(analysis: RunAnalysis, cell: str, name: str, address: str, ends: tuple[str, str], back: str) -> Detail:
    record = analysis.record
    own, left, clean = analysis.of(cell), analysis.relative([cell]), analysis.of(CLEAN)
    metric = record.scores.metric
    facts = [
        (metric, f"{percent(own.value)} {between(own)}"),
        ("clean", f"{percent(clean.value)} {between(clean)}"),
        ("of clean", f"{percent(left.value)} % {between(left)}"),
        ("in the means", "yes" if cell in analysis.counted else "no"),
    ]
    profile = error_profile(record, [cell])
    drawing = None
    if profile is not None and profile.corrupted is not None:
        svg = charts.draw_profile([("clean", profile.clean), ("here", profile.corrupted)], NARROW)
        drawing = Figure(f"errors-{address}", "Kinds of error", svg)
    by_class, by_video = (losing(drops(analysis, [cell]))[:HURT] for drops in (class_drops, video_drops))
    group = group_word(record.task)
    return Detail(
        address,
        f"{short_name(cell)}, {name}",
        tuple(facts),
        tuple(_step(step) for one in record.about.content.cells if one.cell == cell for step in one.done),
        drawing,
        drops_table(f"{plural(group)} with the largest drop", group, by_class) if by_class else None,
        drops_table("Videos with the largest drop", "video", by_video) if by_video else None,
        *ends,
        back,
    )


def _step(step: Step) -> str:
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


def curves_of(analyses: Sequence[RunAnalysis], names: Sequence[str]) -> Figure | None:
    """Scores over severity, a chart a corruption; only corruptions with more than one severity have a curve."""
    grids = [grid_of(analysis.cells, analysis.counted) for analysis in analyses]
    rows = dict.fromkeys(row.corruption for grid in grids for row in grid.rows if len(row.cells) > 1)
    facets = {}
    for corruption in rows:
        curves = [
            _curve(i, analysis, grid, corruption)
            for i, (analysis, grid) in enumerate(zip(analyses, grids, strict=True))
        ]
        facets[short_name(corruption)] = [curve for curve in curves if curve is not None]
    if not facets:
        return None
    metric = analyses[0].record.scores.metric
    svg = charts.draw_curves(facets, names, metric)
    bands = f" Bands: {analyses[0].interval_text[:1].lower()}{analyses[0].interval_text[1:]}"
    return Figure("severity", "", svg, f"{metric}.{bands if analyses[0].interval_text else ''}")


def _curve(run: int, analysis: RunAnalysis, grid: Grid, corruption: str) -> charts.Curve | None:
    row = next((row for row in grid.rows if row.corruption == corruption), None)
    if row is None:
        return None
    points = {severity: analysis.of(cell) for severity, cell in row.cells.items() if severity is not None}
    return charts.Curve(run, {0: analysis.of(CLEAN), **points})


def classes_of(analysis: RunAnalysis, name: str, run: int, alone: bool) -> tuple[Figure, Table] | None:
    """Draw the score drop of each class; narrower where the run is not alone."""
    drops = class_drops(analysis)
    if not drops:
        return None
    task = analysis.record.task
    metric = {"detection": "AP", "moments": analysis.record.scores.metric}.get(task, "accuracy")
    group = group_word(task)
    note = (
        ""
        if len(drops) <= charts.MOST_CLASSES
        else f"The {charts.MOST_CLASSES} of {len(drops)} {plural(group).lower()} that lose most."
    )
    if task == "moments":
        ends = ", ".join(f"{length} up to {high:g} s" for length, (_, high) in RANGES.items())
        note = f"By the length of the true windows: {ends}. {note}".strip()
    drawing = charts.draw_classes(drops, metric, WIDE if alone else NARROW, group)
    return Figure(f"classes-{run}", name, drawing, note), drops_table(
        f"{plural(group)}, {name}", group, drops, worst=True
    )


def errors_of(analyses: Sequence[RunAnalysis], names: Sequence[str]) -> tuple[list[Figure], list[Table]]:
    """Why detectors fail: all runs in one chart of kinds and one of costs, then who suffers, run by run."""
    runs_with = [
        (name, profile) for name, one in zip(names, analyses, strict=True) if (profile := error_profile(one.record))
    ]
    if not runs_with:
        return [], []
    alone = len(analyses) == 1
    by_run = {name: _sides(profile, "" if alone else f"{name}, ") for name, profile in runs_with}
    every = [side for sides in by_run.values() for side in sides]
    drawn = [
        Figure("profile", "Kinds of the most confident detections", charts.draw_profile(every)),
        Figure("impact", "What each kind of error costs", charts.draw_impact(every)),
    ]
    tables = []
    for run, (name, profile) in enumerate(runs_with):
        of = "" if alone else f", {name}"
        for characteristic, buckets in profile.clean.sensitivity.items():
            if sum(value is not None for value in buckets.values()) < 2:
                continue  # one bucket is the whole
            for missed, kind in ((False, "sensitivity"), (True, "missed")):
                svg = charts.draw_buckets(by_run[name], characteristic, missed)
                title = f"{'Missed' if missed else 'Sensitivity'} by {characteristic}{of}"
                drawn.append(Figure(f"{kind}-{characteristic}-{run}", title, svg))
        table = errors_table(profile)
        tables.append(Table(f"{table.title}, {name}", table.columns, table.rows))
    return drawn, tables


def _sides(profile: ErrorProfile, of: str) -> list[tuple[str, ProfileSide]]:
    sides = [(f"{of}clean", profile.clean)]
    if profile.corrupted is not None:
        sides.append((f"{of}corrupted" if of else f"corrupted, mean of {len(profile.cells)} cells", profile.corrupted))
    return sides


def pair_of(one: RunAnalysis, other: RunAnalysis, names: tuple[str, str], run: int) -> Pair:
    """A run against the first."""
    comparison = compared(one, other)
    note = "Points with paired 95 % intervals; an open mark: 0 lies inside."
    figure = Figure(f"differences-{run}", "", charts.draw_differences(comparison, *names), note)
    title = f"{names[1]} against {names[0]}"
    return Pair(title, comparison_verdict(comparison, *names), figure, comparison_table(comparison, *names))


def confusions_of(analysis: RunAnalysis, name: str, run: int) -> tuple[Figure | None, Table] | None:
    """The confusions that corruption brings; for recognition."""
    if analysis.record.task != "recognition":
        return None
    confusion = confusion_of(analysis.record)
    if confusion is None:
        return None
    table = confusion_table(confusion)
    table = Table(f"{table.title}, {name}", table.columns, table.rows)
    if len(confusion.classes) > MOST_CONFUSED:
        return None, table
    growth = confusion.corrupted - confusion.clean
    svg = charts.draw_confusion(confusion.classes, growth, f"What {name} takes for what, corrupted less clean")
    note = "Rows are true classes, columns what they are taken for; orange to red: worse when corrupted, blue: better."
    return Figure(f"confusion-{run}", name, svg, note), table


def offsets_of(
    analyses: Sequence[RunAnalysis], names: Sequence[str]
) -> tuple[Figure, list[tuple[str, OffsetErrors]]] | None:
    """pm-k's error by distance from the anchor, clean; the table has every cell."""
    runs_with = [
        (name, one) for analysis, name in zip(analyses, names, strict=True) for one in offset_errors(analysis.record)
    ]
    clean = [(name, one) for name, one in runs_with if one.cell == CLEAN]
    if not clean:
        return None
    if len(analyses) == 1 and len(runs_with) > 1:
        worst = min(runs_with[1:], key=lambda pair: pair[1].pm_k)[1]
        clean = [("clean", clean[0][1]), (short_name(worst.cell), worst)]
    return Figure(
        "offsets", "", charts.draw_offsets(clean), "A frame is wrong if its best class is none of its labels."
    ), runs_with


def describe_input(settings: Mapping[str, Any]) -> str:
    """Say in words how frames become the input of a model; settings without a value are left out.

    >>> describe_input({"input": {"frames": 16, "mean": [0.5, 0.5], "rate": None}, "classes": "by name"})
    'frames 16, mean 0.5 0.5; classes by name'
    """
    return "; ".join(_plain(key, value) for key, value in settings.items() if value is not None)


def _plain(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(_plain(name, one) for name, one in value.items() if one is not None)
        return inner if key == "input" else f"{key.replace('_', ' ')}: {inner}"
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"{key.replace('_', ' ')} {text}"


def objects_of(analyses: Sequence[RunAnalysis], names: Sequence[str]) -> Table | None:
    """Compose scores of object detectors, with the right class and with any; None for other tasks."""
    rows = [
        (name, one) for analysis, name in zip(analyses, names, strict=True) for one in object_findings(analysis.record)
    ]
    return objects_table(rows) if rows else None


def language_of(analyses: Sequence[RunAnalysis], names: Sequence[str]) -> LanguageSection | None:
    """Compose the answers or windows of runs of questions and moments; None for other tasks."""
    records = [analysis.record for analysis in analyses]
    tables = language_tables(records, names)
    if not tables:
        return None
    several = len(records) > 1
    summaries = [
        f"{name}: {text}" if several else text
        for name, record in zip(names, records, strict=True)
        if (text := describe_baselines(record))
    ]
    if records[0].task == "questions":
        title = "Answers"
        remark = (
            "Resist rate: share of the answers right on clean video that stay right. Corrective flips: share of the "
            "wrong ones that become right, which noise brings as well. Temporal sensitivity: share of the answers "
            "right on clean video that change where the order of events is destroyed; high is good. An answer that no "
            "rule can read is unreadable, which is wrong, and never guessed or left out."
        )
    else:
        title = "Windows"
        remark = (
            "R@1: share of sentences whose first window overlaps a true one that much. mAP is QVHighlights' mean over "
            "overlaps of 0.5 to 0.95. A sentence without a window counts as 0."
        )
    if any(len(one.videos) < one.record.scores.coverage.videos for one in analyses):
        remark += " These tables are over all videos of each run."
    return LanguageSection(title, tuple(summaries), tuple(tables), remark)


def probes_of(records: Sequence[RunRecord], names: Sequence[str]) -> tuple[ProbeSection, ...]:
    """Compose the breaking points of those runs that were probed."""
    probes = [(record, name, probe) for record, name in zip(records, names, strict=True) if (probe := probe_of(record))]
    sections = []
    for i, (record, name, probe) in enumerate(probes):
        shares = charts.draw_lost_shares(lost_shares(probe), "Share of items lost, by number of damaged frames")
        frail = frailest_items(record, probe, FRAIL)
        first = probes[0][2]
        same = first.benchmark == probe.benchmark and bool(set(first.kinds) & set(probe.kinds))
        sections.append(
            ProbeSection(
                name,
                describe_probe(probe),
                f"An item is lost when {'there is ' if probe.loss_rule.startswith('no ') else ''}{probe.full_rule}.",
                Figure(f"lost-{i}", "Items lost, by number of damaged frames", shares),
                figures([_frailty_figure(one, probe, i, number) for number, one in enumerate(frail)]),
                breaking_table(probe, name),
                tuple(class_breaking_table(probe, kind, name) for kind in probe.kinds),
                breaking_comparison_table(first, probe, (probes[0][1], name)) if i and same else None,
            )
        )
    return tuple(sections)


def _frailty_figure(one: FrailItem, probe: Probe, run: int, number: int) -> Figure:
    point = one.point
    assert point.frames is not None
    assert point.position is not None
    title = f"{one.item.text or one.item.label or 'item'} in {point.video}, {short_name(point.kind)}"
    length = "one frame" if point.frames == 1 else f"{point.frames} frames"
    note = f"Lost to {length} from {point.position / one.fps:.2f} s on, at severity {point.severity}."
    if not point.monotone:
        note += " More damage does not always lose it."
    svg = charts.draw_frailty(one.curve, point, one.fps, one.item.score, probe.threshold)
    return Figure(f"frailty-{run}-{number}", title, svg, note)


def gate_of(check: Check, name: str) -> GateResult:
    """Compose the decisions of a gate on a run."""
    remarks = check.notes if check.against is None else (*check.notes, f"the reference run is {check.against}")
    return GateResult(name, check.decision, check.summary, check.table(), remarks)


def making_of(record: RunRecord, name: str) -> Making:
    """Compose the facts on how the numbers of a run were obtained."""
    about = record.about
    facts = [
        ("folder", str(record.folder)),
        ("benchmark", f"{about.benchmark}, version {about.content.version}"),
        ("its fingerprint", about.fingerprint),
        ("recipe", about.recipe),
        ("data set", f"{about.dataset}, {about.subset}; {about.videos} videos"),
        ("ground truth", about.truth),
        ("model", about.model),
        ("weights", f"{about.weights or 'unknown'} ({about.weights_from})"),
    ]
    if about.extractor:
        facts.append(("extractor", f"{about.extractor}, {about.extractor_weights or 'unknown'}"))
    if windows := describe_windows(about):
        facts.append(("windows", windows))
    if about.shown:
        facts.append(("shown to the model", describe_input(about.shown)))
    if mending := describe_mending(about.mend, about.mend_weights):
        facts.append(("mended", mending))
    if adaptation := describe_adaptation(about.adapt):
        facts.append(("adapted", adaptation))
    if about.precision != "float32":
        facts.append(("precision", about.precision))
    if about.compiled:
        facts.append(("networks", "compiled"))
    facts.append(("scored by", _rules(about.content)))
    facts.append(("seed", str(about.seed)))
    facts.append(("versions", ", ".join(f"{key} {value}" for key, value in about.versions.items())))
    if record.work:
        facts.append(("time", "; ".join(describe_work(one) for one in record.work)))
    if about.parts:
        facts.append(("not jostle's own", "; ".join(f"{one}: {one.way}" for one in about.parts)))
    if about.missing:
        facts.append(("without a file", f"{len(about.missing)}, as {about.missing[0]}"))
    failures = tuple((one.video, one.message) for one in record.failures)
    return Making(name, tuple((what, str(value)) for what, value in facts), failures)


def _rules(content: Content) -> str:
    text = content.metric
    if content.protocol:
        text += f", {content.protocol} at tIoU {', '.join(f'{tiou:g}' for tiou in content.tious)}"
    return text + (f", k {content.k}" if content.k else "")


def figures(parts: Sequence[Figure | None]) -> Figures:
    """Collect the figures that are present."""
    return Figures(tuple(part for part in parts if part is not None))
