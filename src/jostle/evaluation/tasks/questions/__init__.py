"""Questions task: options chosen for questions about videos, scored by accuracy and by what a corruption changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.core.results import plain
from jostle.core.schema import Mismatch
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.language import AnswerSet, QuestionAnswer, QuestionItem, QuestionSet
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.outputs import BASELINES, VideoAnswers
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.actions import ActionSpans, check_spans
from jostle.evaluation.tasks.language import DISORDERED, LanguageTask, Plain, failures_of
from jostle.evaluation.tasks.questions.view import draw_answers
from jostle.evaluation.tasks.task import Item, task
from jostle.evaluation.tasks.views import ItemTableView
from jostle.evaluation.tasks.words import Words

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig


@dataclass(frozen=True)
class QuestionedVideos:
    """Content of truth.json: questions about videos."""

    questions: tuple[QuestionItem, ...]
    actions: ActionSpans | None = None  # spans of the actions in videos, where known

    def __post_init__(self) -> None:
        check_spans(self.actions)
        if not self.questions:
            raise Mismatch("must not be empty").under("questions")

    def annotations(self) -> QuestionSet:
        """Return the questions whose right option is known."""
        return QuestionSet(self.questions).answered


@task("questions")
class QuestionsTask(LanguageTask[QuestionSet, QuestionAnswer]):
    """Task with one option for each question about a video whose right option is known."""

    words = Words(
        title="Questions about videos",
        tag="video-text-to-text",
        predictions="JSON with `choice`, `probabilities` and `text` by the id of a question, options counted from 0",
        group="type",
        long_group="type of question",
        group_score="accuracy",
        interval_note=", each with all its questions",
        loss_rule="the answer to the question is not the right option",
    )
    reads = QuestionSet
    stored = QuestionedVideos

    @classmethod
    def annotations_in(cls, data: Dataset) -> QuestionSet:
        known = data.questions.answered
        if not len(known):
            raise BadValue(f"{data.name}: no right option is known for any question; give annotations with them")
        return known

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        from jostle.evaluation.tasks.questions.model import build_question_model

        return build_question_model(recipe, config, device)

    def answer_to_plain(self, answer: QuestionAnswer) -> Plain:
        probabilities = None if answer.probabilities is None else list(answer.probabilities)
        return {"choice": answer.choice, "probabilities": probabilities, "text": answer.text}

    def answer_from_plain(self, row: Plain) -> QuestionAnswer:
        choice, values, text = row["choice"], row["probabilities"], row["text"]
        if not (choice is None or type(choice) is int) or not (text is None or isinstance(text, str)):
            raise ValueError("an answer is malformed")
        return QuestionAnswer(choice, None if values is None else tuple(map(float, values)), text)

    def join_answers(self, answers: Mapping[str, QuestionAnswer]) -> AnswerSet:
        return AnswerSet(answers)

    def answers_in(self, predictions: AnswerSet) -> Mapping[str, QuestionAnswer]:
        return predictions.answers

    def further_values(self, path: Path, predictions: AnswerSet, names: Sequence[str]) -> dict[str, Any]:
        from jostle.metrics.answers import AnswerAccuracy, compare_answers, temporal_sensitivity

        if not isinstance(self.metric, AnswerAccuracy):  # baselines and changes are in accuracies
            return {}
        cell, truth = self.cell_of(path), self.truth_of(names)
        if not cell.specs:
            return {"baselines": self._baselines(self.read(path), truth)}
        clean = self.read_predictions(self.clean_path(path))
        more = {"change": plain(compare_answers(clean, predictions, truth))}
        if any(spec.entry.corruption in DISORDERED for spec in cell.parsed):
            more["temporal_sensitivity"] = plain(temporal_sensitivity(clean, predictions, truth))
        return more

    def items(self, name: str) -> Sequence[Item]:
        return tuple(Item(item.kind, item.start, item.end, text=item.text) for item in self.by_video[name])

    def judge(self, name: str, output: VideoAnswers[QuestionAnswer], threshold: float) -> tuple[Floats, Flags]:
        pairs = list(zip(self.by_video[name], output.answers, strict=True))
        right = np.array([answer.choice == item.answer for item, answer in pairs], np.bool_)
        return np.array([_margin(item, answer) for item, answer in pairs], np.float64), right

    def _baselines(self, outputs: Mapping[str, VideoAnswers[QuestionAnswer]], questions: QuestionSet) -> dict[str, Any]:
        """Score the answers without the video and with one frame; a baseline that failed has its reason."""
        from jostle.metrics.answers import score_answers

        failed = failures_of(outputs)
        baselines: dict[str, Any] = {}
        for kind in BASELINES:
            if kind in failed:
                baselines[kind] = {"failed": failed[kind]}
                continue
            given = {name: one.baselines[kind] for name, one in outputs.items() if kind in one.baselines}
            answers = self.by_item(given)
            score = score_answers(answers, questions).to_dict()
            keys = ("accuracy", "interval", "unreadable", "missing", "by_type", "order")
            baselines[kind] = {key: score[key] for key in keys}
        return baselines

    def view(
        self, name: str, clean: AnswerSet, corrupted: AnswerSet, *, tiou: float | None = None, brief: bool = False
    ) -> ItemTableView:
        return draw_answers(name, self.by_video[name], (clean.answers, corrupted.answers))


def _margin(item: QuestionItem, answer: QuestionAnswer) -> float:
    """Return by how much the right option is more probable than any other; 1 or -1 where only the choice is known."""
    if answer.probabilities is None or item.answer is None:
        return 1.0 if answer.choice == item.answer else -1.0
    others = [share for i, share in enumerate(answer.probabilities) if i != item.answer]
    return answer.probabilities[item.answer] - max(others)
