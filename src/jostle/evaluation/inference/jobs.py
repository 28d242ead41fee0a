"""Jobs of a run: one video for one worker, its result, and the protocol of engines that distribute jobs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from jostle.core.finite import naming
from jostle.core.interruption import exits_as_errors
from jostle.core.timing import StageTimes, elapsed_stage_times, measure_stage
from jostle.core.types.segments import Segments
from jostle.errors import DataError, ForeignExit, JostleError, NonFiniteOutput, ResourceError, SourceChanged
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.features.extraction import Cost
from jostle.features.interpolation import MendingResult
from jostle.io.video.source import fingerprint_of, source_state

NOT_FINITE = "F40"  # fault of `Segments` and `Boxes`, which a user's model makes
MODEL_FAULTS = ("F78", "F121", "F122", "F155", "F159")  # faults of models rather than of videos
Output = TypeVar("Output")  # prediction for one video in one cell


@dataclass(frozen=True)
class VideoJob:
    """One video for one worker, with the cells to process it in."""

    name: str
    path: Path
    cells: tuple[Cell, ...]
    seed: int
    segments: Segments | None = None  # its actions, for placements; None where nothing is annotated in time
    frames: tuple[str, ...] = ()  # names of the frames to process, where not all are
    fps: Fraction | None = None  # the rate of a folder of images that does not record one
    # Number of this portion of the frames, where results are stored by portions; None for all.
    portion: int | None = None
    items: tuple[Any, ...] = ()  # questions or sentences about the video, for the tasks in words
    baselines: bool = True  # whether these are also put without the video and with one frame
    reuse: bool = True  # whether what a cell leaves as it was comes from the clean video, or is computed again
    check_reuse: bool = False  # whether the first corrupted cell is computed both ways, to compare them

    @property
    def compared_only(self) -> bool:
        """Whether only what models compute with is needed, to compare it, and no predictions."""
        return self.check_reuse and not self.reuse

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class SourceFingerprint:
    """Identity of a video file: size, modification time and checksum."""

    size: int
    changed_ns: int
    source: str


@dataclass(frozen=True)
class VideoAdaptation:
    """Cost of adaptation to one video in its cells, and what the network had adapted to before it."""

    json_keys: ClassVar = ("plain", "forward", "backward", "forward_ratio", "backward_ratio")

    plain: int = 0  # forward passes that prediction without adaptation takes
    forward: int = 0
    backward: int = 0
    # By cell, the history of the state that the video began with: a hash of earlier videos, empty for the source.
    histories: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: VideoAdaptation | None) -> VideoAdaptation:
        if other is None:
            return self
        return VideoAdaptation(self.plain + other.plain, self.forward + other.forward, self.backward + other.backward)

    def __str__(self) -> str:
        ratios = f"{self.forward_ratio:.2f} forward and {self.backward_ratio:.2f} backward passes"
        return f"{ratios} a video and cell (plain: 1 forward)"

    @property
    def forward_ratio(self) -> float:
        """Forward passes over those of prediction without adaptation."""
        return self.forward / max(self.plain, 1)

    @property
    def backward_ratio(self) -> float:
        """Backward passes over the forward passes of prediction without adaptation."""
        return self.backward / max(self.plain, 1)

    @classmethod
    def since(cls, before: Any, after: Any, histories: dict[str, str]) -> VideoAdaptation:
        """Return the passes between two counts of an adapter."""
        return cls(
            after.plain - before.plain, after.forward - before.forward, after.backward - before.backward, histories
        )


@dataclass(frozen=True)
class VideoResult(Generic[Output]):
    """Predictions for one video in its cells.

    Attributes:
        outputs: prediction by cell.
        clean: cost of the clean video.
        cells: additional cost of all other cells.
        source: identity of the file or folder of images.
        frame_indices: indices of the frames that the model processed, where not all were.
        spent: time by kind of work.
        mended: corrupted frames found, by cell; None without mending.
        by_caller: whether the process that called `run` did it alone, before it started workers.
        adaptation: passes through the network, and what it had adapted to before; None without adaptation.
        evidence: of the first corrupted cell what the model computed with, where reuse is checked; empty to compare
            predictions.
        reuse_agrees: whether that cell has the same bits both ways; None where that was not checked.
    """

    outputs: dict[str, Output]
    clean: Cost
    cells: Cost
    source: SourceFingerprint | None = None
    frame_indices: tuple[int, ...] | None = None
    spent: StageTimes = StageTimes()  # noqa: RUF009
    mended: dict[str, MendingResult] | None = None
    by_caller: bool = False
    adaptation: VideoAdaptation | None = None
    evidence: tuple[Any, ...] = ()
    reuse_agrees: bool | None = None


Predictor = Callable[[VideoJob], VideoResult[Output]]
JobResult = VideoResult[Output] | JostleError  # an error stands for a video that cannot be used


class JobEngine(Protocol):
    """Protocol of engines that distribute jobs; `jostle.parallel.workers.map_unordered` uses local processes."""

    def __call__(
        self,
        start: Callable[[], Callable[[Any], Any]],
        items: Sequence[Any],
        jobs: int,
        /,
        *,
        lost: Callable[[Any, ResourceError], Any] | None = None,
    ) -> Generator[tuple[Any, Any], None, None]:
        """Yield items with their results as they finish; each worker calls `start` once to get its work function.

        Args:
            lost: returns the result of an item that killed its workers, instead of raising the error.
        """


@dataclass(frozen=True)
class WorkerFactory(Generic[Output]):
    """Worker start function: loads the predictor, and returns errors of single videos instead of raising them."""

    load: Callable[[], Predictor[Output]]

    def __call__(self) -> Callable[[VideoJob], JobResult[Output]]:
        return self.attempt(self.load())

    def attempt(self, predict: Predictor[Output]) -> Callable[[VideoJob], JobResult[Output]]:
        """Return the work function of a predictor that is loaded."""

        def attempt(job: VideoJob) -> JobResult[Output]:
            try:
                before, spent = _state(job.path), elapsed_stage_times()
                with exits_as_errors(), naming(video=job.name), measure_stage("corrupting"):
                    result = predict(job)
                    if job.check_reuse:
                        result = replace(result, evidence=(), reuse_agrees=_check_reuse(predict, job, result))
                source = None if before is None else _source(job.path, before)
                return replace(result, source=source, spent=elapsed_stage_times() - spent)
            except ResourceError:
                raise
            except JostleError as error:
                return error

        return attempt


def first_corrupted(cells: Sequence[Cell]) -> Cell | None:
    """Return the first cell that is not the clean one, or None."""
    return next((cell for cell in cells if cell.name != CLEAN), None)


def _check_reuse(predict: Predictor[Any], job: VideoJob, result: VideoResult[Any]) -> bool | None:
    """Return whether a corrupted cell has the same bits without reuse; None for a predictor that reuses nothing."""
    cell = first_corrupted(job.cells)
    if cell is None or not getattr(predict, "reuses", False):
        return None
    whole = predict(replace(job, cells=(cell,), reuse=False))
    if result.evidence:
        return same_bits(result.evidence, whole.evidence)
    return same_bits(result.outputs[cell.name], whole.outputs[cell.name])


def same_bits(first: Any, second: Any) -> bool:
    """Return whether two predictions are equal to the bit, with all arrays in them.

    >>> same_bits({"scores": np.array([np.nan])}, {"scores": np.array([np.nan])}), same_bits((0.0,), (-0.0,))
    (True, False)
    """
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        kinds = (first.dtype, first.shape), (second.dtype, second.shape)
        return kinds[0] == kinds[1] and bool(first.tobytes() == second.tobytes())
    if isinstance(first, float):
        return struct.pack("d", first) == struct.pack("d", second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same_bits(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same_bits, first, second))
    if is_dataclass(first):
        return all(same_bits(getattr(first, one.name), getattr(second, one.name)) for one in fields(first))
    return bool(first == second)


def _state(path: Path) -> tuple[int, int] | None:
    try:
        return source_state(path)
    except JostleError:  # the predictor reports what is wrong with it
        return None


def _source(path: Path, before: tuple[int, int]) -> SourceFingerprint:
    """Return the identity of a file, and raise if it changed since `before`."""
    checksum = _checksum(path, before)
    if source_state(path) != before:
        raise SourceChanged(
            f"{path}: changed while it was being processed; run again with --retry-failed when nothing writes to it",
            fault="F19",
        )
    return SourceFingerprint(*before, checksum)


@lru_cache(maxsize=1)
def _checksum(path: Path, state: tuple[int, int]) -> str:
    """Checksum of a file or folder, cached by its state: portions of one video come one after another."""
    return fingerprint_of(path)


def call_model(name: str, model: Callable[[], Output], what: str = "model", cell: str = "") -> Output:
    """Call a user's model on a video, and turn its exceptions into jostle errors.

    Args:
        name: of the video.
        cell: of the benchmark, where the call is about a single one.

    Raises:
        ResourceError: if memory ran out, which ends the run.
        DataError: F121 if its output is not finite, F122 if it tried to end the program, F78 for anything else.
    """
    try:
        with exits_as_errors(), naming(video=name, cell=cell), measure_stage("model"):
            return model()
    except ForeignExit as error:
        raise DataError(f"video {name}: the {what} failed ({error})", fault=error.fault) from error
    except JostleError as error:
        if error.fault == NOT_FINITE:
            raise NonFiniteOutput(f"the {what} failed ({error})", video=name, cell=cell) from error
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            raise ResourceError(f"video {name}: no memory left for the {what} ({why}); use fewer jobs") from error
        raise DataError(f"video {name}: the {what} failed ({why}); -vv shows where", fault="F78") from error
