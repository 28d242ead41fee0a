"""From findings to the parts of a page: figures, tables and words of one report."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.corruptions.engine.corruption import corruptions
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.metadata import Content, Step
from jostle.reporting.analysis.cell_tables import comparison_table, confusion_table, drops_table, errors_table
from jostle.reporting.analysis.comparison import compared
from jostle.reporting.analysis.confusion import confusion_of
from jostle.reporting.analysis.drops import class_drops, video_drops
from jostle.reporting.analysis.error_profile import ErrorProfile, Side, error_profile
from jostle.reporting.analysis.grid import Grid, grid_of, short_name
from jostle.reporting.analysis.objects import object_findings, objects_table
from jostle.reporting.analysis.offsets import OffsetErrors, offset_errors
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.run_analysis import Survey
from jostle.reporting.analysis.tables import Table
from jostle.reporting.analysis.verdict import (
    between,
    comparison_verdict,
    mending_said,
    percent,
    verdict_of,
    windows_said,
    work_said,
)
from jostle.reporting.html.charts import (
    MOST_CLASSES,
    Curve,
    Square,
    draw_classes,
    draw_confusion,
    draw_curves,
    draw_differences,
    draw_heat_map,
)
from jostle.reporting.html.contents import Detail, Figure, Figures, Head, Headline, Making, Pair
from jostle.reporting.html.error_charts import draw_buckets, draw_impact, draw_offsets, draw_profile

LISTED = 50  # rows of the longer tables
HURT = 5  # classes and videos in the detail of a cell
WIDE, NARROW = 780, 460  # of drawings that stand alone, and beside others
MOST_CONFUSED = 40  # classes that a matrix can show


def head_of(found: Survey, name: str) -> Head:
    """The verdict on a run and its three numbers."""
    scores = found.record.scores
    coverage, counted = scores.coverage, scores.counted
    offsets, objects = offset_errors(found.record), object_findings(found.record)
    if objects and not found.counted:
        first = objects[0]
        numbers = (
            Headline("mAP on anchors", Estimate(first.score.mean_ap, first.score.mean_ap_interval)),
            Headline(f"pm-{first.score.k} mAP", Estimate(first.score.pm_k, first.score.pm_k_interval)),
            Headline("drop, in points", Estimate(first.drop)),
        )
    elif offsets and not found.counted:
        own = offsets[0]
        numbers = (
            Headline("accuracy on anchors", Estimate(own.accuracy, own.accuracy_interval)),
            Headline(f"pm-{own.k}", Estimate(own.pm_k, own.pm_k_interval)),
            Headline("drop, in points", Estimate(own.drop)),
        )
    else:
        metric = scores.metric
        numbers = (
            Headline(f"clean {metric}", found.of(CLEAN)),
            Headline(f"corrupted {metric}", found.corrupted()),
            Headline("relative robustness", found.relative()),
        )
    cells = f", {counted.cells} of {counted.of} cells" if counted.of else ""
    said = f"{coverage}{cells}"
    if len(found.videos) < coverage.videos:
        said += f"; compared on the {len(found.videos)} that all runs have"
    whole = coverage.whole and counted.cells == counted.of
    return Head(name, verdict_of(found, name), numbers, said, whole)


def map_of(found: Survey, name: str, run: int) -> tuple[Figure | None, list[Detail]]:
    """The map of cells of a run, and the detail behind every square."""
    grid = grid_of(found.cells, found.counted)
    if not grid.rows:
        return None, []
    cells = [cell for row in grid.rows for _, cell in sorted(row.cells.items(), key=lambda item: item[0] or 0)]
    address = {cell: f"r{run}c{i}" for i, cell in enumerate(cells)}
    squares = {}
    for cell in cells:
        own, left = found.of(cell), found.relative([cell]).value
        hint = f"{short_name(cell)}: {percent(own.value)} {between(own)}, {percent(left)} % of clean"
        squares[cell] = Square(own.value, left, address[cell], hint)
    metric = found.record.scores.metric
    svg = draw_heat_map(grid, squares, f"{metric} of {name} by corruption and severity")
    figure = Figure(f"map-{run}", name, svg, f"{metric} in each cell; colour is what is lost of the clean score.")
    details = []
    for i, cell in enumerate(cells):
        before = address[cells[i - 1]] if i else ""
        after = address[cells[i + 1]] if i + 1 < len(cells) else ""
        details.append(_detail(found, cell, name, address[cell], (before, after), f"map-{run}"))
    return figure, details


def _detail(found: Survey, cell: str, name: str, address: str, ends: tuple[str, str], back: str) -> Detail:
    record = found.record
    own, left, clean = found.of(cell), found.relative([cell]), found.of(CLEAN)
    metric = record.scores.metric
    facts = [
        (metric, f"{percent(own.value)} {between(own)}"),
        ("clean", f"{percent(clean.value)} {between(clean)}"),
        ("of clean", f"{percent(left.value)} % {between(left)}"),
        ("in the means", "yes" if cell in found.counted else "no"),
    ]
    profile = error_profile(record, [cell])
    drawing = None
    if profile is not None and profile.corrupted is not None:
        svg = draw_profile([("clean", profile.clean), ("here", profile.corrupted)], NARROW)
        drawing = Figure(f"errors-{address}", "Kinds of error", svg)
    by_class, by_video = class_drops(found, [cell])[:HURT], video_drops(found, [cell])[:HURT]
    return Detail(
        address,
        f"{short_name(cell)}, {name}",
        tuple(facts),
        tuple(_step(step) for one in record.about.content.cells if one.cell == cell for step in one.done),
        drawing,
        drops_table("Classes hurt most", "class", by_class) if by_class else None,
        drops_table("Videos hurt most", "video", by_video) if by_video else None,
        *ends,
        back,
    )


def _step(step: Step) -> str:
    known = step.corruption in corruptions
    said = corruptions[step.corruption].summary.replace("`", "") if known else ""
    options = "".join(f", {key} {value}" for key, value in step.options.items())
    return f"{step.spec}: {said} Strength {step.value}{options}; placed {step.placement}."


def curves_of(surveys: Sequence[Survey], names: Sequence[str]) -> Figure | None:
    """Scores over severity, a chart a corruption; only corruptions with more than one severity have a curve."""
    grids = [grid_of(found.cells, found.counted) for found in surveys]
    rows = dict.fromkeys(row.corruption for grid in grids for row in grid.rows if len(row.cells) > 1)
    facets = {}
    for corruption in rows:
        curves = [
            _curve(i, found, grid, corruption) for i, (found, grid) in enumerate(zip(surveys, grids, strict=True))
        ]
        facets[short_name(corruption)] = [curve for curve in curves if curve is not None]
    if not facets:
        return None
    metric = surveys[0].record.scores.metric
    svg = draw_curves(facets, names, metric)
    return Figure("severity", "", svg, f"{metric}; bands: 95 % bootstrap over videos.")


def _curve(run: int, found: Survey, grid: Grid, corruption: str) -> Curve | None:
    row = next((row for row in grid.rows if row.corruption == corruption), None)
    if row is None:
        return None
    points = {severity: found.of(cell) for severity, cell in row.cells.items() if severity is not None}
    return Curve(run, {0: found.of(CLEAN), **points})


def classes_of(found: Survey, name: str, run: int, alone: bool) -> tuple[Figure, Table] | None:
    """What each class loses; drawn narrower where the run is not alone."""
    drops = class_drops(found)
    if not drops:
        return None
    metric = "AP" if found.record.task == "detection" else "accuracy"
    note = "" if len(drops) <= MOST_CLASSES else f"The {MOST_CLASSES} of {len(drops)} classes that lose most."
    figure = Figure(f"classes-{run}", name, draw_classes(drops, metric, WIDE if alone else NARROW), note)
    return figure, drops_table(f"Classes, {name}", "class", drops, worst=True)


def errors_of(surveys: Sequence[Survey], names: Sequence[str]) -> tuple[list[Figure], list[Table]]:
    """Why detectors fail: all runs in one chart of kinds and one of costs, then who suffers, run by run."""
    told = [(name, found) for name, one in zip(names, surveys, strict=True) if (found := error_profile(one.record))]
    if not told:
        return [], []
    alone = len(surveys) == 1
    by_run = {name: _sides(found, "" if alone else f"{name}, ") for name, found in told}
    every = [side for sides in by_run.values() for side in sides]
    drawn = [
        Figure("profile", "What the surest detections are", draw_profile(every)),
        Figure("impact", "What each kind of error costs", draw_impact(every)),
    ]
    tables = []
    for run, (name, found) in enumerate(told):
        of = "" if alone else f", {name}"
        for characteristic, buckets in found.clean.sensitivity.items():
            if sum(value is not None for value in buckets.values()) < 2:
                continue  # one bucket is the whole
            for missed, kind in ((False, "sensitivity"), (True, "missed")):
                svg = draw_buckets(by_run[name], characteristic, missed)
                title = f"{'Missed' if missed else 'Sensitivity'} by {characteristic}{of}"
                drawn.append(Figure(f"{kind}-{characteristic}-{run}", title, svg))
        table = errors_table(found)
        tables.append(Table(f"{table.title}, {name}", table.columns, table.rows))
    return drawn, tables


def _sides(found: ErrorProfile, of: str) -> list[tuple[str, Side]]:
    sides = [(f"{of}clean", found.clean)]
    if found.corrupted is not None:
        sides.append((f"{of}corrupted" if of else f"corrupted, mean of {len(found.cells)} cells", found.corrupted))
    return sides


def pair_of(one: Survey, other: Survey, names: tuple[str, str], run: int) -> Pair:
    """A run against the first."""
    found = compared(one, other)
    note = "Points with paired 95 % intervals; an open mark: 0 lies inside."
    figure = Figure(f"differences-{run}", "", draw_differences(found, *names), note)
    title = f"{names[1]} against {names[0]}"
    return Pair(title, comparison_verdict(found, *names), figure, comparison_table(found, *names))


def confusions_of(found: Survey, name: str, run: int) -> tuple[Figure | None, Table] | None:
    """The confusions that corruption brings; for recognition."""
    if found.record.task != "recognition":
        return None
    confusion = confusion_of(found.record)
    if confusion is None:
        return None
    table = confusion_table(confusion)
    table = Table(f"{table.title}, {name}", table.columns, table.rows)
    if len(confusion.classes) > MOST_CONFUSED:
        return None, table
    growth = confusion.corrupted - confusion.clean
    svg = draw_confusion(confusion.classes, growth, f"What {name} takes for what, corrupted less clean")
    note = "Rows are true classes, columns what they are taken for; dark: worse under corruption, blue: better."
    return Figure(f"confusion-{run}", name, svg, note), table


def offsets_of(surveys: Sequence[Survey], names: Sequence[str]) -> tuple[Figure, list[tuple[str, OffsetErrors]]] | None:
    """pm-k's error by distance from the anchor, clean; the table has every cell."""
    told = [(name, one) for found, name in zip(surveys, names, strict=True) for one in offset_errors(found.record)]
    clean = [(name, one) for name, one in told if one.cell == CLEAN]
    if not clean:
        return None
    if len(surveys) == 1 and len(told) > 1:
        worst = min(told[1:], key=lambda pair: pair[1].pm_k)[1]
        clean = [("clean", clean[0][1]), (short_name(worst.cell), worst)]
    return Figure("offsets", "", draw_offsets(clean), "A frame is wrong if its best class is none of its labels."), told


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def objects_of(surveys: Sequence[Survey], names: Sequence[str]) -> Table | None:
    """What object detectors are worth, with the right class and with any; None for other tasks."""
    rows = [(name, one) for found, name in zip(surveys, names, strict=True) for one in object_findings(found.record)]
    return objects_table(rows) if rows else None


def making_of(record: RunRecord, name: str) -> Making:
    """Where the numbers of a run come from."""
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
    if windows := windows_said(about):
        facts.append(("windows", windows))
    if about.shown:
        facts.append(("shown to the model", ", ".join(f"{key} {_plain(value)}" for key, value in about.shown.items())))
    if mending := mending_said(about.mend, about.mend_weights):
        facts.append(("mended", mending))
    if about.precision != "float32":
        facts.append(("precision", about.precision))
    if about.compiled:
        facts.append(("networks", "compiled"))
    facts.append(("scored by", _rules(about.content)))
    facts.append(("seed", str(about.seed)))
    facts.append(("versions", ", ".join(f"{key} {value}" for key, value in about.versions.items())))
    if record.work:
        facts.append(("time", "; ".join(work_said(one) for one in record.work)))
    if about.parts:
        facts.append(("not jostle's own", "; ".join(f"{one}: {one.way}" for one in about.parts)))
    if about.missing:
        facts.append(("without a file", f"{len(about.missing)}, as {about.missing[0]}"))
    failures = tuple((one.video, one.message) for one in record.failures)
    return Making(name, tuple((what, str(value)) for what, value in facts), failures)


def _rules(content: Content) -> str:
    said = content.metric
    if content.protocol:
        said += f", {content.protocol} at tIoU {', '.join(f'{tiou:g}' for tiou in content.tious)}"
    return said + (f", k {content.k}" if content.k else "")


def figures(parts: Sequence[Figure | None]) -> Figures:
    """Those that are there."""
    return Figures(tuple(part for part in parts if part is not None))
