"""A pool of worker processes.

Workers are plain child processes at the other end of a socket. Unlike `multiprocessing`, a caller's script needs no
`__main__` guard, and workers exit when the caller does, however it ends.
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
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

from jostle.core import compilation
from jostle.core.interruption import Stopped, end_process, limit_native_calls
from jostle.core.plugins import plugin_modules
from jostle.errors import ResourceError
from jostle.parallel.mapping import Item, Result, map_over
from jostle.parallel.serialization import TaskHandler, dumps

GRACE_S = 10.0  # for a terminated process to remove its partial files
MAX_DEATHS = 2  # workers that may die while processing the same item
HINT = "use one job"
NICENESS = 5  # of at most 19
NATIVE_CALL_LIMIT_S = 300  # of one call of a decoder in a worker
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
# By the signal that ended a worker; other deaths are most often for want of memory.
_HINTS: dict[int, str] = dict.fromkeys(_CRASHES, "native code crashed, perhaps a decoder; check that this video plays")
_HINTS[signal.SIGALRM] = "its decoder hung; check that this video plays"
ORPHAN_GRACE_S = 1.0  # for orphans to remove partial files
_SHELL = "/bin/sh"  # present on every POSIX system, and starts in a millisecond
# The last line read is in force. Signals from the terminal are left to the parent.
_SCRIPT = f"""
trap '' INT TERM HUP QUIT
children=
while read -r line; do children=$line; done
sleep {ORPHAN_GRACE_S + 0.25} || sleep {ORPHAN_GRACE_S + 1:.0f}
[ -z "$children" ] || kill -KILL $children
"""
_is_worker = False  # whether this process is a worker

# Ctrl-C reaches the whole process group; workers ignore it from the start, because the parent handles it.
_CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {paths!r}
from jostle.core.plugins import inherit_plugins
from jostle.parallel.workers import run_worker
inherit_plugins({modules!r})
run_worker({handle}, {parent}, report_compiling={report_compiling})
"""


def available_cpus() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_unordered(
    start: Callable[[], Callable[[Item], Result]],
    items: Sequence[Item],
    jobs: int,
    *,
    lost: Callable[[Item, ResourceError], Result] | None = None,
) -> Generator[tuple[Item, Result], None, None]:
    """Apply a function to items in worker processes; yield items with their results as they complete.

    The first error stops all work and is raised here. A worker that dies is replaced and its item retried once; a
    second death is an error. Few results are buffered, so that a slow consumer slows the workers down and memory
    stays bounded. Close the generator to stop early.

    Args:
        start: factory of the function that is applied; called once in each process, and may load what the work
            needs. With several jobs it must be picklable, and so must items and results.
        jobs: number of worker processes; with 1 the work is done in this process.
        lost: returns a substitute result for an item that workers died of; by default that is an error.

    Raises:
        ResourceError: if workers were killed while processing an item, as happens when memory runs out.
        BadValue: if something cannot be pickled.
    """
    jobs = min(jobs, len(items))
    if jobs > 1:
        pool = _WorkerPool(dumps(start, HINT))
        try:
            pool.spawn(jobs)
            yield from map_over(pool, items, jobs, lost)
        finally:
            pool.terminate()
    elif items:
        work = start()
        for item in items:
            yield item, work(item)


class OrphanSupervisor:
    """Kills the watched child processes when this process ends.

    A child notices that its parent died when their socket closes, but only while it runs Python code, not during a long
    call into a compiled library. So a small shell script waits beside the children. It reads their process ids from a
    pipe that only this process holds open; when the pipe closes, this process has ended, and it kills the children.

    Raises:
        OSError: if the supervisor process cannot be started.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [_SHELL, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def watch(self, children: Iterable[int]) -> None:
        """Watch these process ids in place of the previous ones.

        Remove an id before waiting for its process: afterwards the system may reuse it.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the supervisor was killed; children still notice the closed socket
            self._process.stdin.write(" ".join(map(str, children)).encode() + b"\n")
            self._process.stdin.flush()

    def stop(self) -> None:
        """Stop the supervisor, once no child is left."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()


class _WorkerPool:
    """The worker processes of one `map_unordered` call; see `Pool`."""

    hint, max_deaths = HINT, MAX_DEATHS

    def __init__(self, factory: bytes) -> None:
        self._idle: deque[Worker] = deque()
        self._all: list[Worker] = []
        self._factory = factory
        try:
            self._supervisor = OrphanSupervisor()
        except OSError as error:
            raise _spawn_error(error) from None

    def spawn(self, count: int) -> None:
        """Start a number of further workers."""
        for _ in range(count):
            worker = Worker(report_compiling=not self._all)  # one report is enough: the others wait for its kernels
            self._all.append(worker)
            self._idle.append(worker)
            self._update_supervisor()
        for worker in self._all[-count:]:
            worker.send(self._factory)

    def take_idle(self) -> Worker:
        """Return an idle worker, which is started if there is none."""
        if not self._idle:
            self.spawn(1)
        return self._idle.popleft()

    def put_idle(self, worker: Worker) -> None:
        """Take a worker back."""
        self._idle.append(worker)

    def send(self, worker: Worker, payload: bytes) -> Connection:
        """Send a serialized item; return the socket that its reply comes from."""
        worker.send(payload)
        return worker.pipe

    def wait(self, busy: Collection[Any], *, block: bool) -> Sequence[Any]:
        """Return the sockets that have a reply, or whose worker died."""
        return wait(busy, timeout=None if block else 0) if busy else []

    def receive(self, pipe: Connection, worker: Worker) -> bytes | None:
        """Return a serialized reply; None if the worker died."""
        return worker.receive()

    def replace(self, worker: Worker, reason: str | None, item: str, deaths: int) -> ResourceError:
        """Remove a worker that died; another is started when one is needed."""
        self._all.remove(worker)
        self._update_supervisor()
        status = worker.exit_status()
        hint = _HINTS.get(worker.exit_signal, "if memory ran out, run again with fewer jobs")
        return ResourceError(f"a worker process died {status} at {item}; {hint}", fault="F63")

    def terminate(self) -> None:
        """Terminate all workers and wait for them to exit."""
        for worker in self._all:
            worker.terminate()
        workers, self._all = self._all, []
        self._update_supervisor()
        for worker in workers:
            worker.join()
        self._supervisor.stop()

    def _update_supervisor(self) -> None:
        self._supervisor.watch(worker.process_id for worker in self._all)


class Worker:
    """A worker process and the socket to it.

    Args:
        report_compiling: report slow kernel compilation on stderr, if this process would.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, *, report_compiling: bool = False) -> None:
        paths = [path or os.getcwd() for path in sys.path]  # modules are found where this process finds them
        arguments = {
            "paths": paths,
            "modules": plugin_modules(),
            "report_compiling": report_compiling and compilation.has_compile_callback(),
        }
        try:
            self.pipe, child_end = Pipe()
            with child_end:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CHILD.format(**arguments, handle=child_end.fileno(), parent=os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what a worker prints is not part of the program's output
                    pass_fds=[child_end.fileno()],
                    env=None if environment is None else {**os.environ, **environment},
                )
        except OSError as error:
            raise _spawn_error(error) from None

    @property
    def process_id(self) -> int:
        return self._process.pid

    def send(self, payload: bytes) -> None:
        """Send the serialized factory first, then one serialized item after another."""
        with contextlib.suppress(OSError):  # a dead worker is noticed when its result is due
            self.pipe.send_bytes(payload)

    def receive(self) -> bytes | None:
        """Receive the next reply; None if the worker died."""
        try:
            return self.pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def terminate(self) -> None:
        """Ask the worker to clean up and exit."""
        self.pipe.close()
        self._process.terminate()

    def join(self, grace_s: float | None = None) -> None:
        """Wait for the worker to exit, and kill it after `grace_s` seconds, by default `GRACE_S`."""
        try:
            self._process.wait(GRACE_S if grace_s is None else grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def exit_status(self) -> str:
        """Describe how a worker that has died ended: by a signal, or with an exit code."""
        self.pipe.close()
        self.join()
        code = self._process.returncode
        return f"by signal {-code}" if code < 0 else f"with code {code}"

    @property
    def exit_signal(self) -> int:
        """Signal that ended the worker, once `exit_status` has waited for it; 0 for none."""
        return max(-self._process.returncode, 0)


def _spawn_error(error: OSError) -> ResourceError:
    reason = f"{error.strerror}{_describe_limit(error)}"
    return ResourceError(f"no more processes can be started ({reason}); use fewer jobs", fault="F71")


def _describe_limit(error: OSError) -> str:
    """Describe the resource limit behind an error, or return an empty string."""
    limits = {errno.EMFILE: ("open files", resource.RLIMIT_NOFILE), errno.EAGAIN: ("processes", resource.RLIMIT_NPROC)}
    if error.errno not in limits:
        return ""
    name, number = limits[error.errno]
    return f", the limit of {name} is {resource.getrlimit(number)[0]}"


def lower_priority() -> None:
    """Lower the CPU priority of a worker process; does nothing in the main process."""
    if _is_worker:
        os.nice(NICENESS)


def run_worker(handle: int, parent: int, *, report_compiling: bool) -> None:
    """Run a worker: process tasks from the socket until the parent closes it."""
    global _is_worker
    _is_worker = True
    signal.signal(signal.SIGTERM, _handle_sigterm)
    limit_native_calls(NATIVE_CALL_LIMIT_S)
    compilation.set_compile_callback(_print_line if report_compiling else None)
    pipe = Connection(handle)
    os.set_inheritable(handle, False)  # grandchildren must not keep the socket open
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(pipe, tasks, parent), daemon=True).start()
    try:
        handler = TaskHandler(tasks.get(), HINT)
        while True:
            reply = handler.handle(tasks.get())
            try:
                pipe.send_bytes(reply)
            except OSError:
                return
    except Stopped as stopped:
        sys.stderr.flush()
        end_process(128 + stopped.number)  # partial files are removed, and taking torch down would last a second


def _print_line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _read_tasks(pipe: Connection, tasks: queue.SimpleQueue[bytes], parent: int) -> None:
    """Queue tasks from the socket; when the parent closes it or dies, exit at once."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            tasks.put(pipe.recv_bytes())
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(GRACE_S if os.getppid() == parent else ORPHAN_GRACE_S)  # no parent waits for an orphan
    end_process(1)  # the main thread is stuck


def _handle_sigterm(number: int, frame: object) -> NoReturn:
    """Unwind the stack, so that partial files are removed; a second signal must not interrupt that."""
    signal.signal(signal.SIGTERM, _ignore_signal)  # SIG_IGN would make Python complain about a pending signal
    raise Stopped(number)


def _ignore_signal(number: int, frame: object) -> None:
    """Ignore a signal that arrives during shutdown."""
