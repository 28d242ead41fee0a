"""A process that holds a model: it takes questions of many workers and answers them, several at once where it can.

Questions wait in one row, whichever way they came. Those that are alike are answered together, so that a network's
batches are full as soon as there is enough to do; the model fills up the rest, and answers do not depend on company. On
a GPU several threads take turns: while one waits for its answers, the next has begun.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, Protocol

from jostle.parallel.serialization import opened, reply_of
from jostle.parallel.serving.shared_memory import Segment

NUMBER = struct.Struct("<Q")  # of a question, before its answer
BOARD = struct.Struct("<QQ")  # items that wait, and nanoseconds that something was computed
BACKLOG = 256  # workers that may knock at once
KNOWN = pickle.dumps(None)

# The function and its arguments, and of a question that may be answered together with others what those have in common,
# how many items it is about, and how many are answered at once.
Asked = tuple[Callable[..., Any], tuple[Any, ...], bytes | None, int, int]


class Lanes(Protocol):
    """How a device is used; `jostle.core.cuda.Lanes` knows."""

    def begin(self) -> None:
        """Called first, before anything is loaded."""

    @property
    def count(self) -> int:
        """Threads that work side by side."""

    def lane(self) -> AbstractContextManager[None]:
        """What each of them works in."""

    def pinned(self, memory: mmap.mmap) -> Callable[[], None]:
        """Let the device read this memory by itself; gives what ends that."""


class Waiting(Protocol):
    """Whoever asked."""

    def answer(self, number: int, reply: bytes) -> None:
        """Tell it."""


@dataclass(frozen=True)
class Question:
    """What one worker wants to know.

    Attributes:
        kind: of questions that may be answered together; None for one that is answered alone.
        count: items that it is about.
        most: items that are answered together.
    """

    asker: Waiting
    number: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    kind: bytes | None
    count: int
    most: int

    def alone(self, thing: object) -> bytes:
        """Its answer, or the error it ends in."""
        return reply_of(lambda: self.function(thing, *self.arguments))


class Asker:
    """A worker at the other end of a connection, and the memory that it shares."""

    def __init__(self, line: Connection, lanes: Lanes) -> None:
        self._line, self._lanes = line, lanes
        self._memory: dict[int, tuple[mmap.mmap, Callable[[], None]]] = {}
        self._lock = threading.Lock()
        self._waiting, self._gone = 0, False

    def questions(self, board: Segment) -> Iterator[Question]:
        """What it asks until it is gone."""
        try:
            with contextlib.suppress(EOFError, OSError):
                self._line.send_bytes(KNOWN)
                send_handle(self._line, board.handle, os.getpid())
                while True:
                    yield from self._heard(self._line.recv_bytes())
        finally:
            with self._lock:
                self._gone = True
                self._let_go()

    def answer(self, number: int, reply: bytes) -> None:
        """Tell it; one that is gone needs nothing any more."""
        with self._lock:
            self._waiting -= 1
            with contextlib.suppress(OSError):
                self._line.send_bytes(NUMBER.pack(number) + reply)
            if self._gone:
                self._let_go()

    def _heard(self, message: bytes) -> Iterator[Question]:
        told = pickle.loads(message)
        if len(told) == 2:  # a segment, and how large it is
            segment, size = told
            handle = recv_handle(self._line)
            memory = mmap.mmap(handle, size)
            os.close(handle)
            if segment in self._memory:
                self._memory.pop(segment)[1]()
            self._memory[segment] = memory, self._lanes.pinned(memory)
            return
        number, kind, count, most, body, segment, parts = told
        if segment is not None:
            whole = memoryview(self._memory[segment][0])
            parts = [whole[first : first + length] for first, length in parts]
        function, arguments = pickle.loads(body, buffers=parts)
        with self._lock:
            self._waiting += 1
        yield Question(self, number, function, arguments, kind, count, most)

    def _let_go(self) -> None:
        """The memory of one that is gone, once nothing is computed from it."""
        if self._waiting == 0:
            for _, unpinned in self._memory.values():
                unpinned()
            self._memory.clear()
            self._line.close()


class Caller:
    """One whose question came another way than by a connection of ours; it waits in a thread of this process."""

    def __init__(self) -> None:
        self._answered = threading.Event()
        self._reply = b""

    def answer(self, number: int, reply: bytes) -> None:
        """Tell it."""
        self._reply = reply
        self._answered.set()

    def wait(self) -> Any:
        """The answer, as soon as it is there; an error is raised as it was raised where the model is."""
        self._answered.wait()
        return opened(self._reply)


class Row:
    """Questions that wait, and for all to see how many there are and how long something was at work.

    Attributes:
        board: where that stands.
    """

    def __init__(self) -> None:
        self.board = Segment(BOARD.size)
        self._waiting: deque[Question] = deque()
        self._items = self._working = self._busy_ns = self._since_ns = 0
        self._changed = threading.Condition()

    def join(self, question: Question) -> None:
        """Wait for an answer behind the others."""
        with self._changed:
            self._waiting.append(question)
            self._tell(question.count)
            self._changed.notify()

    def next(self) -> list[Question]:
        """The one that waits longest, and those like it that are answered with it."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            some = [self._waiting.popleft()]
            first, left = some[0], some[0].most - some[0].count
            if first.kind is not None and left > 0:
                for other in list(self._waiting):
                    if other.kind == first.kind and other.count <= left:
                        some.append(other)
                        left -= other.count
                        self._waiting.remove(other)
                        if not left:
                            break
            if not self._working:
                self._since_ns = time.monotonic_ns()
            self._working += 1
            return some

    def leave(self, some: list[Question]) -> None:
        """They have their answers."""
        with self._changed:
            self._working -= 1
            if not self._working:
                self._busy_ns += time.monotonic_ns() - self._since_ns
            self._tell(-sum(question.count for question in some))

    def _tell(self, more: int) -> None:
        self._items += more
        self.board.filled([memoryview(BOARD.pack(self._items, self._busy_ns))])


def answering(load: Callable[[], Any], lanes: Lanes, address: str, key: bytes) -> Callable[[Asked], Any]:
    """Load something and answer questions about it from now on, beside whatever the process does.

    Args:
        address: where workers of this machine come to; empty if nobody is to.
        key: by which they are known.

    Returns:
        What answers a question that came another way.
    """
    lanes.begin()
    thing = load()
    listener = Listener(address, "AF_UNIX", BACKLOG, key) if address else None
    row = Row()
    begun = threading.Barrier(lanes.count + 1)
    for _ in range(lanes.count):
        threading.Thread(target=_work, args=(thing, lanes, row, begun), daemon=True).start()
    begun.wait()
    if listener is not None:
        threading.Thread(target=_receive, args=(listener, lanes, row), daemon=True).start()

    def answered(asked: Asked) -> Any:
        caller = Caller()
        row.join(Question(caller, 0, *asked))
        return caller.wait()

    return answered


def _receive(listener: Listener, lanes: Lanes, row: Row) -> None:
    while True:
        with contextlib.suppress(OSError, EOFError, AuthenticationError):  # somebody who has not the key, or is gone
            asker = Asker(listener.accept(), lanes)
            threading.Thread(target=_listen, args=(asker, row), daemon=True).start()


def _listen(asker: Asker, row: Row) -> None:
    for question in asker.questions(row.board):
        row.join(question)


def _work(thing: Any, lanes: Lanes, row: Row, begun: threading.Barrier) -> None:
    # The guard is held for good: what it sets for the whole process must not be put back while others work.
    with lanes.lane(), getattr(thing, "guard", nullcontext)():
        begun.wait()
        while True:
            some = row.next()
            replies = _replies(thing, some)
            row.leave(some)
            for question, reply in zip(some, replies, strict=True):
                question.asker.answer(question.number, reply)
            del some, question  # or memory that workers have given back would stay until there is more to do


def _replies(thing: object, some: list[Question]) -> list[bytes]:
    if len(some) > 1:
        try:
            given = [question.arguments for question in some]
            answers = some[0].function.together(thing, given)  # type: ignore[attr-defined]
            return [reply_of(lambda answer=answer: answer) for answer in answers]  # type: ignore[misc]
        except Exception:  # of one of them; alone, each has its own answer
            pass
    return [question.alone(thing) for question in some]
