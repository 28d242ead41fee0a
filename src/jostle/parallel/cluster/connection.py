"""Connection to a Ray cluster: an existing one, or a temporary one on this machine."""

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
from typing import Any, Self

from jostle.errors import BadValue, MissingExtra, ResourceError
from jostle.parallel.cluster.model_actors import RayClient, start_model_actors
from jostle.parallel.cluster.pool import HINT, ActorPool
from jostle.parallel.mapping import Item, Result, map_over
from jostle.parallel.serialization import dumps
from jostle.parallel.serving.server import DeviceStreams
from jostle.parallel.workers import available_cpus

ADDRESS = "RAY_ADDRESS"
CONNECT_TIMEOUT_S = 10.0
STORE_BYTES = 256 * 2**20  # object store of a temporary cluster; messages are small


class Cluster:
    """A Ray cluster, to be used as a context manager.

    Attributes:
        cpus: current number of CPUs.
        gpus: current number of GPUs.
    """

    def __init__(self, address: str | None = None, *, jobs: int | None = None) -> None:
        """Connect to a cluster, or start one.

        Args:
            address: of a cluster, such as `10.0.0.1:6379` or `auto`; by default `$RAY_ADDRESS`, and without that a
                temporary cluster is started on this machine.
            jobs: CPUs of a temporary cluster; by default all cores.

        Raises:
            MissingExtra: if Ray is not installed.
            ResourceError: if no cluster answers there, or none can be started.
        """
        self._ray = _load_ray()
        self._owned = not self._ray.is_initialized()  # a connection that the caller opened is used and left open
        self._quiet = contextlib.ExitStack()
        if self._owned:
            self._connect(address or os.environ.get(ADDRESS) or None, jobs)

    @property
    def cpus(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    @property
    def gpus(self) -> int:
        return int(self._ray.cluster_resources().get("GPU", 0))

    def map_unordered(
        self,
        start: Callable[[], Callable[[Item], Result]],
        items: Sequence[Item],
        jobs: int | None = None,
        *,
        lost: Callable[[Item, ResourceError], Result] | None = None,
    ) -> Generator[tuple[Item, Result], None, None]:
        """Apply a function to items on the cluster, as `jostle.parallel.workers.map_unordered` does on one machine.

        A process or machine that dies is replaced and its item retried a few times before that is an error.

        Args:
            start: factory of the function that is applied; called once in each process.
            jobs: processes, each on a CPU of the cluster; by default one for each CPU.
            lost: returns a substitute result for an item that processes died of; by default that is an error.

        Raises:
            ResourceError: if processes died while processing an item, or the cluster has no free CPU.
            BadValue: if something cannot be pickled, or a machine has other library versions.
        """
        if jobs is not None and jobs < 1:
            raise BadValue(f"jobs must be at least 1, got {jobs}")
        if not items:
            return
        workers = min(jobs or max(self.cpus, 1), len(items))
        pool = ActorPool(self._ray, dumps(start, HINT), workers)
        try:
            yield from map_over(pool, items, workers, lost)
        finally:
            pool.shutdown()

    @contextlib.contextmanager
    def serving(
        self, load: Callable[[], Any], streams: DeviceStreams, *, count: int | None = None, gpus_each: float = 1
    ) -> Iterator[RayClient]:
        """Serve a model to the processes of `map_unordered` until the context ends.

        Args:
            load: returns the model; called once in each server.
            count: number of servers; by default as many as the GPUs allow.
            gpus_each: GPUs of each server, which may be a fraction.
        """
        servers = count if count is not None else int(self.gpus / gpus_each) if gpus_each else 1
        if servers < 1:
            raise ResourceError(f"the cluster has {self.gpus} GPUs, too few to load anything on; use --device cpu")
        with start_model_actors(self._ray, dumps(load, HINT), streams, servers, gpus_each) as remote:
            yield remote

    def close(self) -> None:
        """Disconnect, and stop a temporary cluster."""
        if self._owned:
            self._owned = False
            self._ray.shutdown()
            self._quiet.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self, address: str | None, jobs: int | None) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        own = address is None or address == "local"
        if address is None or address == "local":
            options |= {
                "address": "local",
                "num_cpus": jobs or available_cpus(),
                "include_dashboard": False,
                "object_store_memory": STORE_BYTES,
                "_node_ip_address": "127.0.0.1",  # not reachable from other machines
            }
        else:
            _check_reachable(address)
            options["address"] = address
        self._quiet.enter_context(_quiet_stdout())
        self._quiet.enter_context(_quiet_log())
        try:
            with _preserve_signal_handler(), _no_usage_statistics(), _no_warnings():
                self._ray.init(**options)
        except Exception as error:  # Ray raises many kinds of errors
            self._quiet.close()
            problem = "a Ray cluster cannot be started here" if own else f"no Ray cluster answers at {address}"
            raise _connection_error(problem, (str(error).strip().splitlines() or [type(error).__name__])[0]) from None
        except BaseException:
            self._quiet.close()
            raise


def _check_reachable(address: str) -> None:
    """Check that something listens at `host:port`, because Ray would retry for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return  # such as `auto`, which Ray resolves
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise _connection_error(f"no Ray cluster answers at {address}", error.strerror or str(error)) from None


def _connection_error(problem: str, reason: str) -> ResourceError:
    return ResourceError(f"{problem} ({reason}); see docs/how-to/cluster.md, or leave out --engine ray")


def _load_ray() -> Any:
    try:
        with _no_warnings():
            import ray
    except ImportError:
        raise MissingExtra("a cluster", "ray") from None
    return ray


@contextlib.contextmanager
def _preserve_signal_handler() -> Iterator[None]:
    """Restore the caller's SIGTERM handler, which Ray replaces."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if in_main_thread and previous is not None:
            signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def _no_usage_statistics() -> Iterator[None]:
    """Disable Ray's usage statistics, unless the user has configured them."""
    name = "RAY_USAGE_STATS_ENABLED"
    previous = os.environ.get(name)
    os.environ.setdefault(name, "0")
    try:
        yield
    finally:
        if previous is None:
            del os.environ[name]


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Suppress Ray's warnings, which are meant for developers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    log = logging.getLogger("ray")
    previous = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(previous)


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Suppress Ray's reports of dead processes on stdout, where only results belong."""
    inner = sys.modules.get("ray._private.worker")
    previous = getattr(inner, "print_to_stdstream", None)
    if previous is None:  # another version of Ray; its output is harmless
        yield
        return
    inner.print_to_stdstream = lambda *_, **__: None  # type: ignore[union-attr]
    try:
        yield
    finally:
        inner.print_to_stdstream = previous  # type: ignore[union-attr]
