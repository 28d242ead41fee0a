"""Things that are loaded in few places of a cluster, such as models on its GPUs, and asked from many."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from jostle.cluster import crew
from jostle.cluster.crew import reason
from jostle.cluster.slots import INSTEAD, Slot, environment, likeness, machine
from jostle.errors import ResourceError
from jostle.parcels import opened, packed, unpacked

RESTARTS = 3  # of one that serves; it loads again then, if need be on another machine
_turn = itertools.count(os.getpid())  # so that not all processes ask the same one first
_silent_at: dict[str, float] = {}


@dataclass(frozen=True)
class Served:
    """Asks one of those that serve. It may travel: a process of the same cluster finds them by their names.

    A caller waits for its answer, so as many questions are under way as there are callers, and no more. One on the
    caller's own machine is asked first: frames then need no network.

    Attributes:
        names: of those that serve.
        machines: that they were started on.
    """

    names: tuple[str, ...]
    machines: tuple[str, ...]

    def __call__(self, function: Callable[..., Any], *arguments: object) -> Any:
        """What `function(thing, *arguments)` gives there, where `thing` is what was loaded.

        It may be asked twice when a machine dies, so the answer must depend on the arguments alone.

        Raises:
            ResourceError: if none of them answers.
        """
        import ray

        question = packed((function, arguments), INSTEAD)
        said = "none was found"
        for name in self._in_turn():
            try:
                answer = ray.get(_found(name).work.remote(question), timeout=crew.PATIENCE_S)
            except ray.exceptions.RayTaskError:
                raise
            except (ray.exceptions.RayError, ValueError) as error:
                said = reason(error)
                _silent_at[name] = time.monotonic()
                continue
            return opened(answer)
        raise ResourceError(
            f"no process with the models answers: {said}; see `ray status`, then run again", fault="F70"
        )

    def _in_turn(self) -> Iterator[str]:
        """Whom to ask, one after another; those that did not answer lately are left to start again, if others are."""
        here = machine()
        for _ in range(crew.TRIES * len(self.names)):
            now = time.monotonic()
            well = {name for name in self.names if now - _silent_at.get(name, -math.inf) > crew.PATIENCE_S}
            near = {name for name, place in zip(self.names, self.machines, strict=True) if place == here}
            names = sorted((well & near) or well or self.names)
            yield names[next(_turn) % len(names)]


@cache
def _found(name: str) -> Any:
    import ray

    return ray.get_actor(name)


def _answering(beginning: bytes) -> Callable[[tuple[Callable[..., Any], tuple[object, ...]]], Any]:
    thing = unpacked(beginning, INSTEAD)()
    return lambda question: question[0](thing, *question[1])


@contextlib.contextmanager
def serve(ray: Any, load: bytes, count: int, gpus_each: float) -> Iterator[Served]:
    """Start processes that load something and answer questions about it, until the context ends.

    Raises:
        ResourceError: if the cluster has no room for them.
    """
    beginning = ray.put(packed(partial(_answering, load), INSTEAD))
    pool = uuid.uuid4().hex
    names = tuple(f"jostle-{pool}-{number}" for number in range(count))
    options: dict[str, Any] = {"num_cpus": 0, "num_gpus": gpus_each, "max_restarts": RESTARTS, "max_task_retries": 0}
    options["runtime_env"] = environment()
    servers: list[Any] = []
    try:
        for name in names:
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
        yield Served(names, tuple(ray.get([server.machine.remote() for server in servers])))
    finally:
        for server in servers:
            ray.kill(server)
