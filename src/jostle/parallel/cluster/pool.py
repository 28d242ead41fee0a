"""A pool of worker actors on a Ray cluster, which replaces actors that die."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jostle.errors import ResourceError
from jostle.parallel.cluster.worker_actors import HINT, WorkerActor, runtime_environment, worker_setup
from jostle.parallel.serialization import dumps, load_reply

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
