"""Small objects for model processes, in a module of their own so that processes can import them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle.errors import CheckpointError, SourceChanged
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.remote import connect_predictor


@dataclass(frozen=True)
class FakeStreams:
    """As on a CPU."""

    count: int = 1

    def initialize(self) -> None:
        pass

    @contextmanager
    def stream(self) -> Iterator[None]:
        yield

    def pin_memory(self, memory: object) -> Callable[[], None]:
        return int  # something that may be called


class Adder:
    """Adds a number to arrays, taking some time for one alone, and knows how many came together."""

    def __init__(self, number: int, nap_s: float = 0.01) -> None:
        self.number, self.nap_s = number, nap_s
        self.together: list[int] = []


def adder(number: int = 1, nap_s: float = 0.01) -> Adder:
    return Adder(number, nap_s)


class Foreign:
    """A predictor with a model that is no class of jostle; it knows how many threads called it at once."""

    def __init__(self) -> None:
        self.model = self
        self.inside = self.most = 0


def overlap(predictor: Foreign, values: np.ndarray) -> tuple[int, bool]:
    """Return the number of threads that were inside at once, at most, and whether the input is a copy."""
    predictor.inside += 1
    predictor.most = max(predictor.most, predictor.inside)
    time.sleep(0.01)
    predictor.inside -= 1
    return predictor.most, values.flags.writeable


def keep(kept: list[np.ndarray], values: np.ndarray) -> None:
    kept.append(values)


def unreadable() -> Adder:
    raise CheckpointError("no such weights", fault="F54")


def die_on_load(mark: Path) -> Adder:
    """Loads once, and its process is killed when it loads again."""
    if mark.exists():
        os.kill(os.getpid(), signal.SIGKILL)
    mark.touch()
    return Adder(1)


def unreadable_again(mark: Path) -> Adder:
    """Loads once; after that its weights are gone."""
    if mark.exists():
        raise CheckpointError("no such weights", fault="F54")
    mark.touch()
    return Adder(1)


def add(thing: Adder, items: np.ndarray) -> np.ndarray:
    time.sleep(thing.nap_s)
    thing.together.append(1)
    return items + thing.number


def add_together(thing: Adder, questions: Sequence[tuple[np.ndarray]]) -> list[np.ndarray]:
    if any((items == 255).all() for (items,) in questions):
        raise SourceChanged("one of them is white")
    thing.together.append(len(questions))
    return [items + thing.number for (items,) in questions]


add.together = add_together  # type: ignore[attr-defined]


def how_many_together(thing: Adder) -> list[int]:
    return thing.together


def worker_id(thing: Adder) -> int:
    return os.getpid()


def worker_id_slowly(thing: Adder, items: np.ndarray) -> int:
    time.sleep(0.05)
    return os.getpid()


NAP_S = 0.3


def sleep(thing: Adder, items: np.ndarray) -> int:
    time.sleep(NAP_S)
    return int(items[0, 0])


def fail(thing: Adder, what: str) -> None:
    raise SourceChanged(what, fault="F9")


def die(thing: Adder) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(thing: Adder, items: np.ndarray, mark: Path) -> int:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return int(items.sum())


def write_into(thing: Adder, items: np.ndarray) -> int:
    items[:] = 7
    return int(items.sum())


def asking(served: Any) -> Callable[[int], int]:
    """Worker that returns, for the picture of each number, its first pixel plus one."""

    def work(number: int) -> int:
        picture = np.full((1, 200, 400, 3), number, np.uint8)
        answers = [served.submit(add, picture, together=4) for _ in range(20)]
        return int(np.max([answer() for answer in answers]))

    return work


def dying_while_asking(served: Any, mark: Path) -> Callable[[int], int]:
    """The same, but the first worker that is at number 3 is killed when its questions are under way."""
    work = asking(served)

    def die_once_at_three(number: int) -> int:
        if number == 3 and not mark.exists():
            mark.touch()
            for _ in range(6):
                served.submit(add, np.zeros((1, 200, 400, 3), np.uint8), together=4)
            os.kill(os.getpid(), signal.SIGKILL)
        return work(number)

    return die_once_at_three


def report_torch(served: Any) -> Callable[[VideoJob], bool]:
    look = connect_predictor(served)

    def tell(order: VideoJob) -> bool:
        assert look(order).outputs["clean"].shape == (3,)
        return "torch" in sys.modules

    return tell
