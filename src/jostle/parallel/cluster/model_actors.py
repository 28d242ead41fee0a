"""Model servers on a Ray cluster, such as one for each GPU.

Workers on the same machine send requests through shared memory, as without a cluster; workers on other machines send
them through Ray. All requests wait in one queue, and are batched.
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
from jostle.parallel.cluster import pool
from jostle.parallel.cluster.pool import HINT, WorkerActor, death_reason, node_id, runtime_environment, worker_setup
from jostle.parallel.serialization import dumps, load_reply, loads
from jostle.parallel.serving import client
from jostle.parallel.serving.server import Call, DeviceStreams, start_server

RESTARTS = 3  # of a server, if necessary on another machine
MAX_PENDING = 2  # Ray requests of a process: while one is computed, the next is prepared
MAX_CONCURRENCY = 64  # Ray requests that a server accepts
RETRY_S = 0.5  # between requests to servers that are restarting
_turn = itertools.count(os.getpid())  # so that processes start with different servers
_failed_at: dict[str, float] = {}
_pending: deque[_RayRequest] = deque()


@dataclass(frozen=True)
class RayClient:
    """Client of the model servers on a cluster; picklable, because servers are found by their names.

    Servers on the caller's own machine are preferred. Through Ray, a caller has at most `MAX_PENDING` requests.
    """

    names: tuple[str, ...]  # actor names of the servers
    node_ids: tuple[str, ...]  # Ray nodes that they were started on
    addresses: tuple[str, ...]  # socket of each server on its machine; empty for none
    key: bytes = field(repr=False)

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """Return `function(model, *arguments)`, evaluated in a server.

        The request is repeated when a machine dies, so the result must depend on the arguments alone.

        Raises:
            ResourceError: if no server answers.
        """
        return self.submit(function, *arguments)()

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        """Submit a request; the returned function waits for its result.

        Args:
            together: maximum number of items (rows of the first argument) in a batch that `function.together`
                processes; a batch may combine requests of several workers.
        """
        submit_to_ray = partial(self._submit_to_ray, function, arguments, together)
        local = self.local_client(node_id())
        if not local.addresses:
            return submit_to_ray()
        try:
            future = local.submit(function, *arguments, together=together)
        except ResourceError:  # the server died, and Ray knows where it restarts
            return submit_to_ray()

        def wait_for_result() -> Any:
            try:
                return future()
            except ResourceError:
                return submit_to_ray()()

        return wait_for_result

    def local_client(self, node: str) -> client.SocketClient:
        """Return a client of the servers on a node, without a timeout for restarts: Ray may restart them elsewhere."""
        addresses = tuple(
            address for address, own in zip(self.addresses, self.node_ids, strict=True) if own == node and address
        )
        return client.SocketClient(addresses, self.key, timeout_s=0.0)

    def _submit_to_ray(
        self, function: Callable[..., Any], arguments: tuple[object, ...], together: int
    ) -> Callable[[], Any]:
        while len(_pending) >= MAX_PENDING:
            _pending.popleft().wait()
        call: Call = (function, arguments, *client.batching_of(function, arguments, together))
        request = _RayRequest(self, dumps(call, HINT))
        _pending.append(request)
        return request.result

    def _iter_names(self) -> Iterator[str]:
        """Yield servers to try: healthy ones on this node first, then healthy ones elsewhere, then any."""
        here = node_id()
        while True:
            now = time.monotonic()
            healthy = {name for name in self.names if now - _failed_at.get(name, -math.inf) > pool.TIMEOUT_S}
            near = {name for name, node in zip(self.names, self.node_ids, strict=True) if node == here}
            names = sorted((healthy & near) or healthy or self.names)
            yield names[next(_turn) % len(names)]


class _RayRequest:
    """A request that is sent through Ray, with its reply."""

    def __init__(self, remote: RayClient, payload: bytes) -> None:
        self._payload: bytes | None = payload
        self._names = remote._iter_names()
        self._deaths_left = pool.MAX_DEATHS * len(remote.names)
        self._restart_deadline = time.monotonic() + pool.TIMEOUT_S
        self._reply: bytes | ResourceError | None = None
        self._reference: Any = None
        self._send()

    def result(self) -> Any:
        """Wait for the result and return it."""
        self.wait()
        if isinstance(self._reply, ResourceError):
            raise self._reply
        assert self._reply is not None
        return load_reply(self._reply)

    def wait(self) -> None:
        """Wait for the reply, trying one server after another."""
        import ray

        while self._reply is None:
            try:
                if isinstance(self._reference, Exception):
                    raise self._reference
                self._reply = ray.get(self._reference, timeout=pool.TIMEOUT_S)
            except ray.exceptions.RayTaskError:
                raise
            except (ray.exceptions.RayError, ValueError) as error:
                now = time.monotonic()
                _failed_at[self._name] = now
                restarting = isinstance(error, ray.exceptions.ActorUnavailableError)
                if restarting and now < self._restart_deadline:
                    time.sleep(RETRY_S)  # Ray refuses requests at once meanwhile
                else:
                    self._deaths_left -= 1
                if self._deaths_left:
                    self._send()
                else:
                    reason = death_reason(error)
                    self._reply = ResourceError(
                        f"no model server answers: {reason}; see `ray status`, then run again", fault="F70"
                    )
        self._payload = self._reference = None

    def _send(self) -> None:
        import ray

        self._name = next(self._names)
        try:
            self._reference = _get_actor(self._name).work.remote(self._payload)
        except (ray.exceptions.RayError, ValueError) as error:
            self._reference = error


@cache
def _get_actor(name: str) -> Any:
    import ray

    return ray.get_actor(name)


def _start_server(load: bytes, streams: DeviceStreams, address: str, key: bytes) -> Callable[[Call], Any]:
    return start_server(loads(load, HINT), streams, address, key)


@contextlib.contextmanager
def start_model_actors(
    ray: Any, load: bytes, streams: DeviceStreams, count: int, gpus_each: float
) -> Iterator[RayClient]:
    """Serve a model from actors of the cluster until the context ends."""
    key = os.urandom(32)
    pool_id = uuid.uuid4().hex
    names = tuple(f"jostle-{pool_id}-{number}" for number in range(count))
    # Only Linux has abstract sockets, which have no file and end with the process.
    addresses = tuple(f"\0{name}" if sys.platform == "linux" else "" for name in names)
    options: dict[str, Any] = {"num_cpus": 0, "num_gpus": gpus_each, "max_restarts": RESTARTS, "max_task_retries": 0}
    options |= {"runtime_env": runtime_environment(), "max_concurrency": MAX_CONCURRENCY}
    servers: list[Any] = []
    remote: RayClient | None = None
    try:
        for name, address in zip(names, addresses, strict=True):
            factory = dumps(partial(_start_server, load, streams, address, key), HINT)
            servers.append(ray.remote(WorkerActor).options(name=name, **options).remote(factory, *worker_setup()))
        started = [server.begin.remote() for server in servers]
        done, late = ray.wait(started, num_returns=len(started), timeout=pool.TIMEOUT_S)
        if late:
            raise ResourceError(
                f"{len(late)} of {count} model servers found no free GPU in {pool.TIMEOUT_S:g} s; see "
                "`ray status`, then run again",
                fault="F70",
            )
        for reply in done:
            try:
                load_reply(ray.get(reply))
            except ray.exceptions.RayActorError as error:
                raise ResourceError(f"the models cannot be loaded: {death_reason(error)}", fault="F70") from None
        remote = RayClient(names, tuple(ray.get([server.node_id.remote() for server in servers])), addresses, key)
        yield remote
    finally:
        if remote is not None:
            client.close_session(remote.local_client(node_id()))
        for server in servers:
            ray.kill(server)
