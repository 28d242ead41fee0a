"""Execution engines of a run: processes of this machine or a Ray cluster, with the model local or served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue
from jostle.parallel.workers import available_cpus, lower_priority, map_unordered

if TYPE_CHECKING:
    from jostle.evaluation.inference.jobs import JobEngine
    from jostle.evaluation.inference.remote import RemoteCall
    from jostle.evaluation.runner.runner import BenchmarkModel

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Engine:
    """Engine that executes the work of a run."""

    engine: JobEngine  # shares it out
    device: str  # that networks run on there: `cpu` or `cuda`
    jobs: int  # videos at once, unless the caller says otherwise
    here: bool = True  # whether a model can be tried in this process
    cluster: Any = None  # the cluster, if it is one
    # Of this machine that hold the model, each with the variables of its environment.
    processes: tuple[dict[str, str], ...] = ()

    @contextmanager
    def with_models(self, model: BenchmarkModel) -> Iterator[BenchmarkModel]:
        """Yield the model as workers load it: itself, or a client of the processes that serve it."""
        with self.serving(model.load) as served:
            if served is None:
                yield model
                return
            yield replace(model, load=partial(_remote_predictor, served), apart=True)

    @contextmanager
    def serving(self, load: Callable[[], Any]) -> Iterator[RemoteCall | None]:
        """Return a client of the processes that hold the model, or None if every worker loads it."""
        if self.cluster is not None and self.device != "cpu":
            from jostle.core.cuda import CudaStreams

            with self.cluster.serving(load, CudaStreams(self.device)) as served:
                yield served
        elif self.processes:
            from jostle.core.cuda import CudaStreams
            from jostle.parallel.serving.processes import serving

            with serving(load, CudaStreams(self.device), self.processes) as served:
                yield served
        else:
            yield None


@contextmanager
def place_of(
    engine: str, device: str, jobs: int | None, *, many: bool, model_processes: int | None = None
) -> Iterator[Engine]:
    """The place that an engine's name means.

    Args:
        device: `auto`, `cpu` or `cuda`.
        jobs: as the caller gave them.
        many: whether several processes may be used by default.
        model_processes: that hold the model, for workers to ask; 0 for a model in every worker. By default one a GPU,
            and on a CPU none.

    Raises:
        BadValue: if there is no such engine.
        ResourceError: if no cluster answers.
    """
    from jostle.models.devices import device_for

    if jobs is not None and jobs < 1:
        raise BadValue(f"jobs must be at least 1, got {jobs}")
    if engine not in ENGINES:
        raise BadValue(f"engine must be {' or '.join(ENGINES)}, got {engine!r}")
    if model_processes is not None and model_processes < 0:
        raise BadValue(f"model_processes must not be below 0, got {model_processes}")
    if engine == "local":
        here = str(device_for(device))
        many = many or (jobs or 1) > 1
        processes = _processes(here, model_processes if many or model_processes else 0)
        default = available_cpus() if many and (here == "cpu" or processes) else 1
        yield Engine(map_unordered, here, jobs or default, not processes, processes=processes)
        return
    if model_processes is not None:
        raise BadValue("model_processes are of this machine; a cluster has one a GPU")
    from jostle.parallel.cluster.connection import Cluster

    with Cluster(jobs=jobs) as cluster:
        there = device if device != "auto" else "cuda" if cluster.gpus else "cpu"
        yield Engine(cluster.map_unordered, there, jobs or max(cluster.cpus, 1), there == "cpu", cluster)


def _remote_predictor(served: RemoteCall) -> Any:
    from jostle.evaluation.inference.remote import connect_predictor

    lower_priority()  # a GPU stands still while the process with the model waits for a core
    return connect_predictor(served)


def _processes(device: str, count: int | None) -> tuple[dict[str, str], ...]:
    if device == "cpu":
        return tuple({} for _ in range(count or 0))
    from jostle.models.devices import one_gpu_each

    return tuple(one_gpu_each(count))
