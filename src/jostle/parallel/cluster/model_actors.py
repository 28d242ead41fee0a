"""Things that are loaded in few places of a cluster, such as models on its GPUs, and asked from many.

Whoever works on the same machine asks as workers of a single machine do, through memory that both share; whoever works
on another asks through Ray. All questions wait in one row, and are answered together where they are alike.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from jostle.errors import ResourceError
from jostle.parallel.cluster import pool as crew
from jostle.parallel.cluster.pool import reason
from jostle.parallel.cluster.worker_actors import INSTEAD, Slot, environment, likeness, machine
from jostle.parallel.serialization import opened, packed, unpacked
from jostle.parallel.serving import client
from jostle.parallel.serving.server import Asked, Lanes, answering

RESTARTS = 3  # of one that serves; it loads again then, if need be on another machine
_turn = itertools.count(os.getpid())  # so that not all processes ask the same one first
UNDER_WAY = 2  # questions of a process through Ray: while one is answered, the next is made ready
AT_ONCE = 64  # questions through Ray that one of those that serve takes in
_silent_at: dict[str, float] = {}
_under_way: deque[_Asked] = deque()


@dataclass(frozen=True)
class Served:
    """Asks one of those that serve. It may travel: a process of the same cluster finds them by their names.

    One on the caller's own machine is asked first. Through Ray, a caller has few questions under way, and waits for
    answers before it asks more.

    Attributes:
        names: of those that serve.
        machines: that they were started on.
        addresses: where each listens on its machine; empty where it does not.
        key: by which they know their own.
    """

    names: tuple[str, ...]
    machines: tuple[str, ...]
    addresses: tuple[str, ...]
    key: bytes = field(repr=False)

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """What `function(thing, *arguments)` gives there, where `thing` is what was loaded.

        It may be asked twice when a machine dies, so the answer must depend on the arguments alone.

        Raises:
            ResourceError: if none of them answers.
        """
        return self.later(function, *arguments)()

    def later(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        """Ask, and go on; what is given back waits for the answer.

        Args:
            together: items, which are the rows of the first argument, that `function.together` answers at once, of
                this and of other questions like it.
        """
        through_ray = partial(self._through_ray, function, arguments, together)
        near = self.near(machine())
        if not near.addresses:
            return through_ray()
        try:
            answer = near.later(function, *arguments, together=together)
        except ResourceError:  # it is not there any more, and Ray knows where it is started again
            return through_ray()

        def answered() -> Any:
            try:
                return answer()
            except ResourceError:
                return through_ray()()

        return answered

    def near(self, place: str) -> client.Served:
        """Those that were started on a machine, as asked there. Ray starts them again elsewhere: nobody waits there."""
        here = tuple(
            address for address, own in zip(self.addresses, self.machines, strict=True) if own == place and address
        )
        return client.Served(here, self.key, patience_s=0.0)

    def _through_ray(
        self, function: Callable[..., Any], arguments: tuple[object, ...], together: int
    ) -> Callable[[], Any]:
        while len(_under_way) >= UNDER_WAY:
            _under_way.popleft().settle()
        told: Asked = (function, arguments, *client.kind_of(function, arguments, together))
        asked = _Asked(self, packed(told, INSTEAD))
        _under_way.append(asked)
        return asked.answer

    def _in_turn(self) -> Iterator[str]:
        """Whom to ask, one after another; those that did not answer lately are left to start again, if others are."""
        here = machine()
        for _ in range(crew.TRIES * len(self.names)):
            now = time.monotonic()
            well = {name for name in self.names if now - _silent_at.get(name, -math.inf) > crew.PATIENCE_S}
            near = {name for name, place in zip(self.names, self.machines, strict=True) if place == here}
            names = sorted((well & near) or well or self.names)
            yield names[next(_turn) % len(names)]


class _Asked:
    """A question on its way, and its answer as soon as that is there."""

    def __init__(self, served: Served, question: bytes) -> None:
        self._question: bytes | None = question
        self._turn = served._in_turn()
        self._reply: bytes | ResourceError | None = None
        self._sent: Any = None
        self._send()

    def answer(self) -> Any:
        """Wait for it."""
        self.settle()
        if isinstance(self._reply, ResourceError):
            raise self._reply
        assert self._reply is not None
        return opened(self._reply)

    def settle(self) -> None:
        """Have the answer here; one after another is asked as long as there is none."""
        import ray

        while self._reply is None:
            try:
                if isinstance(self._sent, Exception):
                    raise self._sent
                self._reply = ray.get(self._sent, timeout=crew.PATIENCE_S)
            except ray.exceptions.RayTaskError:
                raise
            except (ray.exceptions.RayError, ValueError) as error:
                _silent_at[self._name] = time.monotonic()
                self._send(reason(error))
        self._question = self._sent = None

    def _send(self, said: str = "none was found") -> None:
        import ray

        try:
            self._name = next(self._turn)
            self._sent = _found(self._name).work.remote(self._question)
        except StopIteration:
            self._reply = ResourceError(
                f"no process with the models answers: {said}; see `ray status`, then run again", fault="F70"
            )
        except (ray.exceptions.RayError, ValueError) as error:
            self._sent = error


@cache
def _found(name: str) -> Any:
    import ray

    return ray.get_actor(name)


def _answering(load: bytes, lanes: Lanes, address: str, key: bytes) -> Callable[[Asked], Any]:
    return answering(unpacked(load, INSTEAD), lanes, address, key)


@contextlib.contextmanager
def serve(ray: Any, load: bytes, lanes: Lanes, count: int, gpus_each: float) -> Iterator[Served]:
    """Start processes that load something and answer questions about it, until the context ends.

    Args:
        lanes: how they use their device.

    Raises:
        ResourceError: if the cluster has no room for them.
    """
    key = os.urandom(32)
    pool = uuid.uuid4().hex
    names = tuple(f"jostle-{pool}-{number}" for number in range(count))
    # A name that lies in no folder, and goes with the process, is something that Linux has.
    addresses = tuple(f"\0{name}" if sys.platform == "linux" else "" for name in names)
    options: dict[str, Any] = {"num_cpus": 0, "num_gpus": gpus_each, "max_restarts": RESTARTS, "max_task_retries": 0}
    options |= {"runtime_env": environment(), "max_concurrency": AT_ONCE}
    servers: list[Any] = []
    served: Served | None = None
    try:
        for name, address in zip(names, addresses, strict=True):
            beginning = packed(partial(_answering, load, lanes, address, key), INSTEAD)
            servers.append(ray.remote(Slot).options(name=name, **options).remote(beginning, *likeness()))
        begun = [server.begin.remote() for server in servers]
        done, late = ray.wait(begun, num_returns=len(begun), timeout=crew.PATIENCE_S)
        if late:
            raise ResourceError(
                f"{len(late)} of {count} processes for the models found no free GPU in {crew.PATIENCE_S:g} s; see "
                "`ray status`, then run again",
                fault="F70",
            )
        for reply in done:
            try:
                opened(ray.get(reply))
            except ray.exceptions.RayActorError as error:
                raise ResourceError(f"the models cannot be loaded: {reason(error)}", fault="F70") from None
        served = Served(names, tuple(ray.get([server.machine.remote() for server in servers])), addresses, key)
        yield served
    finally:
        if served is not None:
            client.leave(served.near(machine()))
        for server in servers:
            ray.kill(server)
