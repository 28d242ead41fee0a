"""A model card: how a model takes corruption, in the words that the hub shows beside a model."""

from __future__ import annotations

from typing import Any

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.labels import benchmark_title, cell_labels
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.tables import Column, Table, Value, format_value, markdown_escape
from jostle.reporting.analysis.verdict import describe_mending, describe_windows
from jostle.reporting.cards.front_matter import front_matter

TASKS = {
    "detection": ("temporal-action-detection", "Temporal action detection"),
    "recognition": ("video-classification", "Video classification"),
    "frames": ("image-classification", "Image classification"),
    "objects": ("object-detection", "Object detection"),
}


def model_card(record: RunRecord, licence: str | None = None) -> str:
    """The card of the model of a run.

    Args:
        licence: of the model, as the hub writes it; left out where it is not given.
    """
    return "\n\n".join([front_matter(_metadata(record, licence)), *_body(record)]) + "\n"


def _metadata(record: RunRecord, licence: str | None) -> dict[str, Any]:
    task = TASKS[record.task]
    known: dict[str, Any] = {"license": licence} if licence else {}
    if record.task != "detection":  # the hub has no such pipeline for it
        known["pipeline_tag"] = task[0]
    return known | {
        "tags": ["jostle", "robustness", "video", task[0]],
        "model-index": [{"name": record.about.said, "results": _results(record)}],
    }


def _results(record: RunRecord) -> list[dict[str, Any]]:
    """One entry a cell, and one with the means."""
    about, scores = record.about, record.scores
    task = dict(zip(("type", "name"), TASKS[record.task], strict=True))
    labels = cell_labels(list(record.values), "_")
    metric = {"type": about.content.metric, "name": scores.metric}
    known = {"mPC": scores.mpc, "rPC": scores.rpc}
    means = [{"type": name, "name": name, "value": value} for name, value in known.items() if value is not None]
    measured = {labels[cell]: [metric | {"value": value}] for cell, value in record.values.items()}
    return [
        {
            "task": task,
            "dataset": {
                "type": about.benchmark,
                "name": benchmark_title(record),
                "config": config,
                "split": about.subset,
                "args": {"recipe": about.fingerprint},
            },
            "metrics": metrics,
        }
        for config, metrics in (measured | ({"corrupted": means} if means else {})).items()
    ]


def _body(record: RunRecord) -> list[str]:
    about, scores, coverage = record.about, record.scores, record.scores.coverage
    title, metric = markdown_escape(benchmark_title(record)), markdown_escape(str(scores.metric))
    sentence = f"On clean video it scores {_percent(scores.clean)} ({metric})"
    if scores.mean_corrupted is not None:
        sentence += f", on corrupted video {_percent(scores.mean_corrupted)}"
    if scores.relative_robustness is not None:
        sentence += f": {_percent(scores.relative_robustness)} % of it is left"
    counted = scores.counted
    of = f"{coverage}, {counted.cells} of {counted.of} corrupted cells"
    return [
        f"# {markdown_escape(about.said)} on {title}",
        f"{sentence}. Measured by jostle on {of}. Values in the head of this card are "
        "fractions, in the table they are percentages.",
        _cells(record).markdown(),
        "## How it was measured",
        facts_table(record).markdown(),
        "Training data, intended use and limits are not known to jostle: its publisher adds them here.",
    ]


def _cells(record: RunRecord) -> Table:
    clean = record.scores.clean
    rows: list[tuple[Value, ...]] = [
        (cell, value, None if cell == CLEAN or not clean else value / clean) for cell, value in record.values.items()
    ]
    columns = (Column("cell"), Column(str(record.scores.metric), "percent"), Column("of clean", "percent"))
    return Table("Cells", columns, tuple(rows))


def facts_table(record: RunRecord) -> Table:
    """Tabulate benchmark, model and data of a run, by name and hash."""
    about = record.about
    facts = {
        "benchmark": f"{about.benchmark}, version {about.content.version}",
        "recipe": f"{about.recipe}, {about.fingerprint}",
        "ground truth": about.truth,
        "data": f"{about.dataset}, {about.subset}",
        "model": about.model,
        "weights": about.weights,
        "features": about.extractor,
        "features' weights": about.extractor_weights,
        "windows": describe_windows(about),
        "mended": describe_mending(about.mend, about.mend_weights),
        "seed": about.seed,
        "versions": ", ".join(f"{name} {version}" for name, version in about.versions.items()),
    }
    rows = tuple((name, str(value)) for name, value in facts.items() if value is not None)
    return Table("Facts", (Column(""), Column("")), rows)


def _percent(value: float) -> str:
    return format_value(value, "percent")
