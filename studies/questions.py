"""Questions about films of puppets: the shipped video-language model from a seed to the numbers of docs/results.md.

    python -m studies.questions WORK features train weights study record

`features` and `train` make the weights, `weights` puts them into the package; `study` runs puppets-questions-c with the
models of WORK. Steps and runs that are done already are skipped. A CPU is enough.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.questions import AnswerSet, QuestionAnswer, QuestionItem, QuestionSet
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.metrics.answers import AnswerShare, compare_answers, correct_answers, score_answers, temporal_sensitivity
from jostle.metrics.bootstrap import mean_interval
from studies.harness import (
    CORES,
    STUDIES,
    GridRun,
    Record,
    fill_tables,
    finish,
    markdown_table,
    parse_arguments,
    read_records,
    run_grid,
    ship_weights,
)

STEPS = ("features", "train", "weights", "study", "record")
RESULTS = STUDIES / "questions.jsonl"
BENCHMARK = "puppets-questions-c"
MODEL = "puppet_language"
# Seed, subset and number of films; those of the test part have seed 0, and puppets of their own.
TRAINING = ((1, "training", 200), (2, "training", 200))
HELD_OUT = ((1, "validation", 50),)
TREATMENTS = ("clean", "robust", "shuffled")
SHIPPED = ("clean", "robust")
TYPES = ("what", "count", "order", "before", "after", "who", "where")
GROUPS = {cell.name: cell.group for cell in select_cells(benchmarks[BENCHMARK])[1:]}
DISORDERED = tuple(name for name in GROUPS if "box_jumble" in name or "reverse_sampling" in name)
read_results = partial(read_records, RESULTS)


@dataclass(frozen=True)
class QuestionRun(GridRun):
    """One set of weights, as it is or with damaged frames mended."""

    weights: str
    mend: str
    videos: int
    seed: int = 0


def main() -> None:
    arguments = parse_arguments(__doc__, STEPS, jobs=CORES, at_once=1, videos=60, treatments=TREATMENTS)
    work: Path = arguments.work
    if "features" in arguments.steps:
        from studies.question_training import extract_features

        for source in (*TRAINING, *HELD_OUT):
            extract_features(*source, work, jobs=arguments.jobs)
    if "train" in arguments.steps:
        train_models(work, arguments.treatments)
    if "weights" in arguments.steps:
        ship_weights({f"{MODEL}-{name}": weights_of(work, name) for name in SHIPPED})
    results = work / RESULTS.name
    if "study" in arguments.steps:
        runs = [QuestionRun(weights, "", arguments.videos) for weights in TREATMENTS]
        runs += [QuestionRun(weights, "jostle", arguments.videos) for weights in SHIPPED]
        measure = partial(measure_run, work=work, jobs=arguments.jobs)
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def weights_of(work: Path, treatment: str) -> Path:
    """Return the file of trained weights."""
    return work / f"{treatment}.safetensors"


def train_models(work: Path, treatments: Iterable[str]) -> None:
    """Train those models whose weights are missing."""
    from studies.question_training import Schedule, read_lessons, train_language

    missing = [treatment for treatment in treatments if not weights_of(work, treatment).exists()]
    if not missing:
        return
    lessons, vocabulary = read_lessons(work, TRAINING)
    held_out, _ = read_lessons(work, HELD_OUT, vocabulary, draws=1)
    for treatment in missing:
        out = weights_of(work, treatment)
        train_language(lessons, held_out, vocabulary, out, treatment=treatment, seed=0, schedule=Schedule())


def measure_run(run: QuestionRun, work: Path, jobs: int) -> Record:
    """Run the benchmark on a model, and return every choice."""
    begin = time.monotonic()
    data = jostle.load_dataset("puppets-questions", "test", seed=run.seed, first=run.videos, jobs=jobs)
    out = work / "runs" / run.folder
    jostle.run(
        BENCHMARK,
        model=MODEL,
        weights=run.weights if run.weights in SHIPPED else weights_of(work, run.weights),
        videos=data.videos,
        out=out,
        mend=run.mend or None,
        seed=run.seed,
        jobs=jobs,
        device="cpu",
    )
    return {
        "run": asdict(run),
        **read_choices(out, data.questions.of_videos(list(data.videos))),
        "seconds": round(time.monotonic() - begin),
    }


def read_choices(out: Path, questions: QuestionSet) -> Record:
    """Return the questions and the choices in all cells of a run folder, one digit a question."""
    choices: dict[str, str] = {}
    for cell in select_cells(benchmarks[BENCHMARK]):
        rows = json.loads((out / "predictions" / f"{cell.slug}.json").read_text(encoding="utf-8"))
        choices[cell.name] = "".join(str(rows[item.id]["choice"]) for item in questions.items)
        if cell.name == CLEAN:
            for kind in ("blind", "one_frame"):
                choices[kind] = "".join(str(rows[item.id][kind]["choice"]) for item in questions.items)
    keys = [[item.video, item.kind, len(item.options), item.answer, item.needs_order] for item in questions.items]
    return {"questions": keys, "choices": choices}


def questions_of(record: Record) -> QuestionSet:
    """Return the questions of a record, with numbers as ids."""
    rows = enumerate(record["questions"])
    return QuestionSet(
        tuple(
            QuestionItem(str(i), video, "", ("",) * options, answer, kind, needs_order=needs_order)
            for i, (video, kind, options, answer, needs_order) in rows
        )
    )


def answers_of(record: Record, cell: str) -> AnswerSet:
    """Return the answers in one cell of a record."""
    return AnswerSet({str(i): QuestionAnswer(int(digit)) for i, digit in enumerate(record["choices"][cell])})


def score_of(record: Record, cell: str, kind: str | None = None) -> AnswerShare:
    """Return the accuracy in one cell, of all questions or those of a type."""
    score = score_answers(answers_of(record, cell), questions_of(record))
    return score.overall if kind is None else score.by_type[kind]


def find(records: Sequence[Record], weights: str, mend: str = "") -> Record:
    """Return the record of one run."""
    wanted = {"weights": weights, "mend": mend}
    return next(record for record in records if wanted.items() <= record["run"].items())


def summarise(record: Record) -> str:
    """Format what is printed of a record."""
    return json.dumps({name: round(score_of(record, name).accuracy, 4) for name in record["choices"]})


def types_table(records: Sequence[Record]) -> str:
    """Format clean accuracy and the baselines by type of question."""
    rows = []
    for weights in TREATMENTS:
        record = find(records, weights)
        for cell, label in ((CLEAN, "the video"), ("one_frame", "one frame"), ("blind", "nothing")):
            score = score_answers(answers_of(record, cell), questions_of(record))
            cells = [f"{100 * score.by_type[kind].accuracy:.0f}" for kind in TYPES]
            rows.append([weights, label, _with_interval(score.overall), *cells])
    counts = score_answers(answers_of(records[0], CLEAN), questions_of(records[0])).by_type
    head = [f"{kind} ({counts[kind].count})" for kind in TYPES]
    return markdown_table(["weights", "shown", "all, %", *head], rows)


def cells_table(records: Sequence[Record]) -> str:
    """Format the accuracy in every cell."""
    shown = [find(records, weights) for weights in TREATMENTS] + [find(records, name, "jostle") for name in SHIPPED]
    rows = []
    for cell in (CLEAN, *GROUPS):
        rows.append([f"`{cell}`", *(f"{100 * score_of(record, cell).accuracy:.1f}" for record in shown)])
    return markdown_table(["accuracy, %", *TREATMENTS, *(f"{name}, mended" for name in SHIPPED)], rows)


def falls_table(records: Sequence[Record]) -> str:
    """Format how much questions that need order and others fall, by group of cells."""
    rows = []
    for weights in SHIPPED:
        record = find(records, weights)
        needs = np.array([question[4] for question in record["questions"]], np.bool_)
        for group in dict.fromkeys(GROUPS.values()):
            fall = falls(record, [cell for cell in GROUPS if GROUPS[cell] == group])
            rows.append([weights, group, _mean(record, fall, needs), _mean(record, fall, ~needs)])
    return markdown_table(["weights", "cells", "questions that need order", "other questions"], rows)


def falls(record: Record, cells: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return for every question by how much it is answered right less often in these cells than clean."""
    items = questions_of(record).items
    clean = correct_answers(answers_of(record, CLEAN), items).astype(np.float64)
    under = [correct_answers(answers_of(record, cell), items).astype(np.float64) for cell in cells]
    return clean - np.mean(under, axis=0)


def sensitivity_table(records: Sequence[Record]) -> str:
    """Format the temporal sensitivity of the three models, and how many order questions they answer right."""
    rows = []
    for weights in TREATMENTS:
        record = find(records, weights)
        questions, clean = questions_of(record), answers_of(record, CLEAN)
        order = score_answers(clean, questions).order
        assert order is not None
        cells = []
        for cell in DISORDERED:
            one = temporal_sensitivity(clean, answers_of(record, cell), questions)
            cells.append(f"{100 * (one.value or 0):.0f}{_ends(one.interval)}")
        rows.append([weights, _with_interval(order), *cells])
    return markdown_table(["weights", "order questions right clean, %", *(f"`{name}`" for name in DISORDERED)], rows)


def mending_table(records: Sequence[Record]) -> str:
    """Format what mending changes, question by question, by group of cells."""
    rows = []
    for weights in SHIPPED:
        plain, mended = find(records, weights), find(records, weights, "jostle")
        items = questions_of(plain).items
        everything = np.ones(len(items), np.bool_)
        for group, cells in {"clean": [CLEAN], **_by_group()}.items():
            before, after = (
                np.mean([correct_answers(answers_of(one, cell), items) for cell in cells], axis=0)
                for one in (plain, mended)
            )
            gain = _mean(plain, after - before, everything)
            rows.append([weights, group, f"{100 * before.mean():.1f}", f"{100 * after.mean():.1f}", gain])
    return markdown_table(["weights", "cells", "as it is, %", "mended, %", "gain, points"], rows)


def robust_table(records: Sequence[Record]) -> str:
    """Format what training with dropped frames changes, question by question, by group of cells."""
    clean, robust = find(records, "clean"), find(records, "robust")
    items = questions_of(clean).items
    everything = np.ones(len(items), np.bool_)
    rows = []
    for group, cells in {"clean": [CLEAN], **_by_group()}.items():
        before, after = (
            np.mean([correct_answers(answers_of(one, cell), items) for cell in cells], axis=0)
            for one in (clean, robust)
        )
        stays = [
            np.mean([compare_answers(answers_of(one, CLEAN), answers_of(one, cell), questions_of(one)).resist_rate or 0
                     for cell in cells]) for one in (clean, robust)
        ]  # fmt: skip
        gain = _mean(clean, after - before, everything)
        rows.append([group, f"{100 * before.mean():.1f}", f"{100 * after.mean():.1f}", gain,
                     *(f"{100 * float(one):.0f}" for one in stays)])  # fmt: skip
    head = ["cells", "clean weights, %", "robust weights, %", "gain, points", "stays right, clean, %", "robust, %"]
    return markdown_table(head, rows)


def _by_group() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for cell, group in GROUPS.items():
        groups.setdefault(group, []).append(cell)
    return groups


def _mean(record: Record, values: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_]) -> str:
    owners = [question[0] for question, take in zip(record["questions"], chosen, strict=True) if take]
    return f"{100 * values[chosen].mean():.1f}{_ends(mean_interval(owners, values[chosen]), 1)}"


def _with_interval(share: AnswerShare) -> str:
    return f"{100 * share.accuracy:.1f}{_ends(share.interval, 1)}"


def _ends(interval: tuple[float, float] | None, digits: int = 0) -> str:
    return "" if interval is None else f" [{100 * interval[0]:.{digits}f}, {100 * interval[1]:.{digits}f}]"


TABLES = {
    "types": types_table,
    "cells": cells_table,
    "falls": falls_table,
    "sensitivity": sensitivity_table,
    "robust": robust_table,
    "mending": mending_table,
}


def fill_page(page: str, records: Sequence[Record]) -> str:
    """Return the page with the tables of this study as the records have them."""
    return fill_tables("questions", TABLES, page, records)


if __name__ == "__main__":
    main()
