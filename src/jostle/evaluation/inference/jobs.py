"""Videos as work: what is told of one to whoever looks at it, what comes back, and how the work is shared out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from jostle.core.timing import Spent, spent_on, spent_so_far
from jostle.core.types.segments import Segments
from jostle.errors import DataError, JostleError, ResourceError, SourceChanged
from jostle.evaluation.recipes.recipe import Cell
from jostle.features.interpolation import Mended
from jostle.features.result import Cost
from jostle.io.files.fingerprint import source_state
from jostle.io.video.source import fingerprint_of

Found = TypeVar("Found")  # in one video in one cell


@dataclass(frozen=True)
class Order:
    """One video for one worker, and the cells it is to be looked at in.

    Attributes:
        segments: its actions, for placements to strike; None where nothing is annotated in time.
        frames: names of the frames that are looked at, where not all are.
        fps: the rate of a folder of images, where the folder does not say it.
        portion: which of its frames these are, where results are kept by portions; None for all.
    """

    name: str
    path: Path
    cells: tuple[Cell, ...]
    seed: int
    segments: Segments | None = None
    frames: tuple[str, ...] = ()
    fps: Fraction | None = None
    portion: int | None = None

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Source:
    """What a video is known by: size, time of change, and checksum."""

    size: int
    changed_ns: int
    source: str


@dataclass(frozen=True)
class Looked(Generic[Found]):
    """What was found in one video.

    Attributes:
        found: by cell.
        clean: what the clean video cost.
        cells: what all other cells cost on top.
        source: the file or folder of images that was looked at.
        shown: numbers of the frames that the model was shown, where not all were.
        spent: what the time went to.
        mended: what became of struck frames, by cell; None where they are let be.
    """

    found: dict[str, Found]
    clean: Cost
    cells: Cost
    source: Source | None = None
    shown: tuple[int, ...] | None = None
    spent: Spent = Spent()  # noqa: RUF009
    mended: dict[str, Mended] | None = None


Look = Callable[[Order], Looked[Found]]
Result = Looked[Found] | JostleError  # what is wrong, of a video that cannot be used


class Engine(Protocol):
    """Shares work out; `jostle.parallel.workers.worked` does it among processes of this machine."""

    def __call__(
        self,
        start: Callable[[], Callable[[Any], Any]],
        items: Sequence[Any],
        jobs: int,
        /,
        *,
        lost: Callable[[Any, ResourceError], Any] | None = None,
    ) -> Generator[tuple[Any, Any], None, None]:
        """Results of items as they are done; `start` is called once by each worker, and gives what does the work.

        Args:
            lost: gives what stands for the result of an item that workers died of, instead of the error.
        """


@dataclass(frozen=True)
class Attempting(Generic[Found]):
    """Starts a worker: loads there what looks at videos, and has one bad video set aside instead of ending all."""

    load: Callable[[], Look[Found]]

    def __call__(self) -> Callable[[Order], Result[Found]]:
        look = self.load()

        def attempt(order: Order) -> Result[Found]:
            try:
                before, spent = _state(order.path), spent_so_far()
                with spent_on("corrupting"):
                    looked = look(order)
                source = None if before is None else _source(order.path, before)
                return replace(looked, source=source, spent=spent_so_far() - spent)
            except ResourceError:
                raise
            except JostleError as error:
                return error

        return attempt


def _state(path: Path) -> tuple[int, int] | None:
    try:
        return source_state(path)
    except JostleError:  # whoever looks at it says what is wrong with it
        return None


def _source(path: Path, before: tuple[int, int]) -> Source:
    """The file as it was from before it was opened until now: what was found is of this one and no other."""
    checksum = _checksum(path, before)
    if source_state(path) != before:
        raise SourceChanged(
            f"{path}: changed while it was being looked at; run again with --retry-failed when nothing writes to it",
            fault="F19",
        )
    return Source(*before, checksum)


@lru_cache(maxsize=1)
def _checksum(path: Path, state: tuple[int, int]) -> str:
    """Of a file or folder in a state: portions of one video come one after another."""
    return fingerprint_of(path)


def asked(name: str, model: Callable[[], Found], what: str = "model") -> Found:
    """What somebody's model gives for a video, or an error of ours that says that it failed.

    Args:
        what: the word for it in the message.

    Raises:
        ResourceError: if memory ran out, which the next video will not mend.
        DataError: F78 for anything else.
    """
    try:
        with spent_on("model"):
            return model()
    except JostleError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            raise ResourceError(f"video {name}: no memory left for the {what} ({why}); use fewer jobs") from error
        raise DataError(f"video {name}: the {what} failed ({why}); -vv shows where", fault="F78") from error
