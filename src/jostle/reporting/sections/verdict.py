"""The verdict on each run, and its three numbers."""

from __future__ import annotations

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.comparison import chance_of
from jostle.evaluation.results.pm_k import object_findings, offset_errors
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis
from jostle.reporting.analysis.verdict import between, comparison_verdict, percent, verdict_of
from jostle.reporting.html.blocks import Article, Number, Numbers, Strong, Text
from jostle.reporting.html.section import Report, ReportedRun, Section, section


@section("verdict", after="", title="Verdict", short="")
def verdict(report: Report) -> Section:
    """Say how robust each run is, and how they compare."""
    first = report.names[0]
    summary = " ".join(comparison_verdict(found, first, run.name) for run, found in report.comparisons)
    look = "run-verdict" if summary else "verdict"
    return Section(
        Text(summary, "verdict") if summary else None,
        *(
            Article(
                "head",
                report.heading_of(run),
                Text(verdict_of(run.analysis, run.name), look),
                headline_numbers(run.analysis),
                _coverage(run),
            )
            for run in report.runs
        ),
    )


def headline_numbers(analysis: RunAnalysis) -> Numbers:
    """Return clean, corrupted, and what is left; for pm-k anchors, their worst neighbours, and the drop."""
    offsets, objects = offset_errors(analysis.record), object_findings(analysis.record)
    level = chance_of(analysis).text
    chance = f", {level}" if level else ""
    if objects and not analysis.counted:
        boxes = objects[0].score
        return Numbers(
            (
                _number("mAP on anchors", Estimate(boxes.mean_ap, boxes.mean_ap_interval)),
                _number(f"pm-{boxes.k} mAP", Estimate(boxes.pm_k, boxes.pm_k_interval)),
                _number("drop, in points", Estimate(objects[0].drop)),
            )
        )
    if offsets and not analysis.counted:
        own = offsets[0]
        return Numbers(
            (
                _number(f"accuracy on anchors{chance}", Estimate(own.accuracy, own.accuracy_interval)),
                _number(f"pm-{own.k}", Estimate(own.pm_k, own.pm_k_interval)),
                _number("drop, in points", Estimate(own.drop)),
            )
        )
    metric = analysis.record.scores.metric
    return Numbers(
        (
            _number(f"clean {metric}{chance}", analysis.of(CLEAN)),
            _number(f"corrupted {metric}", analysis.corrupted()),
            _number("relative robustness", analysis.relative()),
        )
    )


def _number(label: str, found: Estimate) -> Number:
    return Number(label, percent(found.value), between(found))


def _coverage(run: ReportedRun) -> Text:
    """Say how many videos and cells the numbers are over, and whether that is all there are."""
    coverage, counted = run.record.scores.coverage, run.record.scores.counted
    text = f"{coverage}, {counted.cells} of {counted.of} cells" if counted.of else str(coverage)
    if len(run.analysis.videos) < coverage.videos:
        text += f"; compared on the {len(run.analysis.videos)} that all runs have"
    if coverage.whole and counted.cells == counted.of:
        return Text(text, "coverage")
    return Text((f"{text} ", Strong("not complete")), "coverage partial")
