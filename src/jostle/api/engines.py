"""Where the work of a run is done: in processes of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue
from jostle.workers import cores, worked

if TYPE_CHECKING:
    from jostle.looking.work import Engine
    from jostle.running.runner import Contestant

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Place:
    """Where the work is done.

    Attributes:
        engine: shares it out.
        device: that networks run on there: `cpu` or `cuda`.
        jobs: videos at once, unless the caller says otherwise.
        here: whether that device is one of this machine, so that a model can be tried.
        cluster: the cluster, if it is one.
    """

    engine: Engine
    device: str
    jobs: int
    here: bool = True
    cluster: Any = None

    @contextmanager
    def with_models(self, contestant: Contestant) -> Iterator[Contestant]:
        """The contestant as workers load it: on a cluster with GPUs, models are there and videos anywhere."""
        if self.cluster is None or self.device == "cpu":
            yield contestant
            return
        from jostle.looking.remote import look_from_afar

        with self.cluster.serving(contestant.load) as served:
            yield replace(contestant, load=partial(look_from_afar, served))


@contextmanager
def place_of(engine: str, device: str, jobs: int | None, *, many: bool) -> Iterator[Place]:
    """The place that an engine's name means.

    Args:
        device: `auto`, `cpu` or `cuda`.
        jobs: as the caller gave them.
        many: whether several processes may be used though nobody asked for them.

    Raises:
        BadValue: if there is no such engine.
        ResourceError: if no cluster answers.
    """
    from jostle.detectors.devices import device_for

    if jobs is not None and jobs < 1:
        raise BadValue(f"jobs must be at least 1, got {jobs}")
    if engine not in ENGINES:
        raise BadValue(f"engine must be {' or '.join(ENGINES)}, got {engine!r}")
    if engine == "local":
        here = str(device_for(device))
        yield Place(worked, here, jobs or (cores() if here == "cpu" and many else 1))
        return
    from jostle.cluster.connection import Cluster

    with Cluster(jobs=jobs) as cluster:
        there = device if device != "auto" else "cuda" if cluster.gpus else "cpu"
        yield Place(cluster.worked, there, jobs or max(cluster.cpus, 1), there == "cpu", cluster)
