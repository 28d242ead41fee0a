"""Processes that work side by side, for whoever has many like things to do.

They are plain children at the other end of a socket. A caller's script needs no `__main__` guard for them, which
`multiprocessing` would ask for, and they leave when the caller does, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Generic, NoReturn, TypeVar

from jostle.core import kernels
from jostle.core.plugins import travelling
from jostle.errors import ResourceError
from jostle.parallel.orphans import FAREWELL_S, Lifeline
from jostle.parallel.serialization import Desk, opened, packed

Item = TypeVar("Item")
Result = TypeVar("Result")

GRACE_S = 10.0  # for a process that was told to leave; it has files to remove, but no more
SHOWN = 100  # characters of an item in a message
TRIES = 2  # processes that may die of an item
INSTEAD = "use one job"
GIVES_WAY = 5  # ranks, of the nineteen that there are below the usual one
_serving = False  # whether this process is a child that works for another

# Ctrl-C reaches the whole group of processes, and the parent decides what comes of it: from the first moment on.
_CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {paths!r}
from jostle.core.plugins import arrive
from jostle.parallel.workers import serve
arrive({modules!r})
serve({handle}, {parent}, tells={tells})
"""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worked(
    start: Callable[[], Callable[[Item], Result]],
    items: Sequence[Item],
    jobs: int,
    *,
    lost: Callable[[Item, ResourceError], Result] | None = None,
) -> Generator[tuple[Item, Result], None, None]:
    """Results of items as they are done, `jobs` at a time; one job works in this process.

    The first error ends all work and is raised here, as it was raised there. A process that dies is replaced and its
    item given to another; a second death is an error. Results that nobody has asked for yet are few at any time, so a
    slow caller slows the work and does not fill the memory. Close the generator to end the work early.

    Args:
        start: gives the function that does the work; it is called in each process once, and may load what the work
            needs. For several jobs it has to be picklable, and so do items and results.
        lost: gives what stands for the result of an item that processes died of, instead of the error.

    Raises:
        ResourceError: if processes were killed over an item, as the system does when memory runs out.
        BadValue: if something cannot travel to another process.
    """
    jobs = min(jobs, len(items))
    if jobs > 1:
        crew = _Crew(packed(start, INSTEAD))
        try:
            crew.hire(jobs)
            yield from _results(crew, items, jobs, lost)
        finally:
            crew.dismiss()
    elif items:
        work = start()
        for item in items:
            yield item, work(item)


@dataclass
class _Task(Generic[Item]):
    """An item, and how many processes died of it."""

    item: Item
    deaths: int = 0


def _results(
    crew: _Crew, items: Sequence[Item], jobs: int, lost: Callable[[Item, ResourceError], Result] | None
) -> Generator[tuple[Item, Result], None, None]:
    waiting = deque(_Task(item) for item in items)
    busy: dict[Any, tuple[Worker, _Task[Item]]] = {}
    ready: deque[tuple[Item, bytes | ResourceError]] = deque()
    while True:
        if busy:
            for pipe in wait(busy, timeout=0 if ready else None):
                worker, task = busy.pop(pipe)
                reply = worker.take()
                if reply is not None:
                    ready.append((task.item, reply))
                    crew.idle.append(worker)
                    continue
                died = crew.bury(worker, task.item)
                task.deaths += 1
                if task.deaths < TRIES:
                    waiting.appendleft(task)
                else:
                    ready.append((task.item, died))
        # Whoever is idle works on while the caller looks at the results, but not without end.
        while waiting and len(busy) < jobs and len(ready) + len(busy) < 2 * jobs:
            if not crew.idle:
                crew.hire(1)
            worker, task = crew.idle.popleft(), waiting.popleft()
            worker.give(packed(task.item, INSTEAD))
            busy[worker.pipe] = worker, task
        if ready:
            item, found = ready.popleft()
            if not isinstance(found, ResourceError):
                yield item, opened(found)
            elif lost is not None:
                yield item, lost(item, found)
            else:
                raise found
        elif not busy:
            return


class _Crew:
    """The processes at work."""

    def __init__(self, beginning: bytes) -> None:
        self.idle: deque[Worker] = deque()
        self._all: list[Worker] = []
        self._beginning = beginning
        try:
            self._lifeline = Lifeline()
        except OSError as error:
            raise _no_more(error) from None

    def hire(self, count: int) -> None:
        """Start some more."""
        for _ in range(count):
            worker = Worker(tells=not self._all)  # one speaks for all: those that do not compile wait for who does
            self._all.append(worker)
            self.idle.append(worker)
            self._hold()
        for worker in self._all[-count:]:
            worker.give(self._beginning)

    def bury(self, worker: Worker, item: object) -> ResourceError:
        """Take leave of one that died at an item; what there is to say about it."""
        self._all.remove(worker)
        self._hold()
        what = f"a worker process died {worker.end()} at {str(item)[:SHOWN]}"
        return ResourceError(f"{what}; if memory ran out, run again with fewer jobs", fault="F63")

    def dismiss(self) -> None:
        """Let all go, and wait until they are gone."""
        for worker in self._all:
            worker.dismiss()
        leaving, self._all = self._all, []
        self._hold()
        for worker in leaving:
            worker.see_off()
        self._lifeline.release()

    def _hold(self) -> None:
        self._lifeline.hold(worker.process_id for worker in self._all)


class Worker:
    """One child and the socket to it.

    Args:
        environment: variables that it has besides ours.
        tells: that it says when it compiles for long, if this process would.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, *, tells: bool = False) -> None:
        paths = [place or os.getcwd() for place in sys.path]  # it finds modules where we do
        told = {"paths": paths, "modules": travelling(), "tells": tells and kernels.told()}
        try:
            self.pipe, theirs = Pipe()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CHILD.format(**told, handle=theirs.fileno(), parent=os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what anybody prints there is no output of ours
                    pass_fds=[theirs.fileno()],
                    env=None if environment is None else {**os.environ, **environment},
                )
        except OSError as error:
            raise _no_more(error) from None

    @property
    def process_id(self) -> int:
        return self._process.pid

    def give(self, order: bytes) -> None:
        """Send what to begin with, then one item after another."""
        with contextlib.suppress(OSError):  # that it is gone is noticed when its result is due
            self.pipe.send_bytes(order)

    def take(self) -> bytes | None:
        """Receive the reply to what was given, or nothing from one that died."""
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def dismiss(self) -> None:
        """Have it clean up after itself and go."""
        self.pipe.close()
        self._process.terminate()

    def see_off(self, grace_s: float = GRACE_S) -> None:
        """Wait until it is gone; one that does not go is killed."""
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def end(self) -> str:
        """How one came to its end that is gone, or will be in a moment."""
        self.pipe.close()
        self.see_off()
        code = self._process.returncode
        return f"by signal {-code}" if code < 0 else f"with code {code}"


def _no_more(error: OSError) -> ResourceError:
    why = f"{error.strerror}{_limit(error)}"
    return ResourceError(f"no more processes can be started ({why}); use fewer jobs", fault="F71")


def _limit(error: OSError) -> str:
    """The name and value of the limit that an error speaks of."""
    limits = {errno.EMFILE: ("open files", resource.RLIMIT_NOFILE), errno.EAGAIN: ("processes", resource.RLIMIT_NPROC)}
    if error.errno not in limits:
        return ""
    name, number = limits[error.errno]
    return f", the limit of {name} is {resource.getrlimit(number)[0]}"


def give_way() -> None:
    """Let others of ours go first where cores are few. The process that somebody started keeps its rank."""
    if _serving:
        os.nice(GIVES_WAY)


def serve(handle: int, parent: int, *, tells: bool) -> None:
    """Work for the process at the other end of the socket, until it is gone or wants no more. Called in a child."""
    global _serving
    _serving = True
    signal.signal(signal.SIGTERM, _leave)
    kernels.tell(_say if tells else None)
    pipe = Connection(handle)
    os.set_inheritable(handle, False)  # nobody we start holds the socket open
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, orders, parent), daemon=True).start()
    desk = Desk(orders.get(), INSTEAD)
    while True:
        reply = desk.reply_to(orders.get())
        try:
            pipe.send_bytes(reply)
        except OSError:
            return


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _listen(pipe: Connection, orders: queue.SimpleQueue[bytes], parent: int) -> None:
    """Pass orders on. The end of the socket is the end of the parent or of its interest: then leave at once."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            orders.put(pipe.recv_bytes())
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(GRACE_S if os.getppid() == parent else FAREWELL_S)  # nobody waits for an orphan
    os._exit(1)  # something does not let the main thread go


def _leave(number: int, frame: object) -> NoReturn:
    """Unwind, so that half-written files are removed; a second signal must not stop that."""
    signal.signal(signal.SIGTERM, _stay)  # Python complains of one that is ignored after it has come
    sys.exit(128 + number)


def _stay(number: int, frame: object) -> None:
    """On the way out already."""
