"""Scores of whole videos in many cells: each is decoded once, and only the frames that are shown are corrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.corruptions.engine.stages import MADE, Source, origins
from jostle.datasets.class_matching import ClassMatch, Scores
from jostle.evaluation.inference.footage import Footage, footage_of
from jostle.evaluation.inference.frame_sampling import ClipSpec, shown_frames
from jostle.evaluation.inference.jobs import Looked, Order, asked
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.recipes.sampling import Sampling
from jostle.features.deferred_corruption import UNTOUCHED, Strike, Striking
from jostle.features.frames import Belt, KeptFrames
from jostle.features.interpolation import Mended, nearest_sound
from jostle.features.result import Cost
from jostle.mending.damage import Mending

Indices = npt.NDArray[np.int64]
Answer = TypeVar("Answer")  # of a model on one clip
Later = Callable[[], Sequence[Answer]]
BATCH_BYTES = 64 * 2**20  # of clips that wait to be looked at together


class ClipModel(Protocol):
    """Clips in, scores of classes out; every `jostle.models.Recogniser` does that."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ClipSpec | None:
        """None for a model that says nothing about what it wants."""

    def __call__(self, clip_frames: Frames) -> Scores:
        """(B, classes) from (B, T, H, W, 3) uint8, the same bits for a clip in any company."""


@dataclass(frozen=True)
class Recognising:
    """Looks at a video: shows clips of it to a model, in every cell the same ones, and averages the scores.

    Attributes:
        sampling: which frames are shown.
        match: makes scores of the data set's classes of the model's.
        batch: clips given at once.
        guard: a context to work in, such as one that keeps a library to one thread.
        mending: tells which frames were struck; the nearest sound ones are shown instead.
    """

    model: ClipModel
    sampling: Sampling
    match: ClassMatch
    batch: int = 1
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: Mending | None = None

    def __call__(self, order: Order) -> Looked[Scores]:
        with self.guard(), footage_of(order) as footage:
            rows = self._rows(footage, order)
            scoring = Scoring(order.name, partial(scored, self.model, self.match), self.batch)
            clean, mended = Cost(), dict[str, Mended]()
            finding = None if self.mending is None else self.mending.of(footage.clean)
            for cell in order.cells:
                top: Source = footage.under(cell)
                every, taken = origins(top), rows
                if finding is not None:
                    top = KeptFrames(top)  # the inspector and the model look at the same frames
                    struck = finding.struck(top, every)
                    taken = nearest_sound(struck)[rows]
                    mended[cell.name] = Mended(struck, bool(struck.all()))
                striking = footage.striking(cell) if finding is None and self._struck_there(cell) else None
                came_from, belt = every[taken], Belt(top if striking is None else footage.clean, taken)
                for number, row in enumerate(taken):
                    scoring.want((cell.name, number), came_from[number], row, belt, striking)
                if cell.name == CLEAN:
                    scoring.finish()
                    clean = scoring.cost(footage.decoded)
            scoring.answered()
            found = {
                cell.name: np.asarray(
                    np.mean([scoring[cell.name, i] for i in range(len(rows))], axis=0, dtype=np.float64), np.float32
                )
                for cell in order.cells
            }
            shown = tuple(np.unique(rows).tolist())
            cells = scoring.cost(footage.decoded, clean)
            return Looked(found, clean, cells, shown=shown, mended=None if finding is None else mended)

    def _struck_there(self, cell: Cell) -> bool:
        """Whether a cell is one corruption, and clips are struck by it where the model is."""
        there = getattr(self.model, "strikes", None)
        if there is None or len(cell.specs) != 1 or not cell.parsed[0].severity:
            return False
        return bool(there(cell.specs[0]))

    def _rows(self, footage: Footage, order: Order) -> Indices:
        """(clips, frames) numbers of the frames shown."""
        rng = rng_for(order.seed, "clips", order.name)
        return shown_frames(self.sampling, self.model.spec, footage.clean.pts, footage.clean.fps, rng)


class Scoring(Generic[Answer]):
    """What a model says of the clips of one video; clips that are known to have the same pixels are looked at once.

    Args:
        look: has a model look at some clips, (B, T, H, W, 3); what it gives waits for an answer for each.
        batch: clips given at once.
    """

    def __init__(self, video: str, look: Callable[[Frames, Strike], Later[Answer]], batch: int) -> None:
        self._video, self._look, self._batch = video, look, batch
        self._slot: dict[tuple[str, int], int] = {}
        self._known: dict[bytes, int] = {}
        self._answers: list[Answer | None] = []
        self._waiting: list[tuple[int, Frames, Indices]] = []
        self._striking: Striking | None = None  # of all that wait
        self._looking: list[tuple[list[int], Later[Answer]]] = []
        self._clips = self._frames = 0

    def want(
        self,
        place: tuple[str, int],
        came_from: Indices,
        row: Indices,
        belt: Belt,
        striking: Striking | None = None,
    ) -> None:
        """Have the clip of frames `row` scored; `came_from` says which untouched frames they are.

        Args:
            striking: what is done to it where the model is; the belt's frames are untouched then.
        """
        key = came_from.tobytes() if (came_from != MADE).all() else None
        if key is not None and key in self._known:
            self._slot[place] = self._known[key]
            return
        slot = self._slot[place] = len(self._answers)
        self._answers.append(None)
        if key is not None:
            self._known[key] = slot
        clip = belt.take(row)
        if striking is not self._striking:
            self.finish()
            self._striking = striking
        self._waiting.append((slot, clip, row))
        if len(self._waiting) >= self._batch or len(self._waiting) * clip.nbytes >= BATCH_BYTES:
            self.finish()

    def finish(self) -> None:
        """Have what waits looked at."""
        if not self._waiting:
            return
        slots, some, rows = zip(*self._waiting, strict=True)
        clips = np.stack(some) if len(some) > 1 else some[0][None]
        strike = UNTOUCHED if self._striking is None else self._striking(np.stack(rows))
        self._looking.append((list(slots), asked(self._video, lambda: self._look(clips, strike))))
        self._clips += len(clips)
        self._frames += clips.shape[0] * clips.shape[1]
        self._waiting.clear()

    def answered(self) -> None:
        """Wait for what is being looked at, after the last of it."""
        self.finish()
        for slots, answers in self._looking:
            for slot, answer in zip(slots, asked(self._video, answers), strict=True):
                self._answers[slot] = answer
        self._looking.clear()

    def cost(self, decoded: int, before: Cost = Cost()) -> Cost:  # noqa: B008
        """What was computed, besides what had been before."""
        return Cost(decoded, self._frames, self._clips) - before

    def __getitem__(self, place: tuple[str, int]) -> Answer:
        found = self._answers[self._slot[place]]
        assert found is not None
        return found


def later(model: Callable[[Frames], Any], frames: Frames, strike: Strike = UNTOUCHED) -> Callable[[], Any]:
    """What a model gives for frames, to be waited for where the model is elsewhere, and struck there."""
    if hasattr(model, "later"):
        answer: Callable[[], Any] = model.later(frames, strike)
        return answer
    given = model(frames)
    return lambda: given


def scored(model: ClipModel, match: ClassMatch, clips: Frames, strike: Strike = UNTOUCHED) -> Later[Scores]:
    """Scores of the data set's classes for each clip."""
    answer = later(model, clips, strike)
    return lambda: list(match.apply(answer(), model.name))
