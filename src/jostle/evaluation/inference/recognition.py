"""Recognition of whole videos in many cells: decoded once, and only the sampled frames are corrupted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from jostle.core.finite import naming
from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.damage_finder import DamageFinder, FindsDamage
from jostle.corruptions.engine.stages import MADE, origins
from jostle.datasets.class_matching import ClassMatch, Scores
from jostle.errors import NonFiniteOutput
from jostle.evaluation.inference.footage import Footage, open_footage
from jostle.evaluation.inference.jobs import VideoJob, VideoResult, call_model
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.recipes.sampling import Sampling, sample_frames
from jostle.features.caches import CachedFrames, SlidingFrames
from jostle.features.deferred_corruption import DeferredCorruptionFactory, DeferredCorruptions, corrupts_on_device
from jostle.features.extraction import Cost
from jostle.features.interpolation import MendingResult, nearest_undamaged

if TYPE_CHECKING:
    from jostle.evaluation.recipes.sampling import ClipSpec

Indices = npt.NDArray[np.int64]
Result = TypeVar("Result")
Answer = TypeVar("Answer")  # output of a model for one clip
Pending = Callable[[], Sequence[Answer]]
BATCH_BYTES = 64 * 2**20  # of clips queued for one model call


class ClipModel(Protocol):
    """Protocol of models from clips to class scores; every `jostle.models.Recogniser` implements it."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ClipSpec | None:
        """Clip settings; None for a model without any."""

    def __call__(self, clip_frames: Frames) -> Scores:
        """Return (B, classes) scores of (B, T, H, W, 3) uint8 clips, bit-identical in any batch."""


@dataclass(frozen=True)
class RecognitionPredictor:
    """Predictor of a recogniser: averages the scores of the same clips in every cell."""

    model: ClipModel
    sampling: Sampling  # selects the frames
    match: ClassMatch  # maps the model's classes to the data set's
    batch: int = 1  # clips per call
    # Context manager for model calls, such as one that limits threads.
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    mending: DamageFinder | None = None  # finds corrupted frames, which are replaced by the nearest intact ones

    @property
    def reuses(self) -> bool:
        """Whether clips share batches; alone, equal clips are computed equally."""
        return self.batch > 1

    def __call__(self, job: VideoJob) -> VideoResult[Scores]:
        with self.guard(), open_footage(job) as footage:
            rows = self.sample_rows(footage, job)
            batch = self.batch if job.reuse else 1
            scorer = ClipScorer(job.name, partial(submit_clips, self.model, self.match), batch, reuse=job.reuse)
            clean, mended = Cost(), dict[str, MendingResult]()
            finding = None if self.mending is None else self.mending.finder_for(footage.clean)
            on_device: list[_CorruptedOnDevice] = []
            for cell in job.cells:
                top, every, indices = choose_frames(footage.under(cell), rows, finding, cell, mended)
                if finding is None and corrupts_on_device(self.model, cell.parsed):
                    on_device.append(_CorruptedOnDevice(cell.name, every[rows], footage.deferred(cell)))
                    continue
                came_from, frame_window = every[indices], SlidingFrames(top, indices)
                for number, row in enumerate(indices):
                    scorer.request((cell.name, number), came_from[number], row, frame_window)
                if cell.name == CLEAN:
                    scorer.flush()
                    clean = scorer.cost(footage.decoded)
            copies = (
                max(getattr(self.model, "most", 1) // batch, 1) if job.reuse else 1
            )  # so that copies of clips fill a batch
            for lo in range(0, len(on_device), copies):
                frame_window = SlidingFrames(footage.clean, rows)
                for number, row in enumerate(rows):
                    scorer.request_copies(number, on_device[lo : lo + copies], row, frame_window)
            scorer.wait()
            outputs = {
                cell.name: np.asarray(
                    np.mean([scorer[cell.name, i] for i in range(len(rows))], axis=0, dtype=np.float64), np.float32
                )
                for cell in job.cells
            }
            frame_indices = tuple(np.unique(rows).tolist())
            cells = scorer.cost(footage.decoded, clean)
            return VideoResult(
                outputs, clean, cells, frame_indices=frame_indices, mended=None if finding is None else mended
            )

    def sample_rows(self, footage: Footage, job: VideoJob) -> Indices:
        """Return the (clips, frames) indices of the sampled frames."""
        rng = rng_for(job.seed, "clips", job.name)
        return sample_frames(self.sampling, self.model.spec, footage.clean.pts, footage.clean.fps, rng)


def choose_frames(
    top: VideoSource, rows: Indices, finding: FindsDamage | None, cell: Cell, mended: dict[str, MendingResult]
) -> tuple[VideoSource, Indices, Indices]:
    """Return the frames of a cell, the clean frames they equal, and the indices of clips, mended if requested.

    Args:
        rows: (clips, frames) indices of the sampled frames.
        finding: finds corrupted frames, which are replaced by the nearest intact ones; None without mending.
        mended: receives the corrupted frames of the cell.
    """
    every = origins(top)
    if finding is None:
        return top, every, rows
    top = CachedFrames(top)  # the inspector and the model read the same frames
    with naming(cell=cell.name):
        corrupted = finding.find_damaged(top, every)
    mended[cell.name] = MendingResult(corrupted, bool(corrupted.all()))
    return top, every, nearest_undamaged(corrupted)[rows]


@dataclass(frozen=True, eq=False)
class _CorruptedOnDevice:
    """Cell whose clips are sent clean, to be corrupted on the model's device."""

    name: str
    came_from: Indices  # (clips, frames) the clean frames that its frames equal
    deferred: DeferredCorruptionFactory


class ClipScorer(Generic[Answer]):
    """Batched scoring of the clips of one video; clips known to have the same pixels are scored once.

    Args:
        submit: starts scoring of (B, T, H, W, 3) clips; the function it returns waits for one answer per clip, of each
            corruption one after the other.
        reuse: whether clips known to be equal are scored once.
    """

    def __init__(
        self,
        video: str,
        submit: Callable[[Frames, DeferredCorruptions], Pending[Answer]],
        batch: int,
        *,
        reuse: bool = True,
    ) -> None:
        self._video, self._submit, self._batch, self._reuse = video, submit, batch, reuse
        self._slot: dict[tuple[str, int], int] = {}
        self._known: dict[bytes, int] = {}
        self._answers: list[Answer | None] = []
        self._queue: list[tuple[tuple[int, ...], Indices]] = []  # slots of each clip, one for each copy, and its frames
        self._clips_queued: Frames | None = None  # (batch, T, H, W, 3), of which the queue fills the first
        self._deferred: tuple[DeferredCorruptionFactory, ...] = ()  # of all queued clips
        self._pending: list[tuple[list[int], Pending[Answer]]] = []
        self._clips = self._frames = 0

    def request(self, slot_key: tuple[str, int], came_from: Indices, row: Indices, frame_window: SlidingFrames) -> None:
        """Queue the clip of frames `row` for scoring; `came_from` gives the clean frames they equal."""
        slot = self._add_slot(slot_key, came_from)
        if slot is not None:
            self._enqueue((slot,), row, frame_window, ())

    def request_copies(
        self, number: int, cells: Sequence[_CorruptedOnDevice], row: Indices, frame_window: SlidingFrames
    ) -> None:
        """Queue a clip of clean frames for scoring in several cells, whose corruptions the model's device applies."""
        slots = {cell: self._add_slot((cell.name, number), cell.came_from[number]) for cell in cells}
        new = {cell: slot for cell, slot in slots.items() if slot is not None}
        if new:
            self._enqueue(tuple(new.values()), row, frame_window, tuple(cell.deferred for cell in new))

    def _add_slot(self, slot_key: tuple[str, int], came_from: Indices) -> int | None:
        """Add a slot for an answer and return it; None if another slot has the answer to the same frames."""
        key = came_from.tobytes() if self._reuse and (came_from != MADE).all() else None
        if key is not None and key in self._known:
            self._slot[slot_key] = self._known[key]
            return None
        slot = self._slot[slot_key] = len(self._answers)
        self._answers.append(None)
        if key is not None:
            self._known[key] = slot
        return slot

    def _enqueue(
        self,
        slots: tuple[int, ...],
        row: Indices,
        frame_window: SlidingFrames,
        deferred: tuple[DeferredCorruptionFactory, ...],
    ) -> None:
        if deferred != self._deferred:
            self.flush()
            self._deferred = deferred
        if self._clips_queued is None:
            shape = (*row.shape, *frame_window.size, 3)
            self._clips_queued = np.empty((self._most_clips(shape), *shape), np.uint8)
        frame_window.take(row, into=self._clips_queued[len(self._queue)])
        self._queue.append((slots, row))
        if len(self._queue) == len(self._clips_queued):
            self.flush()

    def flush(self) -> None:
        """Submit the queued clips to the model."""
        if not self._queue:
            return
        assert self._clips_queued is not None
        slots_by_clip, rows = zip(*self._queue, strict=True)
        slots = [slot for copies in zip(*slots_by_clip, strict=True) for slot in copies]
        clips, self._clips_queued = self._clips_queued[: len(rows)], None
        corruptions = DeferredCorruptions(deferred(np.stack(rows)) for deferred in self._deferred)
        self._pending.append((slots, self._call(lambda: self._submit(clips, corruptions), slots)))
        self._clips += len(slots)
        self._frames += len(slots) * clips.shape[1]
        self._queue.clear()

    def _most_clips(self, shape: tuple[int, ...]) -> int:
        """Return how many clips of a shape are submitted together: a batch, or fewer if they are large."""
        return max(min(self._batch, -(-BATCH_BYTES // math.prod(shape))), 1)

    def wait(self) -> None:
        """Submit what is queued, and wait for all answers."""
        self.flush()
        for slots, pending in self._pending:
            for slot, answer in zip(slots, self._call(pending, slots), strict=True):
                self._answers[slot] = answer
        self._pending.clear()

    def _call(self, model: Callable[[], Result], slots: Sequence[int]) -> Result:
        """Call the model on a batch; an error about some of its clips names their cells."""
        try:
            return call_model(self._video, model)
        except NonFiniteOutput as error:
            wrong = {slots[row] for row in error.rows} or set(slots)
            cells = dict.fromkeys(cell for (cell, _), slot in self._slot.items() if slot in wrong)
            raise error.at(cell=" or ".join(cells)) from error.__cause__

    def cost(self, decoded: int, before: Cost = Cost()) -> Cost:  # noqa: B008
        """Return the cost so far, minus `before`."""
        return Cost(decoded, self._frames, self._clips) - before

    def __getitem__(self, key: tuple[str, int]) -> Answer:
        answer = self._answers[self._slot[key]]
        assert answer is not None
        return answer


def submit_frames(
    model: Callable[[Frames], Any],
    frames: Frames,
    corruptions: DeferredCorruptions = DeferredCorruptions(),  # noqa: B008
) -> Callable[[], Any]:
    """Submit frames to a model, which a remote one corrupts first; the returned function waits for the output."""
    if hasattr(model, "submit"):
        pending: Callable[[], Any] = model.submit(frames, corruptions)
        return pending
    output = model(frames)
    return lambda: output


def submit_clips(
    model: ClipModel,
    match: ClassMatch,
    clips: Frames,
    corruptions: DeferredCorruptions = DeferredCorruptions(),  # noqa: B008
) -> Pending[Scores]:
    """Submit clips to a model; the returned function waits for scores of the data set's classes."""
    pending = submit_frames(model, clips, corruptions)
    return lambda: list(match.apply(pending(), model.name))
