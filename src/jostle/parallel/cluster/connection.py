"""A Ray cluster: one that is there, or one on this machine that lives as long as it is used."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from jostle.errors import BadValue, MissingExtra, ResourceError
from jostle.parallel.cluster.model_actors import Served, serve
from jostle.parallel.cluster.pool import Crew, results_of
from jostle.parallel.cluster.worker_actors import INSTEAD
from jostle.parallel.serialization import packed
from jostle.parallel.serving.server import Lanes
from jostle.parallel.workers import cores

Item = TypeVar("Item")
Result = TypeVar("Result")

ADDRESS = "RAY_ADDRESS"
KNOCK_S = 10.0
STORE_BYTES = 256 * 2**20  # of a cluster of our own; what travels is small


class Cluster:
    """A Ray cluster, to be used as a context.

    Attributes:
        cpus: how many it has at the moment.
        gpus: how many it has at the moment.
    """

    def __init__(self, address: str | None = None, *, jobs: int | None = None) -> None:
        """Connect.

        Args:
            address: of a cluster, such as `10.0.0.1:6379` or `auto`; by default `$RAY_ADDRESS`, and without that a
                cluster is started on this machine and ended afterwards.
            jobs: processes of a cluster that is started here; by default one a core.

        Raises:
            MissingExtra: if Ray is not installed.
            ResourceError: if no cluster answers there, or none can be started.
        """
        self._ray = _load_ray()
        self._ours = not self._ray.is_initialized()  # a caller's own connection is used and left as it is
        self._quiet = contextlib.ExitStack()
        if self._ours:
            self._connect(address or os.environ.get(ADDRESS) or None, jobs)

    @property
    def cpus(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    @property
    def gpus(self) -> int:
        return int(self._ray.cluster_resources().get("GPU", 0))

    def worked(
        self,
        start: Callable[[], Callable[[Item], Result]],
        items: Sequence[Item],
        jobs: int | None = None,
        *,
        lost: Callable[[Item, ResourceError], Result] | None = None,
    ) -> Generator[tuple[Item, Result], None, None]:
        """Results of items as they are done; see `jostle.parallel.workers.worked`, which does the same on one machine.

        A process or machine that dies is replaced and its item given to another, a few times; then it is an error.

        Args:
            start: gives the function that does the work; it is called in each process once.
            jobs: processes, each on a CPU of the cluster; by default as many as there are.
            lost: gives what stands for the result of an item that processes died of, instead of the error.

        Raises:
            ResourceError: if processes died over an item, or the cluster has no room for any.
            BadValue: if something cannot travel, or a machine has other builds of the libraries.
        """
        if jobs is not None and jobs < 1:
            raise BadValue(f"jobs must be at least 1, got {jobs}")
        if not items:
            return
        many = min(jobs or max(self.cpus, 1), len(items))
        crew = Crew(self._ray, packed(start, INSTEAD))
        try:
            yield from results_of(crew, items, many, lost)
        finally:
            crew.dismiss()

    @contextlib.contextmanager
    def serving(
        self, load: Callable[[], Any], lanes: Lanes, *, count: int | None = None, gpus_each: float = 1
    ) -> Iterator[Served]:
        """Have something loaded once a GPU, for the processes of `worked` to ask.

        Args:
            load: gives what is asked, such as models on a GPU.
            lanes: how its device is used.
            count: how many; by default as many as GPUs suffice for.
            gpus_each: the share of a GPU that each is given.

        Raises:
            ResourceError: if there is no GPU free for them.
        """
        many = count if count is not None else int(self.gpus / gpus_each) if gpus_each else 1
        if many < 1:
            raise ResourceError(f"the cluster has {self.gpus} GPUs, too few to load anything on; use --device cpu")
        with serve(self._ray, packed(load, INSTEAD), lanes, many, gpus_each) as served:
            yield served

    def close(self) -> None:
        """Leave; a cluster that was started here ends."""
        if self._ours:
            self._ours = False
            self._ray.shutdown()
            self._quiet.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self, address: str | None, jobs: int | None) -> None:
        asked: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        ours = address is None or address == "local"
        if address is None or address == "local":
            asked |= {
                "address": "local",
                "num_cpus": jobs or cores(),
                "include_dashboard": False,
                "object_store_memory": STORE_BYTES,
                "_node_ip_address": "127.0.0.1",  # nobody else is to reach it
            }
        else:
            _knock(address)
            asked["address"] = address
        self._quiet.enter_context(_nothing_on_stdout())
        self._quiet.enter_context(_few_words())
        try:
            with _signals_kept(), _nobody_told(), _no_warnings():
                self._ray.init(**asked)
        except Exception as error:  # Ray has many ways to say no
            self._quiet.close()
            what = "a Ray cluster cannot be started here" if ours else f"no Ray cluster answers at {address}"
            raise _unanswered(what, (str(error).strip().splitlines() or [type(error).__name__])[0]) from None
        except BaseException:
            self._quiet.close()
            raise


def _knock(address: str) -> None:
    """See that somebody listens at `host:port`; Ray would try for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return  # `auto` and the like, which Ray looks up
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_S).close()
    except OSError as error:
        raise _unanswered(f"no Ray cluster answers at {address}", error.strerror or str(error)) from None


def _unanswered(what: str, why: str) -> ResourceError:
    return ResourceError(f"{what} ({why}); see docs/how-to/cluster.md, or leave out --engine ray")


def _load_ray() -> Any:
    try:
        with _no_warnings():
            import ray
    except ImportError:
        raise MissingExtra("a cluster", "ray") from None
    return ray


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray puts its own handler of SIGTERM in place of the caller's, who may have files to remove."""
    mine = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if mine and before is not None:
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _nobody_told() -> Iterator[None]:
    """A cluster of our own sends no statistics to anybody, unless the user set that otherwise."""
    name = "RAY_USAGE_STATS_ENABLED"
    before = os.environ.get(name)
    os.environ.setdefault(name, "0")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """What Ray has to tell those who write for it is nothing for those who use us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _few_words() -> Iterator[None]:
    log = logging.getLogger("ray")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


@contextlib.contextmanager
def _nothing_on_stdout() -> Iterator[None]:
    """Ray tells of processes that died on stdout, where only results belong; we say it ourselves where it matters."""
    inner = sys.modules.get("ray._private.worker")
    before = getattr(inner, "print_to_stdstream", None)
    if before is None:  # another version of Ray; its noise is harmless
        yield
        return
    inner.print_to_stdstream = lambda *_, **__: None  # type: ignore[union-attr]
    try:
        yield
    finally:
        inner.print_to_stdstream = before  # type: ignore[union-attr]
