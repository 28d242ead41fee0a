"""Questions and sentences about a video in many cells: decoded once, and only sampled frames are corrupted.

Answers are known by content: a question about frames that a corruption left as they are gets no second answer, and one
about frames that it changed always does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from jostle.core.finite import naming
from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.core.types.language import MomentItem, MomentPrediction, QuestionAnswer, QuestionItem
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.damage_finder import DamageFinder
from jostle.corruptions.engine.stages import MADE, origins
from jostle.errors import DataError, JostleError, ResourceError
from jostle.evaluation.inference.footage import Footage, open_footage
from jostle.evaluation.inference.jobs import VideoJob, VideoResult, call_model
from jostle.evaluation.inference.outputs import BASELINES, VideoAnswers
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.caches import CachedFrames, SlidingFrames
from jostle.features.deferred_corruption import DeferredCorruption, DeferredCorruptionFactory, corrupts_on_device
from jostle.features.extraction import Cost
from jostle.features.interpolation import MendingResult, nearest_undamaged
from jostle.models.language.interface import Answer, MomentModel, Question, QuestionModel, Sentence

Indices = npt.NDArray[np.int64]
Given = TypeVar("Given")  # answer to one question or sentence
OptionOrder = Literal["drawn", "published", "cyclic"]


def sample_rows(times: npt.NDArray[np.float64], end_s: float, count: int, start: float, stop: float | None) -> Indices:
    """Return the frames at the middles of `count` equal parts of a stretch.

    Args:
        times: of all frames, rising.
        end_s: end of the last frame.
        start: first second of the stretch.
        stop: its last second; None for the end of the video.

    >>> sample_rows(np.arange(8) / 4, 2.0, 2, 0.0, None).tolist()
    [2, 6]
    """
    last = min(end_s if stop is None else stop, end_s)
    first = min(max(start, float(times[0])), last)
    moments = first + (np.arange(count) + 0.5) / count * (last - first)
    rows = np.searchsorted(times, moments, side="right") - 1
    return np.clip(rows, 0, len(times) - 1).astype(np.int64)


class _CellFrames:
    """Frames of a video as one cell shows them, with what identifies their pixels."""

    def __init__(
        self,
        footage: Footage,
        top: VideoSource,
        every: Indices,
        damaged: Any = None,
        deferred: DeferredCorruptionFactory | None = None,
    ) -> None:
        self.footage, self._top, self._every, self._deferred = footage, top, every, deferred
        self._replaced = None if damaged is None else nearest_undamaged(damaged)
        self.read = 0

    def rows(self, count: int, start: float | None, stop: float | None) -> Indices:
        """Return the frames at the middles of equal parts of a stretch."""
        return sample_rows(self.footage.clean.pts, self.footage.end_s, count, start or 0.0, stop)

    def key(self, rows: Indices) -> bytes | None:
        """Return the clean frames that these equal, as bytes; None if the cell has made new pixels."""
        came_from = self._every[rows if self._replaced is None else self._replaced[rows]]
        return came_from.tobytes() if (came_from != MADE).all() else None

    def corruption(self, rows: Indices) -> DeferredCorruption | None:
        """Return the corruption that the model's device applies to these frames; None if they are as they should be."""
        return self._deferred(rows) if self._deferred is not None and self.key(rows) is None else None

    def take(self, rows: Indices) -> Frames:
        """Return these frames as they are sent to the model, (T, H, W, 3)."""
        if not len(rows):
            return np.zeros((0, *self.footage.clean.size, 3), np.uint8)
        indices = rows if self._replaced is None else self._replaced[rows]
        self.read += len(indices)
        order = np.argsort(indices, kind="stable")  # sources are read forwards
        frames = SlidingFrames(self._top if self._deferred is None else self.footage.clean).take(indices[order])
        return frames[np.argsort(order, kind="stable")]


@dataclass(frozen=True)
class LanguagePredictor:
    """Base of predictors that show sampled frames to a model with words."""

    language_model: Any
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: DamageFinder | None = None  # finds corrupted frames, which are replaced by the nearest intact ones

    def _each_cell(self, job: VideoJob, process: Callable[[str, _CellFrames], Any]) -> VideoResult[Any]:
        """Process the frames of each cell; `process` gets the cell's name and its frames."""
        with self.guard(), open_footage(job) as footage:
            outputs: dict[str, Any] = {}
            mended: dict[str, MendingResult] = {}
            finding = None if self.mending is None else self.mending.finder_for(footage.clean)
            spent = {CLEAN: 0, "": 0}
            for cell in job.cells:
                top: VideoSource = footage.under(cell)
                every, damaged = origins(top), None
                if finding is not None:
                    top = CachedFrames(top)
                    with naming(cell=cell.name):
                        damaged = finding.find_damaged(top, every)
                    mended[cell.name] = MendingResult(damaged, bool(damaged.all()))
                on_device = finding is None and corrupts_on_device(self.language_model, cell.parsed)
                deferred = footage.deferred(cell) if on_device else None
                cell_frames = _CellFrames(footage, top, every, damaged, deferred)
                outputs[cell.name] = process(cell.name, cell_frames)
                spent[CLEAN if cell.name == CLEAN else ""] += cell_frames.read
            clean = Cost(footage.decoded, spent[CLEAN], 0)
            return VideoResult(outputs, clean, Cost(0, spent[""], 0), mended=None if finding is None else mended)


@dataclass(frozen=True)
class QuestionPredictor(LanguagePredictor):
    """Predictor that asks a model every question of a video in every cell."""

    language_model: QuestionModel
    orders: OptionOrder = "drawn"  # of options: by the seed, as published, or all cyclic ones

    def __call__(self, job: VideoJob) -> VideoResult[VideoAnswers[QuestionAnswer]]:
        known: dict[tuple[str, bytes], QuestionAnswer] = {}

        def process(cell: str, cell_frames: _CellFrames) -> VideoAnswers[QuestionAnswer]:
            answers = self._ask(job, cell, cell_frames, self.language_model.frames, known)
            baselines: dict[str, tuple[QuestionAnswer, ...]] = {}
            failed: dict[str, str] = {}
            for name, count in zip(BASELINES, (0, 1), strict=True) if cell == CLEAN and job.baselines else ():
                try:
                    baselines[name] = self._ask(job, cell, cell_frames, count, {})
                except ResourceError:
                    raise
                except JostleError as error:
                    failed[name] = str(error)
            return VideoAnswers(answers, baselines, failed)

        return self._each_cell(job, process)

    def _ask(
        self,
        job: VideoJob,
        cell: str,
        cell_frames: _CellFrames,
        count: int,
        known: dict[tuple[str, bytes], QuestionAnswer],
    ) -> tuple[QuestionAnswer, ...]:
        """Ask all questions; those about one stretch in one call, with the same frames."""
        answers: dict[str, QuestionAnswer] = {}
        by_stretch: dict[tuple[float | None, float | None], list[QuestionItem]] = {}
        for item in job.items:
            by_stretch.setdefault((item.start, item.end), []).append(item)
        for (start, stop), items in by_stretch.items():
            rows = cell_frames.rows(count, start, stop)
            key = cell_frames.key(rows)
            left = [item for item in items if key is None or (item.id, key) not in known]
            if left:
                times, corruption = cell_frames.footage.clean.pts[rows], cell_frames.corruption(rows)
                ask = partial(_ask, self.language_model.answer, corruption)
                new = ask_in_orders(job, ask, left, cell_frames.take(rows), times, self.orders, cell)
                answers |= dict(zip((item.id for item in left), new, strict=True))
            for item in items:
                if key is not None:
                    answers[item.id] = known.setdefault((item.id, key), answers.get(item.id, QuestionAnswer(None)))
        return tuple(answers[item.id] for item in job.items)


def ask_in_orders(
    job: VideoJob,
    ask: Callable[[list[Question]], Sequence[Answer]],
    items: Sequence[QuestionItem],
    frames: Frames,
    times: npt.NDArray[np.float64],
    orders: OptionOrder,
    cell: str = "",
) -> list[QuestionAnswer]:
    """Ask questions with their options in the chosen order, and return answers in the published one."""
    plans = [option_orders(item, orders, job.seed) for item in items]
    questions = [
        Question(frames, times, item.text, tuple(item.options[i] for i in order))
        for item, plan in zip(items, plans, strict=True)
        for order in plan
    ]
    given = iter(call_model(job.name, lambda: _checked_answers(ask, questions), cell=cell))
    return [merge_orders([(next(given), order) for order in plan]) for plan in plans]


def _ask(
    method: Callable[..., Sequence[Given]], corruption: DeferredCorruption | None, asked: Sequence[Any]
) -> list[Given]:
    """Call a model's method; frames that are sent clean come with the corruption to apply first."""
    return list(method(asked) if corruption is None else method(asked, corruption))


def _checked_answers(ask: Callable[[list[Question]], Sequence[Answer]], questions: list[Question]) -> list[Answer]:
    answers = list(ask(questions))
    if len(answers) != len(questions):
        raise DataError(f"the model gave {len(answers)} answers to {len(questions)} questions", fault="F159")
    for answer, question in zip(answers, questions, strict=True):
        options = len(question.options)
        wrong_choice = answer.choice is not None and not 0 <= answer.choice < options
        if wrong_choice or (answer.log_probs is not None and len(answer.log_probs) != options):
            raise DataError(f"the model's answer does not fit the {options} options of {question.text!r}", fault="F159")
    return answers


def option_orders(item: QuestionItem, orders: OptionOrder, seed: int) -> list[list[int]]:
    """Return the orders in which the options of a question are listed, each as indices into the published one."""
    count = len(item.options)
    if orders == "published":
        return [list(range(count))]
    if orders == "drawn":
        return [rng_for(seed, "order of options", item.id).permutation(count).tolist()]
    return [[(i + shift) % count for i in range(count)] for shift in range(count)]


def merge_orders(answers: Sequence[tuple[Answer, Sequence[int]]]) -> QuestionAnswer:
    """Return one answer in the published order of options: mean probabilities, or the choice of most orders.

    >>> merge_orders([(Answer(None, "B", 1), [1, 0])]).choice
    0
    """
    texts = [answer.text for answer, _ in answers if answer.text is not None]
    text = "\n".join(texts) if texts else None
    if all(answer.log_probs is not None for answer, _ in answers):
        total = np.zeros(len(answers[0][1]))
        for answer, order in answers:
            assert answer.log_probs is not None
            total[list(order)] += [math.exp(value) for value in answer.log_probs]
        probabilities = total / total.sum()
        if len(answers) == 1:
            choice = answers[0][0].choice
            chosen = None if choice is None else answers[0][1][choice]
        else:
            chosen = int(probabilities.argmax())
        return QuestionAnswer(chosen, tuple(probabilities.tolist()), text)
    votes = Counter(None if answer.choice is None else order[answer.choice] for answer, order in answers)
    (best, most), *others = votes.most_common()
    return QuestionAnswer(None if any(count == most for _, count in others) else best, None, text)


@dataclass(frozen=True)
class MomentPredictor(LanguagePredictor):
    """Predictor that asks a model for the windows of every sentence of a video in every cell."""

    language_model: MomentModel

    def __call__(self, job: VideoJob) -> VideoResult[VideoAnswers[MomentPrediction]]:
        known: dict[bytes, tuple[MomentPrediction, ...]] = {}

        def process(cell: str, cell_frames: _CellFrames) -> VideoAnswers[MomentPrediction]:
            predictions = self._locate(job, cell, cell_frames, self.language_model.frames, known)
            baselines: dict[str, tuple[MomentPrediction, ...]] = {}
            failed: dict[str, str] = {}
            for name, count in zip(BASELINES, (0, 1), strict=True) if cell == CLEAN and job.baselines else ():
                try:
                    baselines[name] = self._locate(job, cell, cell_frames, count, {})
                except ResourceError:
                    raise
                except JostleError as error:
                    failed[name] = str(error)
            return VideoAnswers(predictions, baselines, failed)

        return self._each_cell(job, process)

    def _locate(
        self,
        job: VideoJob,
        cell: str,
        cell_frames: _CellFrames,
        count: int,
        known: dict[bytes, tuple[MomentPrediction, ...]],
    ) -> tuple[MomentPrediction, ...]:
        footage = cell_frames.footage
        rows = cell_frames.rows(count, None, None)
        key = cell_frames.key(rows)
        if key is not None and key in known:
            return known[key]
        frames = cell_frames.take(rows)
        items: Sequence[MomentItem] = job.items
        sentences = [Sentence(frames, footage.clean.pts[rows], item.text, footage.end_s) for item in items]
        ask = partial(_ask, self.language_model.locate, cell_frames.corruption(rows))
        given = call_model(job.name, lambda: ask(sentences), cell=cell)
        if len(given) != len(sentences):
            raise DataError(f"the model gave windows for {len(given)} of {len(sentences)} sentences", fault="F159")
        predictions = tuple(MomentPrediction(one.windows) for one in given)
        for window in (window for one in predictions for window in one.windows):
            if not all(map(math.isfinite, window)) or window[1] < window[0]:
                raise DataError(f"the model gave the window {window[0]:g} to {window[1]:g} s; correct it", fault="F155")
        if key is not None:
            known[key] = predictions
        return predictions
