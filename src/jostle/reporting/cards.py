"""Model card and data set card of a run, each in a folder of its own: a repository on the hub has one README.md.

Their heads are YAML in which every text is quoted, so that none is read as anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle.core.formatting import markdown_escape, percent, yaml_quote
from jostle.core.tables import Column, Table, Value
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks, slugify
from jostle.evaluation.results.comparison import chance_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import About
from jostle.io.files.atomic import write_text
from jostle.reporting.analysis.labels import benchmark_title, cell_labels
from jostle.reporting.analysis.language import describe_baselines
from jostle.reporting.analysis.verdict import describe_adaptation, describe_mending, describe_windows


def front_matter(values: Mapping[str, Any]) -> str:
    """Values between two lines of dashes.

    >>> print(front_matter({"license": "mit", "tags": ["video", "no"], "size": 3}))
    ---
    license: "mit"
    tags:
    - "video"
    - "no"
    size: 3
    ---
    """
    return "\n".join(["---", *_lines(values), "---"])


def _lines(values: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{key}:", *(f"  {line}" for line in _lines(value))]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            lines += [f"{key}:", *(line for item in value for line in _item(item))]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return lines


def _item(item: Any) -> list[str]:
    if not isinstance(item, Mapping):
        return [f"- {_scalar(item)}"]
    first, *others = _lines(item)
    return [f"- {first}", *(f"  {line}" for line in others)]


def _scalar(value: str | float | bool | None) -> str:
    if isinstance(value, str):
        return yaml_quote(value)
    # YAML takes 1e-05 for a text: a number has a point.
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))


def model_card(record: RunRecord, licence: str | None = None) -> str:
    """The card of the model of a run; its licence, as the hub writes it, is left out where it is not given."""
    return "\n\n".join([front_matter(_metadata(record, licence)), *_body(record)]) + "\n"


def _metadata(record: RunRecord, licence: str | None) -> dict[str, Any]:
    words = record.task.words
    known: dict[str, Any] = {"license": licence} if licence else {}
    if words.has_pipeline:
        known["pipeline_tag"] = words.tag
    return known | {
        "tags": ["jostle", "robustness", "video", words.tag],
        "model-index": [{"name": record.about.display_name, "results": _results(record)}],
    }


def _results(record: RunRecord) -> list[dict[str, Any]]:
    """One entry a cell, and one with the means."""
    about, scores = record.about, record.scores
    task = {"type": record.task.words.tag, "name": record.task.words.title}
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
    chance = chance_of(record).text
    sentence = f"On clean video it scores {percent(scores.clean)} ({metric}{f'; {chance}' if chance else ''})"
    if scores.mean_corrupted is not None:
        sentence += f", on corrupted video {percent(scores.mean_corrupted)}"
    if scores.relative_robustness is not None:
        sentence += f": {percent(scores.relative_robustness)} % of it is left"
    counted = scores.counted
    of = f"{coverage}, {counted.cells} of {counted.of} corrupted cells"
    return [
        f"# {markdown_escape(about.display_name)} on {title}",
        f"{sentence}. Measured by jostle on {of}. Values in the head of this card are "
        "fractions, in the table they are percentages.",
        *([markdown_escape(text)] if (text := describe_baselines(record)) else []),
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
        "adapted": describe_adaptation(about.adapt),
        "seed": about.seed,
        "versions": ", ".join(f"{name} {version}" for name, version in about.versions.items()),
    }
    rows = tuple((name, str(value)) for name, value in facts.items() if value is not None)
    return Table("Facts", (Column(""), Column("")), rows)


def dataset_card(record: RunRecord, licence: str | None = None) -> str:
    """The card of the predictions of a run; their licence is left out where it is not given."""
    return "\n\n".join([front_matter(_dataset_metadata(record, licence)), *_dataset_body(record)]) + "\n"


def _dataset_metadata(record: RunRecord, licence: str | None) -> dict[str, Any]:
    labels, words = cell_labels(record.cells, "_"), record.task.words
    known: dict[str, Any] = {"license": licence} if licence else {}
    if words.has_pipeline:
        known["task_categories"] = [words.tag]
    return known | {
        "pretty_name": f"{record.about.display_name} on {benchmark_title(record)}: predictions",
        "tags": ["jostle", "robustness", "video", words.tag],
        "configs": [
            {
                "config_name": labels[cell],
                "data_files": [{"split": record.about.subset, "path": f"predictions/{_file(record, cell)}"}],
            }
            for cell in record.cells
        ],
    }


def _dataset_body(record: RunRecord) -> list[str]:
    about = record.about
    title = markdown_escape(benchmark_title(record))
    lines = [
        f"# {markdown_escape(about.display_name)} on {title}: predictions",
        f"Predictions of a model for {about.videos} videos of {markdown_escape(about.dataset)} "
        f"({markdown_escape(about.subset)}), clean and corrupted: one configuration a cell, each a file of "
        f"{record.task.words.predictions}.",
        "**No video is part of this.** The videos belong to their owners; with a copy of them and the recipe, "
        f"`jostle run {_command(about)} --seed {about.seed}` makes every corrupted frame again.",
        "## Cells",
        _dataset_cells(record).markdown(),
        "## Recipe",
        facts_table(record).markdown(),
    ]
    name = about.recipe
    if name in benchmarks and benchmarks[name].notes:
        lines += ["What the recipe reads into its paper, or does otherwise:"]
        lines.append("\n".join(f"- {markdown_escape(note)}" for note in benchmarks[name].notes))
    return lines


def _command(about: About) -> str:
    return about.recipe if about.recipe == about.benchmark else f"{about.recipe} --dataset {about.dataset}"


def _dataset_cells(record: RunRecord) -> Table:
    labels = cell_labels(record.cells, "_")
    steps = {one.cell: one.done for one in record.about.content.cells}
    rows: list[tuple[Value, ...]] = []
    for cell in record.cells:
        done = steps[cell]
        what = ", then ".join(f"{step.corruption} {step.value}" for step in done)
        where = ", ".join(dict.fromkeys(step.placement for step in done))
        rows.append((labels[cell], cell, what or CLEAN, where, _file(record, cell)))
    heads = ("configuration", "cell", "corruption and strength", "frames", "file")
    return Table("Cells", tuple(map(Column, heads)), tuple(rows))


def _file(record: RunRecord, cell: str) -> str:
    return RunFolder(record.folder, record.task.suffix).predictions_of(slugify(cell)).name


def write_cards(record: RunRecord, folder: Path, licence: str | None = None) -> tuple[Path, Path]:
    """Write `model/README.md` and `dataset/README.md` of a run.

    Raises:
        DataError: if one is there already; somebody may have written into it.
    """
    targets = (folder / "model" / "README.md", folder / "dataset" / "README.md")
    for path in targets:
        if path.exists():
            raise DataError(f"{path}: is there already; move it away, or name another folder", fault="F89")
    for path, text in zip(targets, (model_card(record, licence), dataset_card(record, licence)), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, [text])
    return targets
