"""Processes that work side by side, for whoever has many like things to do.

They are plain children at the other end of a socket. A caller's script needs no `__main__` guard for them, which
`multiprocessing` would ask for, and they leave when the caller does, however it ends.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Generic, NoReturn, TypeVar

from jostle.errors import BadValue, JostleError, ResourceError

Item = TypeVar("Item")
Result = TypeVar("Result")

GRACE_S = 10.0  # for a process that was told to leave; it has files to remove, but no more
SHOWN = 100  # characters of an item in a message

# Ctrl-C reaches the whole group of processes, and the parent decides what comes of it: from the first moment on.
_CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {paths!r}
from jostle.workers import serve
serve({handle})
"""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worked(
    start: Callable[[], Callable[[Item], Result]], items: Sequence[Item], jobs: int
) -> Generator[tuple[Item, Result], None, None]:
    """Results of items as they are done, `jobs` at a time; one job works in this process.

    The first error ends all work and is raised here, as it was raised there. Results that nobody has asked for yet
    are few at any time, so a slow caller slows the work and does not fill the memory. Close the generator to end
    the work early.

    Args:
        start: gives the function that does the work; it is called in each process once, and may load what the work
            needs. For several jobs it has to be picklable, and so do items and results.

    Raises:
        ResourceError: if a process was killed, as the system does when memory runs out.
        BadValue: if something cannot travel to another process.
    """
    jobs = min(jobs, len(items))
    if jobs > 1:
        yield from _side_by_side(start, items, jobs)
    elif items:
        work = start()
        for item in items:
            yield item, work(item)


def _side_by_side(
    start: Callable[[], Callable[[Item], Result]], items: Sequence[Item], jobs: int
) -> Generator[tuple[Item, Result], None, None]:
    beginning = _packed_here(start)
    workers: list[_Worker[Item, Result]] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker())
        for worker in workers:
            worker.give(beginning)
        yield from _results(workers, items)
    finally:
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.see_off()


def _results(
    workers: Sequence[_Worker[Item, Result]], items: Sequence[Item]
) -> Generator[tuple[Item, Result], None, None]:
    waiting, idle = deque(items), deque(workers)
    busy: dict[Any, tuple[_Worker[Item, Result], Item]] = {}
    ready: deque[tuple[Item, Callable[[], Result]]] = deque()
    while True:
        if busy:
            for pipe in wait(busy, timeout=0 if ready else None):
                worker, item = busy.pop(pipe)
                ready.append((item, worker.take(item)))
                idle.append(worker)
        # Whoever is idle works on while the caller looks at the results, but not without end.
        while waiting and idle and len(ready) + len(busy) < 2 * len(workers):
            worker, item = idle.popleft(), waiting.popleft()
            worker.give(_packed_here(item))
            busy[worker.pipe] = worker, item
        if ready:
            item, result = ready.popleft()
            yield item, result()
        elif not busy:
            return


class _Worker(Generic[Item, Result]):
    """One child and the socket to it."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        paths = [place or os.getcwd() for place in sys.path]  # it finds modules where we do
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CHILD.format(paths=paths, handle=theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what anybody prints there is no output of ours
                    pass_fds=[theirs.fileno()],
                )
            except OSError as error:
                raise ResourceError(f"no more processes can be started ({error.strerror}); use fewer jobs") from None

    def give(self, order: bytes) -> None:
        """Send what to begin with, then one item after another."""
        with contextlib.suppress(OSError):  # that it is gone is noticed when its result is due
            self.pipe.send_bytes(order)

    def take(self, item: Item) -> Callable[[], Result]:
        """Receive what gives the result of the item, or raises its error."""
        try:
            reply = self.pipe.recv_bytes()
        except (EOFError, OSError):
            return lambda: self._explain_end(item)
        return lambda: _unpacked(reply)

    def dismiss(self) -> None:
        """Have it clean up after itself and go."""
        self.pipe.close()
        self._process.terminate()

    def see_off(self) -> None:
        """Wait until it is gone."""
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _explain_end(self, item: Item) -> NoReturn:
        self.see_off()
        code = self._process.returncode
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        raise ResourceError(
            f"a worker process died {how} at {str(item)[:SHOWN]}; if memory ran out, run again with fewer jobs"
        )


def serve(handle: int) -> None:
    """Work for the process at the other end of the socket, until it is gone or wants no more. Called in a child."""
    signal.signal(signal.SIGTERM, _leave)
    pipe = Connection(handle)
    os.set_inheritable(handle, False)  # nobody we start holds the socket open
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, orders), daemon=True).start()
    work: Callable[[Any], Any] | None = None
    beginning = orders.get()
    while True:
        order = orders.get()
        try:
            if work is None:
                work = _loaded(beginning)()
            reply = _packed((work(_loaded(order)), None))
        except Exception as error:
            reply = _packed((None, (_portable(error), traceback.format_exc())))
        try:
            pipe.send_bytes(reply)
        except OSError:
            return


def _listen(pipe: Connection, orders: queue.SimpleQueue[bytes]) -> None:
    """Pass orders on. The end of the socket is the end of the parent or of its interest: then leave at once."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            orders.put(pipe.recv_bytes())
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)  # something does not let the main thread go


def _leave(number: int, frame: object) -> NoReturn:
    """Unwind, so that half-written files are removed; a second signal must not stop that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


class _Packer(pickle.Pickler):
    """Errors of ours travel as they are, whatever their constructors ask for."""

    def reducer_override(self, thing: object) -> Any:
        if isinstance(thing, JostleError):
            return _rebuilt, (type(thing), thing.args, vars(thing))
        return NotImplemented


def _rebuilt(kind: type[JostleError], args: tuple[Any, ...], state: dict[str, Any]) -> JostleError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def _packed(thing: object) -> bytes:
    buffer = io.BytesIO()
    _Packer(buffer, pickle.HIGHEST_PROTOCOL).dump(thing)
    return buffer.getvalue()


def _packed_here(thing: object) -> bytes:
    try:
        return _packed(thing)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise BadValue(f"this cannot go to another process ({error}); use one job") from None


def _loaded(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except (AttributeError, ImportError) as error:
        raise BadValue(
            f"a worker process does not find its work ({error}); define it in a module instead of the script itself, "
            "or use one job"
        ) from None


class _Elsewhere(Exception):
    """Where in the other process an error came from."""

    def __str__(self) -> str:
        return f"in a worker process:\n{self.args[0]}"


def _unpacked(reply: bytes) -> Any:
    result, failure = pickle.loads(reply)
    if failure is not None:
        error, trace = failure
        raise error from _Elsewhere(trace)
    return result


def _portable(error: Exception) -> Exception:
    """The error as it can travel: some cannot be put together again from what they were made of."""
    try:
        pickle.loads(_packed(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
