"""A data set card: the predictions of a run, one configuration a cell. The videos themselves are not passed on."""

from __future__ import annotations

from typing import Any

from jostle.evaluation.recipes.recipe import CLEAN, benchmarks, slugify
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import About
from jostle.reporting.analysis.labels import benchmark_title, cell_labels
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.tables import Column, Table, Value, markdown_escape
from jostle.reporting.cards.front_matter import front_matter
from jostle.reporting.cards.model_card import TASKS, facts_table

_HELD = {
    "detection": "detections in ActivityNet's JSON, times in seconds",
    "recognition": "`.npz` with `videos` (N,), `scores` (N, C) and `classes` (C,)",
    "frames": "`.npz` with `frames` (N,) and `scores` (N, C)",
    "objects": "`.npz` with `frames` (N,), `counts` (N,) of boxes, and `boxes` (M, 6): class, score, x1, y1, x2, y2",
}


def dataset_card(record: RunRecord, licence: str | None = None) -> str:
    """The card of the predictions of a run.

    Args:
        licence: of the predictions, as the hub writes it; left out where it is not given.
    """
    return "\n\n".join([front_matter(_metadata(record, licence)), *_body(record)]) + "\n"


def _metadata(record: RunRecord, licence: str | None) -> dict[str, Any]:
    labels = cell_labels(record.cells, "_")
    known: dict[str, Any] = {"license": licence} if licence else {}
    if record.task != "detection":
        known["task_categories"] = [TASKS[record.task][0]]
    return known | {
        "pretty_name": f"{record.about.said} on {benchmark_title(record)}: predictions",
        "tags": ["jostle", "robustness", "video", TASKS[record.task][0]],
        "configs": [
            {
                "config_name": labels[cell],
                "data_files": [{"split": record.about.subset, "path": f"predictions/{_file(record, cell)}"}],
            }
            for cell in record.cells
        ],
    }


def _body(record: RunRecord) -> list[str]:
    about = record.about
    title = markdown_escape(benchmark_title(record))
    lines = [
        f"# {markdown_escape(about.said)} on {title}: predictions",
        f"Predictions of a model for {about.videos} videos of {markdown_escape(about.dataset)} "
        f"({markdown_escape(about.subset)}), clean and corrupted: one configuration a cell, each a file of "
        f"{_HELD[record.task]}.",
        "**No video is part of this.** The videos belong to their owners; with a copy of them and the recipe, "
        f"`jostle run {_command(about)} --seed {about.seed}` makes every corrupted frame again.",
        "## Cells",
        _cells(record).markdown(),
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


def _cells(record: RunRecord) -> Table:
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
    suffix = ".json" if record.task == "detection" else ".npz"
    return RunFolder(record.folder, suffix).predictions_of(slugify(cell)).name
