"""A worker's side: questions go to the process with the model that has least to do, and answers are awaited later."""

from __future__ import annotations

import mmap
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np

from jostle.errors import ResourceError
from jostle.parallel.serialization import opened, packed_apart
from jostle.parallel.serving.server import BOARD, NUMBER
from jostle.parallel.serving.shared_memory import Segment, room_for

INSTEAD = "keep the model in the workers, --model-processes 0"
TRIES = 3  # processes with the model that may die of a question
PATIENCE_S = 300.0
PAUSE_S = 0.05
SMALL_BYTES = 2**16  # goes through the socket
MOST_SEGMENTS, FEWEST_SEGMENTS = 16, 2  # questions of a worker that wait for an answer
MOST_BYTES = 64 * 2**20  # that they share, unless the fewest need more; a GPU takes its time to get to know memory

Answer = Callable[[], Any]


@dataclass(frozen=True)
class Served:
    """Asks one of the processes with the model. It may travel to the workers.

    Attributes:
        addresses: where they listen.
        key: by which they know their own.
        patience_s: for one that is started again, and loads the model again.
    """

    addresses: tuple[str, ...]
    key: bytes = field(repr=False)
    patience_s: float = PATIENCE_S

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """What `function(thing, *arguments)` gives there, where `thing` is what was loaded.

        It may be asked twice when a process dies, so the answer must depend on the arguments alone.

        Raises:
            ResourceError: if processes died over it, or none answers.
        """
        return self.later(function, *arguments)()

    def later(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Answer:
        """Ask, and go on; what is given back waits for the answer.

        Args:
            together: items, which are the rows of the first argument, that `function.together` answers at once, of
                this and of other questions like it.
        """
        return _desk(self).ask(function, arguments, together)

    def busy_s(self) -> float:
        """Seconds that the processes have computed, all of them together, for whomever."""
        return _desk(self).busy_s()


_desks: dict[Served, _Desk] = {}


def _desk(served: Served) -> _Desk:
    if served not in _desks:
        _desks[served] = _Desk(served)
    return _desks[served]


def leave(served: Served) -> None:
    """Give back what this process holds to ask these, if it ever did: lines and memory."""
    if served in _desks:
        _desks.pop(served).close()


@dataclass
class _Asked:
    """A question on its way.

    Attributes:
        segment: of its frames; None where there is none.
        line: that it went by; None for one that no process has.
        deaths: processes that died of it.
        unwanted: whether nobody waits for the answer any more, as when a video turned out to be damaged.
    """

    told: tuple[Any, ...]
    segment: int | None
    line: int | None = None
    deaths: int = 0
    unwanted: bool = False


class _Later:
    """An answer to be waited for."""

    def __init__(self, desk: _Desk, number: int) -> None:
        self._desk, self._number = desk, number

    def __call__(self) -> Any:
        return self._desk.answer(self._number)

    def __del__(self) -> None:
        self._desk.forget(self._number)


class _Line:
    """A connection to a process with the model.

    Attributes:
        pipe: what goes to and fro.
        known: segments that the process shares, with their sizes.
    """

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        if (refusal := pickle.loads(pipe.recv_bytes())) is not None:  # somebody stands in for one that is given up
            opened(refusal)
        handle = recv_handle(pipe)
        self._board = mmap.mmap(handle, BOARD.size, prot=mmap.PROT_READ)
        os.close(handle)
        self.known: dict[int, Segment] = {}

    @property
    def waiting(self) -> int:
        """Items that wait there, of all workers."""
        items: int = BOARD.unpack_from(self._board)[0]
        return items

    @property
    def busy_s(self) -> float:
        """Seconds that something was computed there."""
        return float(BOARD.unpack_from(self._board)[1] / 1e9)

    def share(self, number: int, segment: Segment) -> None:
        """Have the process share a segment."""
        if self.known.get(number) is not segment:
            self.pipe.send_bytes(pickle.dumps((number, segment.size)))
            send_handle(self.pipe, segment.handle, os.getpid())
            self.known[number] = segment


class _Desk:
    """The questions of this process, one thread of it asks."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lines: dict[int, _Line] = {}
        self._asked: dict[int, _Asked] = {}
        self._answers: dict[int, bytes] = {}
        self._segments: list[Segment] = []
        self._free: list[int] = []
        self._next = 0

    def ask(self, function: Callable[..., Any], arguments: tuple[object, ...], together: int) -> Answer:
        body, parts = packed_apart((function, arguments), INSTEAD)
        number, self._next = self._next, self._next + 1
        head = (number, *kind_of(function, arguments, together), body)
        if (room := room_for(parts)) > SMALL_BYTES:
            segment = self._room(room)
            asked = _Asked((*head, segment, self._segments[segment].filled(parts)), segment)
        else:
            asked = _Asked((*head, None, [bytes(part) for part in parts]), None)
        self._asked[number] = asked
        self._send(asked)
        return _Later(self, number)

    def busy_s(self) -> float:
        self._connect(time.monotonic() + self._served.patience_s)
        return sum(line.busy_s for line in self._lines.values())

    def answer(self, number: int) -> Any:
        while number not in self._answers:
            assert number in self._asked, "an answer is given once"
            self._listen()
        return opened(self._answers.pop(number))

    def forget(self, number: int) -> None:
        """Nobody will ask for this answer, or not again."""
        self._answers.pop(number, None)
        if number in self._asked:
            self._asked[number].unwanted = True

    def close(self) -> None:
        for line in self._lines.values():
            line.pipe.close()
        for segment in self._segments:
            segment.close()
        self._lines.clear()
        self._segments.clear()

    def _room(self, size: int) -> int:
        """A segment that nothing is in, as large as this."""
        while True:
            fits = [number for number in self._free if self._segments[number].size >= size]
            if fits:
                self._free.remove(fits[0])
                return fits[0]
            held = sum(segment.size for segment in self._segments)
            if len(self._segments) < FEWEST_SEGMENTS or (
                len(self._segments) < MOST_SEGMENTS and held + size <= MOST_BYTES
            ):
                self._segments.append(Segment(size))
                return len(self._segments) - 1
            if self._free:
                larger, number = Segment(size), self._free.pop(0)
                self._segments[number].close()
                self._segments[number] = larger
                return number
            self._listen()

    def _send(self, asked: _Asked) -> None:
        deadline = time.monotonic() + self._served.patience_s
        while True:
            self._connect(deadline)
            place = self._least_busy()
            line = self._lines[place]
            try:
                if asked.segment is not None:
                    line.share(asked.segment, self._segments[asked.segment])
                line.pipe.send_bytes(pickle.dumps(asked.told))
            except OSError:
                self._lose(place)
            else:
                asked.line = place
                return

    def _least_busy(self) -> int:
        """Where least waits, with what is on its way there from here; of equals, not all workers take the same."""
        waiting = {place: line.waiting for place, line in self._lines.items()}
        for asked in self._asked.values():
            if asked.line in waiting:
                waiting[asked.line] += 1
        return min(waiting, key=lambda place: (waiting[place], (place - os.getpid()) % len(self._served.addresses)))

    def _listen(self) -> None:
        """Take in answers that have come, and ask again what a process died of."""
        for asked in [asked for asked in self._asked.values() if asked.line is None]:
            self._send(asked)
        places = {self._lines[asked.line].pipe: asked.line for asked in self._asked.values() if asked.line is not None}
        for pipe in wait(list(places)):
            place = places[pipe]  # type: ignore[index]
            try:
                reply = self._lines[place].pipe.recv_bytes()
            except (EOFError, OSError):
                self._lose(place)
                continue
            (number,) = NUMBER.unpack_from(reply)
            asked = self._asked.pop(number)
            if not asked.unwanted:
                self._answers[number] = reply[NUMBER.size :]
            if asked.segment is not None:
                self._free.append(asked.segment)

    def _lose(self, place: int) -> None:
        """A process is gone, and with it what it was asked."""
        self._lines.pop(place).pipe.close()
        lost = [asked for asked in self._asked.values() if asked.line == place]
        for asked in lost:
            asked.line = None
            asked.deaths += 1
        if any(asked.deaths >= TRIES for asked in lost):
            raise ResourceError(
                f"{TRIES} processes with the model died over one question; if memory ran out, use fewer jobs or a "
                "smaller model",
                fault="F70",
            )

    def _connect(self, deadline: float) -> None:
        """Have a line to every process that answers, and to one at least."""
        while True:
            given_up: ResourceError | None = None
            for place, address in enumerate(self._served.addresses):
                if place not in self._lines:
                    try:
                        self._lines[place] = _Line(Client(address, "AF_UNIX", self._served.key))
                    except ResourceError as error:
                        given_up = error
                    except (OSError, EOFError, RuntimeError, AuthenticationError):
                        pass  # it is not there at the moment
            if self._lines:
                return
            if given_up is not None:
                raise given_up
            if time.monotonic() > deadline:
                raise ResourceError(
                    f"no process with the model answered for {self._served.patience_s:g} s; run again, and what is "
                    "done is not done again",
                    fault="F70",
                )
            time.sleep(PAUSE_S)


def kind_of(
    function: Callable[..., Any], arguments: tuple[object, ...], together: int
) -> tuple[bytes | None, int, int]:
    """What questions have in common that are answered together, how many items this one has, and how many are at once.

    Other arguments than the items are the same for all, but for those that say by `kind` what they have in common.
    """
    if together == 1:
        return None, 1, 1
    items = arguments[0]
    assert isinstance(items, np.ndarray)
    others = tuple(getattr(argument, "kind", argument) for argument in arguments[1:])
    own = (function.__module__, function.__qualname__, items.shape[1:], items.dtype.str, others)
    return repr(own).encode(), len(items), together
