"""The processes of a cluster at work: who is starting, who has what in hand, and what to do when one is gone."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jostle.errors import ResourceError
from jostle.parallel.cluster.worker_actors import INSTEAD, Slot, environment, likeness
from jostle.parallel.serialization import opened, packed

Item = TypeVar("Item")
Result = TypeVar("Result")

TRIES = 3  # processes that may die of an item; whole machines go, which is nobody's fault
PATIENCE_S = 300.0  # for a place on the cluster; machines may have to be switched on first
GLANCE_S = 5.0
SHOWN = 100  # characters of an item in a message
SAID = 200  # of what Ray says about a death


@dataclass
class Task(Generic[Item]):
    """An item, and how many processes died of it."""

    item: Item
    deaths: int = 0


@dataclass(frozen=True)
class Member:
    """A process of the cluster, and how many before it died while they started."""

    actor: Any
    failed_before: int = 0


class Crew:
    """Processes that were asked for.

    Attributes:
        idle: those that have begun and have nothing in hand.
        starting: those that wait for a place or load what they need, by what tells when they are done.
    """

    def __init__(self, ray: Any, beginning: bytes) -> None:
        self.ray = ray
        self.idle: deque[Member] = deque()
        self.starting: dict[Any, Member] = {}
        self._all: list[Member] = []
        self._beginning = ray.put(beginning)
        self._likeness = likeness()
        self._kind = ray.remote(Slot).options(
            num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD", runtime_env=environment()
        )

    def hire(self, failed_before: int = 0) -> None:
        """Ask for one more."""
        member = Member(self._kind.remote(self._beginning, *self._likeness), failed_before)
        self._all.append(member)
        self.starting[member.actor.begin.remote()] = member

    def welcome(self, done: Any) -> None:
        """Take in one that has started, or ask for another in place of one that died of it."""
        member = self.starting.pop(done)
        reply = self.reply(done)
        if isinstance(reply, bytes):
            opened(reply)
            self.idle.append(member)
            return
        self._all.remove(member)
        if member.failed_before + 1 < TRIES:
            self.hire(member.failed_before + 1)
        elif not self._all:
            raise ResourceError(f"no process can be started on the cluster: {reply}", fault="F63")

    def reply(self, done: Any) -> bytes | str:
        """What came back, or how the process or the machine met its end."""
        errors = self.ray.exceptions
        try:
            found: bytes = self.ray.get(done)
        except errors.RayTaskError:
            raise  # a mistake of ours: whatever the work raises comes as a reply
        except errors.RayError as error:
            return reason(error)
        return found

    def bury(self, member: Member) -> None:
        """Take leave of one that died, and ask for another."""
        self._all.remove(member)
        self.ray.kill(member.actor)  # if only its reply was lost
        self.hire()

    def dismiss(self) -> None:
        """Let all go."""
        for member in self._all:
            self.ray.kill(member.actor)
        self._all.clear()


def reason(error: Exception) -> str:
    """What Ray says about a death, in short."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("The actor is dead because", "The actor died because"))]
    return (telling or lines or [type(error).__name__])[0].partition(" Worker exit")[0][:SAID]


def results_of(
    crew: Crew, items: Sequence[Item], jobs: int, lost: Callable[[Item, ResourceError], Result] | None
) -> Generator[tuple[Item, Result], None, None]:
    """Results as they are done. Only who has started is given an item, so that none waits for a place."""
    waiting = deque(Task(item) for item in items)
    busy: dict[Any, tuple[Member, Task[Item]]] = {}
    ready: deque[tuple[Item, bytes | ResourceError]] = deque()
    since = time.monotonic()
    for _ in range(jobs):
        crew.hire()
    while True:
        done = crew.ray.wait([*busy, *crew.starting], timeout=0 if ready else GLANCE_S)[0]
        for reply in done:
            if reply in crew.starting:
                crew.welcome(reply)
            else:
                _take(crew, *busy.pop(reply), crew.reply(reply), waiting, ready)
        if done or busy or ready:
            since = time.monotonic()
        elif time.monotonic() - since > PATIENCE_S:
            raise ResourceError(
                f"no CPU of the cluster was free for {PATIENCE_S:g} s; see `ray status`, then run again", fault="F71"
            )
        # Whoever is idle works on while the caller looks at the results, but not without end.
        while waiting and crew.idle and len(ready) + len(busy) < 2 * jobs:
            member, task = crew.idle.popleft(), waiting.popleft()
            busy[member.actor.work.remote(packed(task.item, INSTEAD))] = member, task
        if ready:
            item, found = ready.popleft()
            if not isinstance(found, ResourceError):
                yield item, opened(found)
            elif lost is not None:
                yield item, lost(item, found)
            else:
                raise found
        elif not busy and not waiting:
            return


def _take(
    crew: Crew,
    member: Member,
    task: Task[Item],
    reply: bytes | str,
    waiting: deque[Task[Item]],
    ready: deque[tuple[Item, bytes | ResourceError]],
) -> None:
    if isinstance(reply, bytes):
        ready.append((task.item, reply))
        crew.idle.append(member)
        return
    crew.bury(member)
    task.deaths += 1
    if task.deaths < TRIES:
        waiting.appendleft(task)
        return
    what = f"{task.deaths} processes of the cluster died at {str(task.item)[:SHOWN]}"
    ready.append((task.item, ResourceError(f"{what}: {reply}; if memory ran out, use fewer jobs", fault="F63")))
