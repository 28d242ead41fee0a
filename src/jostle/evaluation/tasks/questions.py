"""Questions task: options chosen for questions about videos, scored by accuracy and by what a corruption changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.language import AnswerSet, QuestionAnswer, QuestionItem, QuestionSet
from jostle.errors import BadValue
from jostle.evaluation.inference.language import BASELINES, VideoAnswers
from jostle.evaluation.tasks.language import DISORDERED, LanguageTask, Plain, failures_of
from jostle.evaluation.tasks.task import Item, action_pairs, task
from jostle.io.files.atomic import write_text
from jostle.metrics.answers import AnswerAccuracy, compare_answers, score_answers, temporal_sensitivity


@task("questions")
class QuestionsTask(LanguageTask[VideoAnswers]):
    """Task with one option for each question about a video."""

    loss_rule: ClassVar[str] = "the answer to the question is not the right option"

    @cached_property
    def questions(self) -> QuestionSet:
        """Questions whose right option is known; others cannot be scored."""
        known = self.data.questions.answered
        if not len(known):
            raise BadValue(f"{self.data.name}: no right option is known for any question; give annotations with them")
        return known

    @property
    def annotations(self) -> QuestionSet:
        return self.questions

    @property
    def fingerprint(self) -> str:
        return self.questions.fingerprint

    def write_truth(self, path: Path) -> None:
        rows = [asdict(item) for item in self.questions.items]
        actions = action_pairs(self.actions, self.videos)
        write_text(path, [json.dumps({"format": 1, "questions": rows, "actions": actions}, indent=0), "\n"])

    def to_rows(self, output: VideoAnswers) -> list[Plain]:
        rows = [_to_plain(answer) for answer in output.answers]
        for kind, answers in output.baselines.items():
            for row, answer in zip(rows, answers, strict=True):
                row[kind] = _to_plain(answer)
        if output.failed:
            rows[0]["failed"] = dict(output.failed)
        return rows

    def from_rows(self, rows: Sequence[Plain]) -> VideoAnswers:
        baselines = {
            kind: tuple(parse_answer(row[kind]) for row in rows)
            for kind in BASELINES
            if all(kind in row for row in rows)
        }
        return VideoAnswers(tuple(map(parse_answer, rows)), baselines, dict(rows[0].get("failed", {})))

    def to_predictions(self, outputs: Mapping[str, VideoAnswers]) -> AnswerSet:
        return self._answer_set({name: output.answers for name, output in outputs.items()})

    def read_predictions(self, path: Path, truth: QuestionSet) -> AnswerSet:
        return self.to_predictions(self.read(path)).checked(truth)

    def further_values(self, path: Path, truth: QuestionSet, predictions: AnswerSet) -> dict[str, Any]:
        if not isinstance(self.metric, AnswerAccuracy):  # baselines and changes are in accuracies
            return {}
        cell = self.cell_of(path)
        if not cell.specs:
            return {"baselines": self._baselines(self.read(path), truth)}
        clean = self.to_predictions(self.read(self.clean_path(path)))
        more = {"change": compare_answers(clean, predictions, truth).to_dict()}
        if any(spec.entry.corruption in DISORDERED for spec in cell.parsed):
            more["temporal_sensitivity"] = temporal_sensitivity(clean, predictions, truth).to_dict()
        return more

    def items(self, name: str) -> Sequence[Item]:
        return tuple(Item(item.kind, item.start, item.end, text=item.text) for item in self.by_video[name])

    def judge(self, name: str, output: VideoAnswers, threshold: float) -> tuple[Floats, Flags]:
        pairs = list(zip(self.by_video[name], output.answers, strict=True))
        right = np.array([answer.choice == item.answer for item, answer in pairs], np.bool_)
        return np.array([_margin(item, answer) for item, answer in pairs], np.float64), right

    def _baselines(self, outputs: Mapping[str, VideoAnswers], questions: QuestionSet) -> dict[str, Any]:
        """Score the answers without the video and with one frame; a baseline that failed has its reason."""
        failed = failures_of(outputs)
        baselines: dict[str, Any] = {}
        for kind in BASELINES:
            if kind in failed:
                baselines[kind] = {"failed": failed[kind]}
                continue
            given = {name: one.baselines[kind] for name, one in outputs.items() if kind in one.baselines}
            answers = self._answer_set(given)
            score = score_answers(answers, questions).to_dict()
            keys = ("accuracy", "interval", "unreadable", "missing", "by_type", "order")
            baselines[kind] = {key: score[key] for key in keys}
        return baselines

    def _answer_set(self, outputs: Mapping[str, Sequence[QuestionAnswer]]) -> AnswerSet:
        pairs = ((self.by_video[name], answers) for name, answers in outputs.items())
        return AnswerSet({item.id: one for items, answers in pairs for item, one in zip(items, answers, strict=True)})


def _margin(item: QuestionItem, answer: QuestionAnswer) -> float:
    """Return by how much the right option is more probable than any other; 1 or -1 where only the choice is known."""
    if answer.probabilities is None or item.answer is None:
        return 1.0 if answer.choice == item.answer else -1.0
    others = [share for i, share in enumerate(answer.probabilities) if i != item.answer]
    return answer.probabilities[item.answer] - max(others)


def _to_plain(answer: QuestionAnswer) -> Plain:
    probabilities = None if answer.probabilities is None else list(answer.probabilities)
    return {"choice": answer.choice, "probabilities": probabilities, "text": answer.text}


def parse_answer(row: Plain) -> QuestionAnswer:
    """Return the answer in a row of a predictions file; anything else raises KeyError, TypeError or ValueError."""
    choice, values, text = row["choice"], row["probabilities"], row["text"]
    if not (choice is None or type(choice) is int) or not (text is None or isinstance(text, str)):
        raise ValueError("an answer is malformed")
    return QuestionAnswer(choice, None if values is None else tuple(map(float, values)), text)
