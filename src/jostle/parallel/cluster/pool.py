"""Worker actors that Ray runs on a cluster, set up like the process that starts them; those that die are replaced."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jostle.core.environment import library_versions
from jostle.core.plugins import inherit_plugins, plugin_modules
from jostle.errors import BadValue, ResourceError
from jostle.parallel.serialization import TaskHandler, dump_reply, dumps, load_reply

HINT = "work on this machine alone, with one job"

# Environment variables that affect results or the location of files. Ray assigns devices, and secrets are not sent.
FORWARDED = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TORCH_HOME", "CUBLAS_WORKSPACE_CONFIG",
           "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")  # fmt: skip
FORWARDED_PREFIX = "JOSTLE_"


class WorkerActor:
    """Ray actor that executes one task after another."""

    def __init__(
        self, factory: bytes, folder: str, paths: Sequence[str], modules: Sequence[str], expected: Mapping[str, str]
    ) -> None:
        with contextlib.suppress(OSError):  # relative paths work if the folder is shared
            os.chdir(folder)
        sys.path.extend(path for path in paths if path not in sys.path)  # modules are found where the caller finds them
        inherit_plugins(modules)
        self._handler = TaskHandler(factory, HINT)
        self._expected_versions = expected

    def begin(self) -> bytes:
        """Load what the work needs; return a serialized None or the error."""
        return dump_reply(self._begin)

    def work(self, payload: bytes) -> bytes:
        """Process one serialized item and serialize the outcome."""
        return self._handler.handle(payload)

    def node_id(self) -> str:
        """Return the id of the Ray node that the actor runs on."""
        return node_id()

    def _begin(self) -> None:
        check_library_versions(self._expected_versions, library_versions())
        self._handler.begin()


def node_id() -> str:
    """Return the id of the Ray node that this process runs on."""
    import ray

    name: str = ray.get_runtime_context().get_node_id()
    return name


def check_library_versions(expected: Mapping[str, str], actual: Mapping[str, str]) -> None:
    """Check that this machine has the library versions of the caller."""
    mismatches = [
        f"{name} is {actual.get(name, 'missing')}, not {expected.get(name, 'missing')}"
        for name in sorted(expected.keys() | actual.keys())
        if actual.get(name) != expected.get(name)
    ]
    if mismatches:
        raise BadValue(
            f"{platform.node()}: library versions differ from the caller's: {'; '.join(mismatches)}; install the same "
            "on all machines"
        )


def worker_setup() -> tuple[str, list[str], list[str], dict[str, str]]:
    """Return the setup of this process for an actor: folder, module paths, plugin modules and library versions."""
    return os.getcwd(), [path or os.getcwd() for path in sys.path], plugin_modules(), library_versions()


def runtime_environment() -> dict[str, Any]:
    """Return the environment variables for actors on other machines, as a Ray runtime environment."""
    named = {name: os.environ[name] for name in FORWARDED if name in os.environ}
    ours = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED_PREFIX)}
    return {"env_vars": named | ours}


Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_DEATHS = 3  # actors that may die while processing the same item; whole machines may disappear
TIMEOUT_S = 300.0  # for a free CPU; the cluster may have to start machines first
POLL_S = 5.0
MAX_ITEM_CHARS = 100  # of an item, in messages
MAX_REASON_CHARS = 200  # of Ray's reason for a death


@dataclass
class PoolTask(Generic[Item]):
    """An item, and the number of actors that died while processing it."""

    item: Item
    deaths: int = 0


@dataclass(frozen=True)
class Member:
    """A worker actor, and the number of its predecessors that died while starting."""

    actor: Any
    failed_before: int = 0


class ActorPool:
    """Worker actors of one `map_unordered` call.

    Attributes:
        idle: started actors without a task.
        starting: actors that wait for a CPU or are loading, by the Ray reference of their start.
    """

    def __init__(self, ray: Any, factory: bytes) -> None:
        self.ray = ray
        self.idle: deque[Member] = deque()
        self.starting: dict[Any, Member] = {}
        self._all: list[Member] = []
        self._factory = ray.put(factory)
        self._worker_setup = worker_setup()
        self._actor_class = ray.remote(WorkerActor).options(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
            runtime_env=runtime_environment(),
        )

    def spawn(self, failed_before: int = 0) -> None:
        """Request one more actor from Ray."""
        member = Member(self._actor_class.remote(self._factory, *self._worker_setup), failed_before)
        self._all.append(member)
        self.starting[member.actor.begin.remote()] = member

    def register_started(self, done: Any) -> None:
        """Add a started actor to the idle ones, or request another if it died while starting."""
        member = self.starting.pop(done)
        reply = self.fetch_reply(done)
        if isinstance(reply, bytes):
            load_reply(reply)
            self.idle.append(member)
            return
        self._all.remove(member)
        if member.failed_before + 1 < MAX_DEATHS:
            self.spawn(member.failed_before + 1)
        elif not self._all:
            raise ResourceError(f"no process can be started on the cluster: {reply}", fault="F63")

    def fetch_reply(self, done: Any) -> bytes | str:
        """Return a serialized reply, or the reason that the actor or its machine died."""
        errors = self.ray.exceptions
        try:
            reply: bytes = self.ray.get(done)
        except errors.RayTaskError:
            raise  # a bug in jostle: errors of the work arrive as replies
        except errors.RayError as error:
            return death_reason(error)
        return reply

    def reap(self, member: Member) -> None:
        """Remove an actor that died, and request another."""
        self._all.remove(member)
        self.ray.kill(member.actor)  # if only its reply was lost
        self.spawn()

    def shutdown(self) -> None:
        """Kill all actors of the pool."""
        for member in self._all:
            self.ray.kill(member.actor)
        self._all.clear()


def death_reason(error: Exception) -> str:
    """Return Ray's reason for a death in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("The actor is dead because", "The actor died because"))]
    return (causes or lines or [type(error).__name__])[0].partition(" Worker exit")[0][:MAX_REASON_CHARS]


def iter_results(
    pool: ActorPool, items: Sequence[Item], jobs: int, lost: Callable[[Item, ResourceError], Result] | None
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items with their results as they complete; only started actors receive items."""
    waiting = deque(PoolTask(item) for item in items)
    busy: dict[Any, tuple[Member, PoolTask[Item]]] = {}
    ready: deque[tuple[Item, bytes | ResourceError]] = deque()
    since = time.monotonic()
    for _ in range(jobs):
        pool.spawn()
    while True:
        done = pool.ray.wait([*busy, *pool.starting], timeout=0 if ready else POLL_S)[0]
        for reply in done:
            if reply in pool.starting:
                pool.register_started(reply)
            else:
                _handle_reply(pool, *busy.pop(reply), pool.fetch_reply(reply), waiting, ready)
        if done or busy or ready:
            since = time.monotonic()
        elif time.monotonic() - since > TIMEOUT_S:
            raise ResourceError(
                f"no CPU of the cluster was free for {TIMEOUT_S:g} s; see `ray status`, then run again", fault="F71"
            )
        # Idle actors go on while the caller consumes results, but only a limited number of results is buffered.
        while waiting and pool.idle and len(ready) + len(busy) < 2 * jobs:
            member, task = pool.idle.popleft(), waiting.popleft()
            busy[member.actor.work.remote(dumps(task.item, HINT))] = member, task
        if ready:
            item, outcome = ready.popleft()
            if not isinstance(outcome, ResourceError):
                yield item, load_reply(outcome)
            elif lost is not None:
                yield item, lost(item, outcome)
            else:
                raise outcome
        elif not busy and not waiting:
            return


def _handle_reply(
    pool: ActorPool,
    member: Member,
    task: PoolTask[Item],
    reply: bytes | str,
    waiting: deque[PoolTask[Item]],
    ready: deque[tuple[Item, bytes | ResourceError]],
) -> None:
    if isinstance(reply, bytes):
        ready.append((task.item, reply))
        pool.idle.append(member)
        return
    pool.reap(member)
    task.deaths += 1
    if task.deaths < MAX_DEATHS:
        waiting.appendleft(task)
        return
    message = f"{task.deaths} processes of the cluster died at {str(task.item)[:MAX_ITEM_CHARS]}"
    ready.append((task.item, ResourceError(f"{message}: {reply}; if memory ran out, use fewer jobs", fault="F63")))
