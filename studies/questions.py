"""Questions about films of puppets: the shipped model from a seed to the numbers of docs/results/questions.md.

    python -m studies.questions WORK features train weights study record

`features` and `train` make the weights, `weights` puts them into the package; `study` runs puppets-questions-c, where
all models get the same frames. Steps and runs that are done already are skipped. A CPU is enough.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.language import AnswerSet, QuestionAnswer, QuestionItem, QuestionSet
from jostle.evaluation.inference.language import option_orders
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.metrics.answers import AnswerShare, compare_answers, correct_answers, score_answers, temporal_sensitivity
from jostle.metrics.bootstrap import bias_corrected, mean_interval, video_weights
from jostle.models.language.interface import Answer, Question
from studies import harness

if TYPE_CHECKING:
    from jostle.models.language.puppet_language import PuppetLanguageModel

BENCHMARK = "puppets-questions-c"
MODEL = "puppet_language"
# Seed, subset and number of films; those of the test part have seed 0, and puppets of their own.
TRAINING = ((1, "training", 200), (2, "training", 200))
HELD_OUT = ((1, "validation", 50),)
TREATMENTS = ("clean", "robust", "shuffled")
SHIPPED = ("clean", "robust")
TYPES = ("what", "count", "order", "before", "after", "who", "where")
GROUPS = {cell.name: cell.group for cell in select_cells(benchmarks[BENCHMARK])[1:]}
RUNS = {"placed": ("order", "centre"), "pictures": ("pictures",)}  # groups of cells that are run together
DRAWS = 2000  # of the bootstrap over videos
DISORDERED = tuple(name for name in GROUPS if "box_jumble" in name or "reverse_sampling" in name)


@dataclass(frozen=True)
class QuestionRun(harness.GridRun):
    """All models on the films of the test part, as they are or with damaged frames mended.

    Attributes:
        cells: `placed` for those of order and in the middle of actions, `pictures` for those of whole videos.
    """

    cells: str
    mend: str
    seed: int = 0


@dataclass(frozen=True)
class SeveralModels:
    """Models that get the same questions; the answer is the first one's, its text the choices of all as JSON."""

    models: Mapping[str, PuppetLanguageModel]

    @property
    def frames(self) -> int:
        """Number of frames of all models."""
        return next(iter(self.models.values())).frames

    def describe(self) -> dict[str, object]:
        """Return the descriptions of the models."""
        return {name: model.describe() for name, model in self.models.items()}

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions by every model."""
        answers = {name: model.answer(questions) for name, model in self.models.items()}
        rows = zip(*answers.values(), strict=True)
        return [replace(row[0], text=json.dumps([answer.log_probs for answer in row])) for row in rows]


def study_runs() -> list[QuestionRun]:
    """Return the runs of the study."""
    return [QuestionRun("placed", ""), QuestionRun("pictures", ""), QuestionRun("placed", "jostle")]


def main() -> None:
    """Run the steps that are arguments."""
    steps = {
        "features": make_features,
        "train": train_models,
        "weights": lambda work: harness.ship_weights({f"{MODEL}-{name}": weights_of(work, name) for name in SHIPPED}),
        "study": harness.Grid(study_runs, measure_run, summarise),
    }
    harness.run_study(__doc__, "questions", steps, jobs=harness.CORES, treatments=TREATMENTS)


def make_features(work: Path, jobs: int) -> None:
    """Extract the features of the films of both parts."""
    from studies.question_training import extract_features

    for source in (*TRAINING, *HELD_OUT):
        extract_features(*source, work, jobs=jobs)


def weights_of(work: Path, treatment: str) -> Path:
    """Return the file of trained weights."""
    return work / f"{treatment}.safetensors"


def train_models(work: Path, treatments: Iterable[str]) -> None:
    """Train those models whose weights are missing."""
    from studies.question_training import read_lessons, train_language

    missing = [treatment for treatment in treatments if not weights_of(work, treatment).exists()]
    if not missing:
        return
    lessons, vocabulary = read_lessons(work, TRAINING)
    held_out, _ = read_lessons(work, HELD_OUT, vocabulary, draws=1)
    for treatment in missing:
        out = weights_of(work, treatment)
        train_language(lessons, held_out, vocabulary, out, treatment=treatment, seed=0)


def measure_run(run: QuestionRun, work: Path, jobs: int) -> harness.Record:
    """Run the benchmark on all models, and return every choice."""
    from jostle.models.language.puppet_language import load_puppet_language

    data = jostle.load_dataset("puppets-questions", "test", seed=run.seed, jobs=jobs)
    models = {name: load_puppet_language(name if name in SHIPPED else weights_of(work, name)) for name in TREATMENTS}
    for model in models.values():
        model.features = models[TREATMENTS[0]].features  # frames are seen once for all
    out = run.folder_in(work)
    jostle.run(
        BENCHMARK,
        model=SeveralModels(models),
        out=out,
        cells=[f"group:{group}" for group in RUNS[run.cells]],
        mend=run.mend or None,
        seed=run.seed,
        jobs=jobs,
        device="cpu",
    )
    return read_choices(out, data.questions, run)


def read_choices(out: Path, questions: QuestionSet, run: QuestionRun) -> harness.Record:
    """Return the questions and the choices of every model in all cells of a run folder, one digit a question."""
    choices: dict[str, dict[str, str]] = {name: {} for name in TREATMENTS}
    for cell in select_cells(benchmarks[BENCHMARK], [f"group:{group}" for group in RUNS[run.cells]]):
        rows = json.loads((out / "predictions" / f"{cell.slug}.json").read_text(encoding="utf-8"))
        kinds = {cell.name: rows}
        if cell.name == CLEAN:
            kinds |= {kind: {key: row[kind] for key, row in rows.items()} for kind in ("blind", "one_frame")}
        for kind, answers in kinds.items():
            for i, name in enumerate(TREATMENTS):
                choices[name][kind] = "".join(
                    _choice(answers[item.id]["text"], i, item, run.seed) for item in questions.items
                )
    keys = [[item.video, item.kind, len(item.options), item.answer, item.needs_order] for item in questions.items]
    return {"questions": keys, "choices": choices}


def _choice(text: str, model: int, item: QuestionItem, seed: int) -> str:
    """Return the choice of one of the models, in the published order of options."""
    (order,) = option_orders(item, "drawn", seed)
    return str(order[int(np.argmax(json.loads(text)[model]))])


def questions_of(record: harness.Record) -> QuestionSet:
    """Return the questions of a record, with numbers as ids."""
    rows = enumerate(record["questions"])
    return QuestionSet(
        tuple(
            QuestionItem(str(i), video, "", ("",) * options, answer, kind, needs_order=needs_order)
            for i, (video, kind, options, answer, needs_order) in rows
        )
    )


def answers_of(record: harness.Record, cell: str) -> AnswerSet:
    """Return the answers of one model in one cell."""
    return AnswerSet({str(i): QuestionAnswer(int(digit)) for i, digit in enumerate(record["choices"][cell])})


def score_of(record: harness.Record, cell: str, kind: str | None = None) -> AnswerShare:
    """Return the accuracy in one cell, of all questions or those of a type."""
    score = score_answers(answers_of(record, cell), questions_of(record))
    return score.overall if kind is None else score.by_type[kind]


def find(records: Sequence[harness.Record], weights: str, mend: str = "", cells: str = "placed") -> harness.Record:
    """Return the record of one model in one run."""
    record = harness.select_records(records, cells=cells, mend=mend)[0]
    return record | {"choices": record["choices"][weights]}


def summarise(record: harness.Record) -> str:
    """Format what is printed of a record."""
    parts = {name: record | {"choices": choices} for name, choices in record["choices"].items()}
    clean = {name: round(score_of(part, CLEAN).accuracy, 4) for name, part in parts.items()}
    return json.dumps({"questions": len(record["questions"]), **clean})


def types_table(results: harness.Results) -> str:
    """Format clean accuracy, the baselines, and the gain over the blind one, by type of question."""
    rows, counts = [], {}
    for weights in TREATMENTS:
        record = find(results.questions, weights)
        items = questions_of(record).items
        for cell, label in ((CLEAN, "the video"), ("one_frame", "one frame"), ("blind", "nothing")):
            score = score_answers(answers_of(record, cell), questions_of(record))
            cells = [_accuracy(score.by_type[kind], 0) for kind in TYPES]
            rows.append([weights, label, _accuracy(score.overall), *cells])
            counts = score.by_type
        right, blind = (correct_answers(answers_of(record, cell), items).astype(float) for cell in (CLEAN, "blind"))
        parts = [np.array([kind in (item.kind, "all") for item in items]) for kind in ("all", *TYPES)]
        rows.append([weights, "the video less nothing", *(_mean(record, right - blind, part) for part in parts)])
    head = [f"{kind} ({counts[kind].count})" for kind in TYPES]
    return harness.markdown_table(["weights, %", "input", "all", *head], rows)


@harness.table("accuracy, %", *TREATMENTS)
def cells_table(results: harness.Results) -> Iterator[list[str]]:
    """The accuracy in every cell."""
    for part, groups in RUNS.items():
        columns = [find(results.questions, weights, cells=part) for weights in TREATMENTS]
        cells = [name for name, group in GROUPS.items() if group in groups]
        for cell in [CLEAN, *cells] if part == "placed" else cells:
            yield [f"`{cell}`", *(_accuracy(score_of(record, cell)) for record in columns)]


@harness.table("fall, points", "cells", "questions that need order", "other questions", "difference")
def falls_table(results: harness.Results) -> Iterator[list[str]]:
    """Fall of questions that need order and of others, by group of cells."""
    for weights, (part, groups) in product(SHIPPED, RUNS.items()):
        record = find(results.questions, weights, cells=part)
        needs = np.array([question[4] for question in record["questions"]], np.bool_)
        for group in groups:
            fall = falls(record, cells_of(group))
            parts = (_mean(record, fall, needs), _mean(record, fall, ~needs), _difference(record, fall, needs))
            yield [weights, group, *parts]


def _difference(record: harness.Record, values: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_]) -> str:
    """Format the mean of the chosen values less that of the others, with its interval over videos."""
    owners = [question[0] for question in record["questions"]]
    videos = list(dict.fromkeys(owners))
    index = np.array([videos.index(name) for name in owners])
    weights = video_weights(tuple(videos), DRAWS)
    means, draws = [], []
    for part in (chosen, ~chosen):
        sums, counts = (np.bincount(index[part], one, len(videos)) for one in (values[part], np.ones(part.sum())))
        means.append(sums.sum() / counts.sum())
        draws.append(weights @ sums / (weights @ counts))
    measured = float(means[0] - means[1])
    return harness.with_interval(measured, bias_corrected(draws[0] - draws[1], measured, 0.95), scale=100)


def falls(record: harness.Record, cells: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return for every question by how much it is answered right less often in these cells than clean."""
    items = questions_of(record).items
    clean = correct_answers(answers_of(record, CLEAN), items).astype(np.float64)
    under = [correct_answers(answers_of(record, cell), items).astype(np.float64) for cell in cells]
    return clean - np.mean(under, axis=0)


@harness.table("weights", "order questions right clean, %", *(f"`{name}`" for name in DISORDERED))
def sensitivity_table(results: harness.Results) -> Iterator[list[str]]:
    """The temporal sensitivity of the three models, and how many order questions they answer right."""
    for weights in TREATMENTS:
        record = find(results.questions, weights)
        questions, clean = questions_of(record), answers_of(record, CLEAN)
        order = score_answers(clean, questions).order
        assert order is not None
        each = [temporal_sensitivity(clean, answers_of(record, cell), questions) for cell in DISORDERED]
        yield [
            weights,
            _accuracy(order),
            *(harness.with_interval(one.value or 0, one.interval, ".0f", scale=100) for one in each),
        ]


@harness.table("weights", "cells", "as it is, %", "mended, %", "gain, points")
def mending_table(results: harness.Results) -> Iterator[list[str]]:
    """Effect of mending, question by question, by group of cells."""
    for weights, group in product(SHIPPED, (CLEAN, *RUNS["placed"])):
        plain, mended = (find(results.questions, weights, mend) for mend in ("", "jostle"))
        yield [weights, group, *_compare(plain, mended, cells_of(group))]


@harness.table("cells", "clean weights, %", "robust weights, %", "gain, points", "resist rate, clean, %", "robust, %")
def robust_table(results: harness.Results) -> Iterator[list[str]]:
    """Effect of training with dropped frames, question by question, by group of cells."""
    for part, groups in RUNS.items():
        clean, robust = (find(results.questions, weights, cells=part) for weights in SHIPPED)
        for group in (CLEAN, *groups) if part == "placed" else groups:
            stays = []
            for record in (clean, robust):
                before, questions = answers_of(record, CLEAN), questions_of(record)
                rates = [
                    compare_answers(before, answers_of(record, cell), questions).resist_rate for cell in cells_of(group)
                ]
                stays.append(f"{100 * float(np.mean([rate for rate in rates if rate is not None])):.0f}")
            yield [group, *_compare(clean, robust, cells_of(group)), *stays]


def cells_of(group: str) -> list[str]:
    """Return the names of a group's cells; `clean` is a group of its own."""
    return [CLEAN] if group == CLEAN else [name for name, one in GROUPS.items() if one == group]


def _compare(first: harness.Record, second: harness.Record, cells: Sequence[str]) -> list[str]:
    """Format the mean accuracy of two records in some cells, and the paired difference."""
    items = questions_of(first).items
    before, after = (
        np.mean([correct_answers(answers_of(record, cell), items) for cell in cells], axis=0)
        for record in (first, second)
    )
    gain = _mean(first, after - before, np.ones(len(items), np.bool_))
    return [f"{100 * before.mean():.1f}", f"{100 * after.mean():.1f}", gain]


def _mean(record: harness.Record, values: npt.NDArray[np.float64], chosen: npt.NDArray[np.bool_]) -> str:
    owners = [question[0] for question, take in zip(record["questions"], chosen, strict=True) if take]
    return harness.with_interval(values[chosen].mean(), mean_interval(owners, values[chosen]), scale=100)


def _accuracy(share: AnswerShare, digits: int = 1) -> str:
    return harness.with_interval(share.accuracy, share.interval, f".{digits}f", scale=100)


TABLES = {
    "types": types_table,
    "cells": cells_table,
    "falls": falls_table,
    "sensitivity": sensitivity_table,
    "robust": robust_table,
    "mending": mending_table,
}


if __name__ == "__main__":
    harness.run_module("studies.questions")
