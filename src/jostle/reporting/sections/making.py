"""How the numbers of each run were obtained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.metadata import Content
from jostle.reporting.analysis.verdict import describe_adaptation, describe_mending, describe_windows, describe_work
from jostle.reporting.html.blocks import Block, Facts, Heading, Items, Strong, Text
from jostle.reporting.html.section import Report, Section, section

MOST_FAILURES = 50  # that are listed


@section("making", after="published", title="How it was made")
def making(report: Report) -> Section:
    """State what was run on what, by what, and what failed."""
    blocks: list[Block | None] = [*_remarks(report)]
    for run in report.runs:
        blocks += [report.heading_of(run), Facts(facts_of(run.record), "provenance"), *_failures(run.record)]
    return Section(*blocks)


def _remarks(report: Report) -> Iterator[str]:
    if intervals := report.runs[0].analysis.interval_text:
        paired = " All cells and all runs meet the same draws, so that differences are paired."
        yield intervals if report.alone else intervals + paired
    if report.words.video_note:
        yield report.words.video_note


def facts_of(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """Return what a run is, and how it was made, as pairs for a list."""
    about = record.about
    extractor = f"{about.extractor}, {about.extractor_weights or 'unknown'}" if about.extractor else None
    facts: list[tuple[str, str | None]] = [
        ("folder", str(record.folder)),
        ("benchmark", f"{about.benchmark}, version {about.content.version}"),
        ("its fingerprint", about.fingerprint),
        ("recipe", about.recipe),
        ("data set", f"{about.dataset}, {about.subset}; {about.videos} videos"),
        ("ground truth", about.truth),
        ("model", about.model),
        ("weights", f"{about.weights or 'unknown'} ({about.weights_from})"),
        ("extractor", extractor),
        ("windows", describe_windows(about)),
        ("shown to the model", describe_input(about.shown) if about.shown else None),
        ("mended", describe_mending(about.mend, about.mend_weights)),
        ("adapted", describe_adaptation(about.adapt)),
        ("precision", about.precision if about.precision != "float32" else None),
        ("networks", "compiled" if about.compiled else None),
        ("scored by", _rules(about.content)),
        ("seed", str(about.seed)),
        ("versions", ", ".join(f"{key} {value}" for key, value in about.versions.items())),
        ("time", "; ".join(describe_work(one) for one in record.work) or None),
        ("not jostle's own", "; ".join(f"{one}: {one.way}" for one in about.parts) or None),
        ("without a file", f"{len(about.missing)}, as {about.missing[0]}" if about.missing else None),
    ]
    return tuple((what, value) for what, value in facts if value is not None)


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


def _rules(content: Content) -> str:
    text = content.metric
    if content.protocol:
        text += f", {content.protocol} at tIoU {', '.join(f'{tiou:g}' for tiou in content.tious)}"
    return text + (f", k {content.k}" if content.k else "")


def _failures(record: RunRecord) -> Iterator[Block]:
    failed = record.failures
    if not failed:
        yield Text("No video failed.", "pale")
        return
    yield Heading(f"{len(failed)} video{'s' if len(failed) > 1 else ''} could not be used", level=4)
    items = [Text((Strong(one.video), f": {one.message}")) for one in failed[:MOST_FAILURES]]
    if len(failed) > MOST_FAILURES:
        items.append(Text(f"and {len(failed) - MOST_FAILURES} more, in failures.jsonl"))
    yield Items(tuple(items))
