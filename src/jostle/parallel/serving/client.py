"""Client of the model servers: sends each request to the least busy server, and waits for the reply later."""

from __future__ import annotations

import mmap
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np

from jostle.errors import ResourceError
from jostle.parallel.serialization import dumps_out_of_band, load_reply
from jostle.parallel.serving.server import REPLY, STATS
from jostle.parallel.serving.shared_memory import Segment, packed_size

HINT = "keep the model in the workers, --model-processes 0"
MAX_DEATHS = 3  # servers that may die while processing the same request
TIMEOUT_S = 300.0
RETRY_S = 0.05
SMALL_BYTES = 2**16  # sent through the socket
MAX_SEGMENTS, MIN_SEGMENTS = 16, 2  # segments, and so pending requests, of a worker
MAX_SEGMENT_BYTES = 96 * 2**20  # in all, unless MIN_SEGMENTS need more; registering memory with a GPU is slow

Future = Callable[[], Any]


@dataclass(frozen=True)
class SocketClient:
    """Client of the model servers on this machine; picklable, so that it can be sent to workers."""

    addresses: tuple[str, ...]  # sockets of the servers
    key: bytes = field(repr=False)
    timeout_s: float = TIMEOUT_S  # time for a server to restart and load the model again

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """Return `function(model, *arguments)`, evaluated in a server.

        The request is repeated when a server dies, so the result must depend on the arguments alone.

        Raises:
            ResourceError: if servers died while processing it, or none answers.
        """
        return self.submit(function, *arguments)()

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Future:
        """Submit a request; the returned function waits for its result.

        Args:
            together: maximum number of items (rows of the first argument) in a batch that `function.together`
                processes; a batch may combine requests of several workers.
        """
        return _session(self).submit(function, arguments, together)

    def busy_s(self) -> float:
        """Return the total compute time of all servers, in seconds."""
        return _session(self).busy_s()


_sessions: dict[SocketClient, _Session] = {}


def _session(client: SocketClient) -> _Session:
    if client not in _sessions:
        _sessions[client] = _Session(client)
    return _sessions[client]


def close_session(client: SocketClient) -> None:
    """Close this process's connections to the servers and free the shared memory, if there are any."""
    if client in _sessions:
        _sessions.pop(client).close()


@dataclass
class _PendingRequest:
    """A request without a reply so far."""

    message: tuple[Any, ...]
    segment: int | None  # shared-memory segment of its arrays, or None
    server: int | None = None  # index of the server that has it; None for a request that has to be sent again
    deaths: int = 0  # servers that died while processing it
    cancelled: bool = False  # whether the reply is no longer needed, as when a video turned out to be damaged


class _Reply:
    """A future: call it to wait for the result."""

    def __init__(self, session: _Session, number: int) -> None:
        self._session, self._request_id = session, number

    def __call__(self) -> Any:
        return self._session.result(self._request_id)

    def __del__(self) -> None:
        self._session.discard(self._request_id)


class _ServerConnection:
    """Connection to a model server.

    Attributes:
        pipe: the socket.
        shared: segments that the server has mapped, by number.
    """

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        if (refusal := pickle.loads(pipe.recv_bytes())) is not None:  # the server has failed for good
            load_reply(refusal)
        handle = recv_handle(pipe)
        self._stats = mmap.mmap(handle, STATS.size, prot=mmap.PROT_READ)
        os.close(handle)
        self.shared: dict[int, Segment] = {}

    @property
    def waiting(self) -> int:
        """Items of all workers in the server's queue."""
        items: int = STATS.unpack_from(self._stats)[0]
        return items

    @property
    def busy_s(self) -> float:
        """Compute time of the server in seconds."""
        return float(STATS.unpack_from(self._stats)[1] / 1e9)

    def share(self, number: int, segment: Segment) -> None:
        """Send the server a handle of a segment, unless it has it already."""
        if self.shared.get(number) is not segment:
            self.pipe.send_bytes(pickle.dumps((number, segment.size)))
            send_handle(self.pipe, segment.handle, os.getpid())
            self.shared[number] = segment


class _Session:
    """Connections and pending requests of this process; not thread-safe."""

    def __init__(self, client: SocketClient) -> None:
        self._client = client
        self._connections: dict[int, _ServerConnection] = {}
        self._pending: dict[int, _PendingRequest] = {}
        self._replies: dict[int, bytes] = {}
        self._segments: list[Segment] = []
        self._free: list[int] = []
        self._next_id = 0

    def submit(self, function: Callable[..., Any], arguments: tuple[object, ...], together: int) -> Future:
        body, parts = dumps_out_of_band((function, arguments), HINT)
        number, self._next_id = self._next_id, self._next_id + 1
        head = (number, *batching_of(function, arguments, together), body)
        if (size := packed_size(parts)) > SMALL_BYTES:
            segment = self._acquire_segment(size)
            request = _PendingRequest((*head, segment, self._segments[segment].write(parts)), segment)
        else:
            request = _PendingRequest((*head, None, [bytes(part) for part in parts]), None)
        self._pending[number] = request
        self._send(request)
        return _Reply(self, number)

    def busy_s(self) -> float:
        self._connect(time.monotonic() + self._client.timeout_s)
        return sum(connection.busy_s for connection in self._connections.values())

    def result(self, number: int) -> Any:
        while number not in self._replies:
            assert number in self._pending, "a result can be fetched once"
            self._receive()
        return load_reply(self._replies.pop(number))

    def discard(self, number: int) -> None:
        """Drop a reply that is not needed any more."""
        self._replies.pop(number, None)
        if number in self._pending:
            self._pending[number].cancelled = True

    def close(self) -> None:
        for connection in self._connections.values():
            connection.pipe.close()
        for segment in self._segments:
            segment.close()
        self._connections.clear()
        self._segments.clear()

    def _acquire_segment(self, size: int) -> int:
        """Return the number of a free segment of at least `size` bytes, waiting for one if necessary."""
        while True:
            fits = [number for number in self._free if self._segments[number].size >= size]
            if fits:
                self._free.remove(fits[0])
                return fits[0]
            held = sum(segment.size for segment in self._segments)
            if len(self._segments) < MIN_SEGMENTS or (
                len(self._segments) < MAX_SEGMENTS and held + size <= MAX_SEGMENT_BYTES
            ):
                self._segments.append(Segment(size))
                return len(self._segments) - 1
            if self._free:
                larger, number = Segment(size), self._free.pop(0)
                self._segments[number].close()
                self._segments[number] = larger
                return number
            self._receive()

    def _send(self, request: _PendingRequest) -> None:
        deadline = time.monotonic() + self._client.timeout_s
        while True:
            self._connect(deadline)
            server = self._least_busy()
            connection = self._connections[server]
            try:
                if request.segment is not None:
                    connection.share(request.segment, self._segments[request.segment])
                connection.pipe.send_bytes(pickle.dumps(request.message))
            except OSError:
                self._drop_connection(server)
            else:
                request.server = server
                return

    def _least_busy(self) -> int:
        """Return the server with the fewest queued items; the process id breaks ties, so that workers spread out."""
        waiting = {server: connection.waiting for server, connection in self._connections.items()}
        for request in self._pending.values():
            if request.server in waiting:
                waiting[request.server] += 1
        return min(waiting, key=lambda server: (waiting[server], (server - os.getpid()) % len(self._client.addresses)))

    def _receive(self) -> None:
        """Receive replies, and resend the requests of servers that died."""
        for request in [request for request in self._pending.values() if request.server is None]:
            self._send(request)
        servers = {
            self._connections[request.server].pipe: request.server
            for request in self._pending.values()
            if request.server is not None
        }
        for pipe in wait(list(servers)):
            server = servers[pipe]  # type: ignore[index]
            try:
                reply = self._connections[server].pipe.recv_bytes()
            except (EOFError, OSError):
                self._drop_connection(server)
                continue
            number, size = REPLY.unpack_from(reply)
            request = self._pending.pop(number)
            if not request.cancelled:
                self._replies[number] = reply[REPLY.size :]
                if size:
                    assert request.segment is not None
                    self._replies[number] = self._segments[request.segment].read(size)
            if request.segment is not None:
                self._free.append(request.segment)

    def _drop_connection(self, server: int) -> None:
        """Close the connection to a dead server and mark its requests for resending."""
        self._connections.pop(server).pipe.close()
        lost = [request for request in self._pending.values() if request.server == server]
        for request in lost:
            request.server = None
            request.deaths += 1
        if any(request.deaths >= MAX_DEATHS for request in lost):
            raise ResourceError(
                f"{MAX_DEATHS} model servers died while processing one request; if memory ran out, use fewer jobs or a "
                "smaller model",
                fault="F70",
            )

    def _connect(self, deadline: float) -> None:
        """Connect to every server that answers; wait until there is at least one."""
        while True:
            startup_error: ResourceError | None = None
            for server, address in enumerate(self._client.addresses):
                if server not in self._connections:
                    try:
                        self._connections[server] = _ServerConnection(Client(address, "AF_UNIX", self._client.key))
                    except ResourceError as error:
                        startup_error = error
                    except (OSError, EOFError, RuntimeError, AuthenticationError):
                        pass  # not listening at the moment
            if self._connections:
                return
            if startup_error is not None:
                raise startup_error
            if time.monotonic() > deadline:
                raise ResourceError(
                    f"no model server answered for {self._client.timeout_s:g} s; run again, and finished videos are "
                    "skipped",
                    fault="F70",
                )
            time.sleep(RETRY_S)


def batching_of(
    function: Callable[..., Any], arguments: tuple[object, ...], together: int
) -> tuple[bytes | None, int, int]:
    """Return a request's batch key (None for no batching), its number of items, and the maximum batch size.

    Requests with equal keys may share a batch. Arguments after the items are part of the key, or their `kind` attribute
    where they have one. With `copies`, an argument says how often each item is processed.
    """
    if together == 1:
        return None, 1, 1
    items = arguments[0]
    assert isinstance(items, np.ndarray)
    others = tuple(getattr(argument, "kind", argument) for argument in arguments[1:])
    common = (function.__module__, function.__qualname__, items.shape[1:], items.dtype.str, others)
    copies = max((getattr(argument, "copies", 1) for argument in arguments[1:]), default=1)
    return repr(common).encode(), len(items) * copies, together
