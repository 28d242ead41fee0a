"""The loop that hands items to the processes of a pool and yields results as they complete, here or on a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from jostle.errors import ResourceError
from jostle.parallel.serialization import dumps, load_reply

Item = TypeVar("Item")
Result = TypeVar("Result")
Member = TypeVar("Member")

MAX_ITEM_CHARS = 100  # of an item, in messages


class Pool(Protocol[Member]):
    """Protocol of pools: processes that work on one item at a time, of which dead ones are replaced.

    Attributes:
        hint: what to do if something cannot be pickled, for the message.
        max_deaths: processes that may die while processing the same item.
    """

    hint: str
    max_deaths: int

    def take_idle(self) -> Member | None:
        """Return a process without an item, or None if one is not there yet."""

    def put_idle(self, member: Member) -> None:
        """Take a process back."""

    def send(self, member: Member, payload: bytes) -> Any:
        """Send a serialized item; return a handle to wait for."""

    def wait(self, busy: Collection[Any], *, block: bool) -> Sequence[Any]:
        """Return the handles of items that are done; with `block` wait until something happens.

        Raises:
            ResourceError: if no process can be had.
        """

    def receive(self, handle: Any, member: Member) -> bytes | str | None:
        """Return a serialized reply, or the reason that the process died, where one is known."""

    def replace(self, member: Member, reason: str | None, item: str, deaths: int) -> ResourceError:
        """Remove a process that died, and have another in its place; return the error to report.

        Args:
            item: that it died of.
            deaths: processes that have died of it.
        """


@dataclass
class _Task(Generic[Item]):
    """An item, and the number of processes that died while processing it."""

    item: Item
    deaths: int = 0


def map_over(
    pool: Pool[Any], items: Sequence[Item], jobs: int, lost: Callable[[Item, ResourceError], Result] | None
) -> Generator[tuple[Item, Result], None, None]:
    """Yield items with their results as they complete.

    Few results are buffered: the processes go on while the caller consumes results, and a slow caller slows them down.

    Args:
        jobs: items that are processed at once.
        lost: returns a substitute result for an item that processes died of; by default that is an error.
    """
    waiting = deque(_Task(item) for item in items)
    busy: dict[Any, tuple[Any, _Task[Item]]] = {}
    ready: deque[tuple[Item, bytes | ResourceError]] = deque()
    while True:
        for handle in pool.wait(busy, block=not ready):
            member, task = busy.pop(handle)
            reply = pool.receive(handle, member)
            if isinstance(reply, bytes):
                ready.append((task.item, reply))
                pool.put_idle(member)
                continue
            task.deaths += 1
            died = pool.replace(member, reply, str(task.item)[:MAX_ITEM_CHARS], task.deaths)
            if task.deaths < pool.max_deaths:
                waiting.appendleft(task)
            else:
                ready.append((task.item, died))
        while waiting and len(busy) < jobs and len(ready) + len(busy) < 2 * jobs:
            member = pool.take_idle()
            if member is None:
                break
            task = waiting.popleft()
            busy[pool.send(member, dumps(task.item, pool.hint))] = member, task
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
