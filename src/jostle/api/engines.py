"""Execution engines of a run: processes of this machine or a Ray cluster, with the model local or served."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import plugins_are_importable
from jostle.errors import BadValue, JostleError, ResourceError
from jostle.parallel.workers import available_cpus, lower_priority, map_unordered

if TYPE_CHECKING:
    from jostle.evaluation.inference.benchmark_model import BenchmarkModel
    from jostle.evaluation.inference.jobs import JobEngine, WorkerFactory
    from jostle.evaluation.run_folder.journal import WorkDone
    from jostle.parallel.serving.model_client import ModelClient

ENGINES = ("local", "ray")
LOCAL_S = 2.0  # about the time that workers take to start


@dataclass(frozen=True)
class Engine:
    """Engine that executes the work of a run."""

    engine: JobEngine  # distributes it
    device: str  # that networks run on there: `cpu` or `cuda`
    jobs: int  # videos at once
    here: bool = True  # whether a model can be tried in this process
    cluster: Any = None  # the cluster, if it is one
    # Processes of this machine that hold the model, each with the variables of its environment.
    processes: tuple[dict[str, str], ...] = ()
    model_stays: bool = False  # whether the model stays in this process, and workers send it their frames

    @contextmanager
    def with_models(self, model: BenchmarkModel) -> Iterator[BenchmarkModel]:
        """Yield the model as workers load it: itself, or a client of the processes that serve it."""
        if self.model_stays:
            yield replace(model, apart=True)  # `map_around_model` serves it
            return
        with self.serving(model.load) as served:
            if served is None:
                yield model
                return
            yield replace(model, load=partial(_remote_predictor, served), apart=True)

    @contextmanager
    def serving(self, load: Callable[[], Any]) -> Iterator[ModelClient | None]:
        """Yield a client of the process that holds the model, or None if every worker loads it."""
        if self.model_stays:
            with _serve_here(load(), self.device) as served:
                yield served
        elif self.cluster is not None and self.device != "cpu":
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

    def advise(self, work: WorkDone, model: BenchmarkModel) -> str:
        """Return what would have made a run faster, by what limited it; empty where nothing is known to."""
        if work.limit == "disk":
            return "a run folder on a faster disk would help"
        if self.model_stays and not work.apart:
            return ""  # it was over before workers were worth starting
        # A callable may compute anything, anywhere; GPUs and precision are for networks.
        network = model.weights is not None or model.extractor_weights is not None
        if work.limit == "model" and (work.apart or self.device != "cpu"):
            remedies = self._speed_up_model(work, model, network)
        else:
            remedies = [self._add_workers(work, online=(model.adapt or {}).get("protocol") == "online")]
            if work.limit == "model" and network:
                remedies.append("a GPU")
        return f"{' or '.join(remedies)} would help"

    def _add_workers(self, work: WorkDone, *, online: bool = False) -> str:
        """Return what speeds up the work of workers, each of which takes one video at a time."""
        cores = available_cpus()
        if work.videos <= work.workers:
            return "faster cores (every video had a worker to itself)"
        if online:
            return "faster cores (an online run takes one video after the other)"
        if self.cluster is not None or self.jobs >= cores:
            return "more cores"
        if not plugins_are_importable():
            return "a module for the corruptions that this script registers (workers could import it)"
        return f"more jobs ({self.jobs} for {cores} cores)"

    def _speed_up_model(self, work: WorkDone, model: BenchmarkModel, network: bool) -> list[str]:
        """Return what speeds up a model that workers wait for, or that is on a GPU."""
        if self.device == "cpu":
            copies = (
                "model_processes=0 (a copy in every worker, if it is picklable)"
                if self.model_stays
                else "--model-processes 0 (a copy in every worker)"
            )
            return [copies, "a GPU"] if network else [copies]
        remedies = []
        if network and model.precision in ("float32", "tf32"):
            remedies.append(
                'precision="bfloat16" (scores change; no gain if it computes so already)'
                if self.model_stays
                else "--precision bfloat16 (scores change)"
            )
        elif network and not model.compiled:
            remedies.append(f"{'compiled=True' if self.model_stays else '--compile'} (last digits change)")
        if work.apart and not self.model_stays:
            remedies.append("one more GPU")
        return remedies or ["a faster model"]


@contextmanager
def place_of(
    engine: str,
    device: str,
    jobs: int | None,
    *,
    many: bool,
    model_processes: int | None = None,
    picklable: bool = True,
) -> Iterator[Engine]:
    """Yield the engine of a name.

    Args:
        device: `auto`, `cpu` or `cuda`.
        jobs: as the caller gave them.
        many: whether several processes are used by default.
        model_processes: number of processes that hold the model; 0 for a model in every worker. By default one for each
            GPU, and on a CPU none.
        picklable: whether other processes can load the model; one that is an object of the caller's stays in this
            process unless `model_processes` is given.

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
        if not picklable and model_processes is None:
            count = jobs or (available_cpus() if many and plugins_are_importable() else 1)
            if count > 1:
                local_s = LOCAL_S if jobs is None and here == "cpu" else 0.0  # a GPU has much to do
                yield Engine(partial(map_around_model, here, local_s), here, count, model_stays=True)
            else:
                yield Engine(map_unordered, here, 1)
            return
        many = (picklable and many) or (jobs or 1) > 1
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


def map_around_model(
    device: str,
    local_s: float,
    start: WorkerFactory[Any],
    items: Sequence[Any],
    jobs: int,
    /,
    *,
    lost: Callable[[Any, ResourceError], Any] | None = None,
) -> Generator[tuple[Any, Any], None, None]:
    """Process jobs with a model of this process; workers decode and corrupt, and send it their frames.

    Args:
        local_s: time for which this process works alone first, as short work is done before workers have started.
    """
    predict = start.load()
    attempt, left, begin = start.attempt(predict), deque(items), time.monotonic()
    while left and (min(len(left), jobs) == 1 or time.monotonic() < begin + local_s):
        item = left.popleft()
        result = attempt(item)
        yield item, result if isinstance(result, JostleError) else replace(result, by_caller=True)
    if left:
        with _serve_here(predict, device) as served:
            remote = replace(start, load=partial(_remote_predictor, served))
            yield from map_unordered(remote, list(left), jobs, lost=lost)


@contextmanager
def _serve_here(predictor: Any, device: str) -> Iterator[ModelClient]:
    from jostle.core.cuda import CudaStreams
    from jostle.parallel.serving.processes import serving_here
    from jostle.parallel.serving.server import is_foreign

    guard = getattr(predictor, "guard", nullcontext)
    with guard(), serving_here(predictor, CudaStreams.like_here(device), foreign=is_foreign(predictor)) as served:
        yield served


def _remote_predictor(served: ModelClient) -> Any:
    from jostle.evaluation.inference.remote import connect_predictor

    lower_priority()  # a GPU stands still while the process with the model waits for a core
    return connect_predictor(served)


def _processes(device: str, count: int | None) -> tuple[dict[str, str], ...]:
    if device == "cpu":
        return tuple({} for _ in range(count or 0))
    from jostle.models.devices import one_gpu_each

    return tuple(one_gpu_each(count))
