"""Scores of answers to questions with options: accuracy, calibration, and what a corruption changes.

An answer that no rule can read, and one that is missing, count as wrong and are counted apart; neither is guessed or
left out of a denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.core.results import Result, plain
from jostle.core.tables import Column, Table
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.language import AnswerSet, QuestionItem, QuestionSet
from jostle.errors import DataError
from jostle.metrics.bootstrap import share_interval, warn_of_few
from jostle.metrics.measured import MeanOverItems, Measured, sum_by_video
from jostle.metrics.metric import Chance, Metric, MetricOptions, metric, statistic

BINS = 10  # of confidence, for the expected calibration error


@dataclass(frozen=True)
class Calibration:
    """Agreement of option probabilities with what is right, over the answers that have probabilities."""

    count: int  # answers with probabilities
    brier: float  # mean over answers of the squared distance to the right option, 0 to 2
    ece: float  # expected calibration error in ten bins of equal width


@dataclass(frozen=True)
class AnswerShare:
    """Accuracy over one group of questions."""

    count: int
    correct: int
    accuracy: float
    interval: tuple[float, float] | None  # 95 %, videos are the independent units
    unreadable: int  # answers that no rule could read; wrong
    missing: int  # questions without an answer; wrong
    chance: float  # mean over questions of 1 / number of options
    chance_corrected: float | None  # (accuracy - chance) / (1 - chance)


@dataclass(frozen=True)
class AnswerScore(Result):
    """Scores of the answers to a set of questions."""

    overall: AnswerShare
    by_type: dict[str, AnswerShare]
    order: AnswerShare | None  # questions that need the order of events, where the set says which
    calibration: Calibration | None
    videos: int
    unknown: int  # answers to questions that the set does not have

    def tables(self) -> tuple[Table, ...]:
        """Return accuracy by type, with chance and unreadable answers."""
        counts = tuple(Column(name, "count") for name in ("unreadable", "missing"))
        shares = (Column("accuracy", "percent"), Column("95 %", "interval"), Column("chance", "percent"))
        columns = (Column("", key="type"), Column("questions", "count"), *shares, *counts)
        groups = {"all": self.overall} | self.by_type | ({} if self.order is None else {"needs order": self.order})
        rows = [
            (name, one.count, one.accuracy, one.interval, one.chance, one.unreadable, one.missing)
            for name, one in groups.items()
        ]
        notes = ["intervals: 95 %, over videos; unreadable and missing answers are wrong"]
        if (sure := self.calibration) is not None:
            notes.insert(0, f"Brier {sure.brier:.4f}, ECE {sure.ece:.4f} over {sure.count} answers with probabilities")
        title = f"{self.overall.count} questions about {self.videos} videos"
        return (Table(title, columns, tuple(rows), tuple(notes)),)

    def notes(self) -> tuple[str, ...]:
        """Return what the intervals lack, and how many answers are to other questions."""
        few = warn_of_few(self.videos) if self.overall.count > self.videos else None
        unknown = f"{self.unknown} answers are to questions that the ground truth does not have" if self.unknown else ""
        return tuple(note for note in (few, unknown) if note)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON; shares are fractions."""
        values = {name: value for name, value in vars(self).items() if name != "overall"}
        return {"format": 1, **plain(self.overall), **plain(values)}


def score_answers(answers: AnswerSet, questions: QuestionSet) -> AnswerScore:
    """The share of questions that are answered right, over all whose right option is known.

    Unreadable and missing answers are wrong. Intervals are over videos, as questions of one are not independent.

    >>> from jostle.core.types.language import QuestionAnswer
    >>> items = [QuestionItem(str(i), "v", "Q?", ("up", "down"), i % 2) for i in range(4)]
    >>> answers = AnswerSet({"0": QuestionAnswer(0), "1": QuestionAnswer(0), "2": QuestionAnswer(None)})
    >>> score = score_answers(answers, QuestionSet(tuple(items))).overall
    >>> score.accuracy, score.unreadable, score.missing, score.chance_corrected
    (0.25, 1, 1, -0.5)
    """
    known = _answered(questions)
    own = answers.checked(known)
    ordered = [item for item in known.items if item.needs_order]
    return AnswerScore(
        overall=_share(known.items, own),
        by_type={kind: _share([item for item in known.items if item.kind == kind], own) for kind in _kinds(known)},
        order=_share(ordered, own) if ordered else None,
        calibration=_calibration(known, own),
        videos=len(known.videos),
        unknown=sum(name not in questions.by_id for name in answers.answers),
    )


def correct_answers(answers: AnswerSet, items: Sequence[QuestionItem]) -> Flags:
    """Return (N,) whether each question is answered right."""
    return np.array(
        [item.id in answers.answers and answers.answers[item.id].choice == item.answer for item in items], np.bool_
    )


@metric("answer_accuracy")
class AnswerAccuracy(Metric):
    """Share of questions that are answered right; unreadable and missing answers are wrong."""

    task = "questions"
    cites = "clopper1934"
    function = staticmethod(score_answers)
    mean_over = "questions"
    has_intervals = True

    def label(self, options: MetricOptions) -> str:
        return "accuracy"

    def classes(self, truth: QuestionSet) -> tuple[str, ...]:
        return _kinds(truth)

    def chance(self, truth: QuestionSet, predictions: Callable[[], AnswerSet], options: MetricOptions) -> Chance:
        """Return the score of guesses with all options of a question equally likely."""
        level = float(np.mean([1 / len(item.options) for item in truth.items]))
        # Questions about one video are not independent, so that the interval over videos decides.
        return Chance(level, len(truth) if len(truth) == len(truth.videos) else None)

    def measure(self, truth: QuestionSet, predictions: AnswerSet, options: MetricOptions) -> Measured:
        return _MeasuredAnswers(_answered(truth), predictions)


class _MeasuredAnswers(MeanOverItems):
    """Accuracy of the answers to some questions."""

    def __init__(self, questions: QuestionSet, answers: AnswerSet, kind: str = "") -> None:
        self._questions, self._answers = questions, answers
        items = [item for item in questions.items if not kind or item.kind == kind]
        right = correct_answers(answers, items).astype(np.float64)
        super().__init__(questions.videos, *sum_by_video(questions.videos, [item.video for item in items], right))

    @property
    def more(self) -> dict[str, Any]:
        more = score_answers(self._answers, self._questions).to_dict()
        for key in ("format", "accuracy", "videos", "unknown"):
            del more[key]
        return more

    @property
    def by_class(self) -> dict[str, float]:
        return {kind: self.of_class(kind).value for kind in _kinds(self._questions)}

    def of_class(self, name: str) -> Measured:
        return _MeasuredAnswers(self._questions, self._answers, name)


def _answered(questions: QuestionSet) -> QuestionSet:
    known = questions.answered
    if not len(known):
        raise DataError("no right option is known for any question; the answers cannot be scored here", fault="F29")
    return known


def _kinds(questions: QuestionSet) -> tuple[str, ...]:
    """Return the types of questions that have one, in the order of the set."""
    return tuple(dict.fromkeys(item.kind for item in questions.items if item.kind))


def _share(items: Sequence[QuestionItem], answers: AnswerSet) -> AnswerShare:
    right = correct_answers(answers, items)
    accuracy = float(right.mean())
    chance = float(np.mean([1 / len(item.options) for item in items]))
    there = [answers.answers[item.id] for item in items if item.id in answers.answers]
    return AnswerShare(
        count=len(items),
        correct=int(right.sum()),
        accuracy=accuracy,
        interval=share_interval([item.video for item in items], right),
        unreadable=sum(answer.choice is None for answer in there),
        missing=len(items) - len(there),
        chance=chance,
        chance_corrected=(accuracy - chance) / (1 - chance),
    )


def _calibration(questions: QuestionSet, answers: AnswerSet) -> Calibration | None:
    distances, confidence, right = [], [], []
    for item in questions.items:
        answer = answers.answers.get(item.id)
        if answer is None or answer.probabilities is None:
            continue
        p = np.array(answer.probabilities)
        distances.append(float(np.sum((p - (np.arange(len(p)) == item.answer)) ** 2)))
        confidence.append(float(p.max()))
        right.append(int(p.argmax()) == item.answer)
    if not distances:
        return None
    ece = expected_calibration_error(np.array(confidence), np.array(right))
    return Calibration(len(distances), float(np.mean(distances)), ece)


def expected_calibration_error(confidence: Floats, right: Flags, bins: int = BINS) -> float:
    """Return the mean gap between confidence and accuracy over bins of equal width, weighted by their answers.

    >>> expected_calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    0.4
    """
    index = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(index, confidence, bins) - np.bincount(index, right, bins)
    return float(np.abs(gaps).sum() / len(confidence))


@dataclass(frozen=True)
class AnswerChange(Result):
    """Change of answers between clean and corrupted video; each share is None where its group is empty.

    Attributes:
        resist_rate: share of clean-right answers that are still right.
        corrective_flips: share of clean-wrong answers that become right; noise has these as well.
        changed: share of clean-right answers that differ, unreadable and missing ones included.
        became_unreadable: readable clean answers that no rule can read any more.
    """

    relative: float | None  # accuracy over the clean accuracy
    resist_rate: float | None
    resist_interval: tuple[float, float] | None
    corrective_flips: float | None
    corrective_interval: tuple[float, float] | None
    changed: float | None
    became_unreadable: int

    def tables(self) -> tuple[Table, ...]:
        """Return what became of right and of wrong answers."""
        columns = (Column("", key="what"), Column("", "percent", key="value"), Column("95 %", "interval"))
        rows = (
            ("accuracy, of the clean", self.relative, ""),
            ("right ones that stay right", self.resist_rate, self.resist_interval),
            ("wrong ones that become right", self.corrective_flips, self.corrective_interval),
        )
        return (Table("Change of answers", columns, rows),)


@statistic("answer_change", task="questions", cites="yang2026")
def compare_answers(clean: AnswerSet, corrupted: AnswerSet, questions: QuestionSet) -> AnswerChange:
    """The answers that a corruption changes: right ones that stay right, wrong ones that become right.

    >>> from jostle.core.types.language import QuestionAnswer
    >>> items = tuple(QuestionItem(name, name, "Q?", ("up", "down"), 0) for name in "abcd")
    >>> clean = AnswerSet({"a": QuestionAnswer(0), "b": QuestionAnswer(0), "c": QuestionAnswer(1)})
    >>> noisy = AnswerSet({"a": QuestionAnswer(0), "b": QuestionAnswer(None), "c": QuestionAnswer(0)})
    >>> change = compare_answers(clean, noisy, QuestionSet(items))
    >>> change.resist_rate, change.corrective_flips, change.relative, change.became_unreadable
    (0.5, 0.5, 1.0, 1)
    """
    items = questions.answered.items
    before, after = correct_answers(clean, items), correct_answers(corrupted, items)
    resist, resist_interval = _share_of(items, before, lambda i: bool(after[i]))
    flips, flip_interval = _share_of(items, ~before, lambda i: bool(after[i]))
    readable = [item.id for item in items if item.id in clean.answers and clean.answers[item.id].choice is not None]
    return AnswerChange(
        relative=float(after.sum() / before.sum()) if before.any() else None,
        resist_rate=resist,
        resist_interval=resist_interval,
        corrective_flips=flips,
        corrective_interval=flip_interval,
        changed=None if resist is None else 1 - resist,  # a right answer that is not right any more has changed
        became_unreadable=sum(
            name in corrupted.answers and corrupted.answers[name].choice is None for name in readable
        ),
    )


@dataclass(frozen=True)
class TemporalSensitivity(Result):
    """Share of clean-right answers that change when the order of frames is destroyed; high is good."""

    value: float | None  # None if no question was answered right on clean video
    interval: tuple[float, float] | None
    questions: int  # clean-right questions, over which the share is taken
    only_order: bool  # whether only questions that need order are counted, because the set says which do

    def tables(self) -> tuple[Table, ...]:
        """Return the share with its interval."""
        columns = (Column("", key="what"), Column("", "percent", key="value"), Column("95 %", "interval"))
        title = f"{self.questions} questions answered right{' that need order' if self.only_order else ''}"
        return (Table(title, columns, (("temporal sensitivity", self.value, self.interval),)),)


@statistic("temporal_sensitivity", task="questions", cites="yang2026")
def temporal_sensitivity(clean: AnswerSet, disordered: AnswerSet, questions: QuestionSet) -> TemporalSensitivity:
    """The share of clean-right answers that change when the order of frames is destroyed; high is good.

    Where the set says which questions need order, only those count. An answer that is 0 here was not read off the
    order of events.

    >>> from jostle.core.types.language import QuestionAnswer
    >>> items = tuple(QuestionItem(n, n, "Q?", ("up", "down"), 0, needs_order=n != "c") for n in "abc")
    >>> clean = AnswerSet({n: QuestionAnswer(0) for n in "abc"})
    >>> shuffled = AnswerSet({"a": QuestionAnswer(1), "b": QuestionAnswer(0), "c": QuestionAnswer(1)})
    >>> temporal_sensitivity(clean, shuffled, QuestionSet(items)).value
    0.5
    """
    known = questions.answered.items
    only = any(item.needs_order is not None for item in known)
    items = [item for item in known if item.needs_order] if only else list(known)
    before, after = correct_answers(clean, items), correct_answers(disordered, items)
    value, interval = _share_of(items, before, lambda i: not after[i])
    return TemporalSensitivity(value, interval, int(before.sum()), only)


def _share_of(
    items: Sequence[QuestionItem], chosen: Flags, counts: Callable[[int], bool]
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the share of the chosen questions that count, and its interval over videos."""
    rows = np.flatnonzero(chosen).tolist()
    if not rows:
        return None, None
    flags = np.array([counts(i) for i in rows], np.bool_)
    return float(flags.mean()), share_interval([items[i].video for i in rows], flags)
