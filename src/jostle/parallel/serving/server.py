"""Model server: a process that holds a model and answers the requests of many workers.

All requests wait in one queue. Requests with the same batch key are processed as one batch; the model pads partial
batches. Models of jostle prove on the processor at hand that a row does not depend on what else is in a batch
(`jostle.models.rows`), and a run checks reuse on one cell, whatever the model. On a GPU several threads take turns:
while one waits for its results, the next has already started.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, Protocol

from jostle.errors import ResourceError
from jostle.parallel.serialization import dump_reply, load_reply
from jostle.parallel.serving.shared_memory import Segment

REPLY = struct.Struct("<QQ")  # request, and size of the reply where it is in the segment of the request, or 0
LARGE_REPLY = 2**14  # bytes from which a reply is written to shared memory: a socket would block until it is read
STATS = struct.Struct("<QQ")  # queued items, and nanoseconds of compute time
BACKLOG = 256  # of pending connections
ACCEPTED = pickle.dumps(None)
MODELS = ("model", "extractor", "detector", "language_model")  # attributes of predictors

# Function, arguments, batch key (None for no batching), number of items, maximum batch size.
Call = tuple[Callable[..., Any], tuple[Any, ...], bytes | None, int, int]


class DeviceStreams(Protocol):
    """How a server uses its device; implemented by `jostle.core.cuda.CudaStreams`."""

    def initialize(self) -> None:
        """Set up the device; called before anything is loaded."""

    @property
    def count(self) -> int:
        """Number of threads that compute concurrently."""

    def stream(self) -> AbstractContextManager[None]:
        """Return the context in which each thread computes."""

    def pin_memory(self, memory: mmap.mmap) -> Callable[[], None]:
        """Pin memory for direct access by the device; returns a function that unpins it."""


class ReplyTarget(Protocol):
    """The sender of a request."""

    def send_reply(self, request_id: int, reply: bytes) -> None:
        """Send the serialized reply to a request."""


@dataclass(frozen=True)
class ServerRequest:
    """A request of a worker."""

    target: ReplyTarget
    request_id: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    batch_key: bytes | None  # equal for requests that may share a batch; None for no batching
    count: int
    max_batch: int  # maximum number of items in a batch

    def compute_reply(self, model: object) -> bytes:
        """Call the function, and serialize its result or error."""
        return dump_reply(lambda: self.function(model, *self.arguments))


class ClientConnection:
    """Connection to a worker, with the memory that it shares."""

    def __init__(self, connection: Connection, streams: DeviceStreams, *, copy_inputs: bool) -> None:
        self._connection, self._streams, self._copy_inputs = connection, streams, copy_inputs
        self._memory: dict[int, tuple[mmap.mmap, Callable[[], None]]] = {}
        self._segment_of: dict[int, int] = {}  # by request
        self._lock = threading.Lock()
        self._pending, self._closed = 0, False

    def requests(self, stats: Segment) -> Iterator[ServerRequest]:
        """Yield the worker's requests until it disconnects."""
        try:
            with contextlib.suppress(EOFError, OSError):
                self._connection.send_bytes(ACCEPTED)
                send_handle(self._connection, stats.handle, os.getpid())
                while True:
                    yield from self._parse(self._connection.recv_bytes())
        finally:
            with self._lock:
                self._closed = True
                self._release_memory()

    def send_reply(self, request_id: int, reply: bytes) -> None:
        """Send a reply, unless the worker has disconnected."""
        with self._lock:
            self._pending -= 1
            message = REPLY.pack(request_id, 0) + reply
            if request_id in self._segment_of:
                memory, _ = self._memory[self._segment_of.pop(request_id)]
                if LARGE_REPLY <= len(reply) <= len(memory):
                    memory[: len(reply)] = reply  # over the inputs, which are not needed any more
                    message = REPLY.pack(request_id, len(reply))
            with contextlib.suppress(OSError):
                self._connection.send_bytes(message)
            if self._closed:
                self._release_memory()

    def _parse(self, message: bytes) -> Iterator[ServerRequest]:
        fields = pickle.loads(message)
        if len(fields) == 2:  # a new segment and its size
            segment, size = fields
            handle = recv_handle(self._connection)
            memory = mmap.mmap(handle, size)
            os.close(handle)
            if segment in self._memory:
                self._memory.pop(segment)[1]()
            self._memory[segment] = memory, self._streams.pin_memory(memory)
            return
        request_id, batch_key, count, max_batch, body, segment, parts = fields
        if segment is not None:
            whole = memoryview(self._memory[segment][0])
            parts = [whole[first : first + length] for first, length in parts]
        if self._copy_inputs:
            parts = [bytearray(part) for part in parts]
        function, arguments = pickle.loads(body, buffers=parts)
        with self._lock:
            self._pending += 1
            if segment is not None:
                self._segment_of[request_id] = segment
        yield ServerRequest(self, request_id, function, arguments, batch_key, count, max_batch)

    def _release_memory(self) -> None:
        """Unmap a disconnected worker's memory, once no computation uses it."""
        if self._pending == 0:
            for _, unpin in self._memory.values():
                unpin()
            self._memory.clear()
            self._connection.close()


class LocalCaller:
    """A caller in a thread of this process, such as one that serves a Ray actor."""

    def __init__(self) -> None:
        self._answered = threading.Event()
        self._reply = b""

    def send_reply(self, request_id: int, reply: bytes) -> None:
        """Send the serialized reply to a request."""
        self._reply = reply
        self._answered.set()

    def wait(self) -> Any:
        """Wait for the result; raises the error of the call."""
        self._answered.wait()
        return load_reply(self._reply)


class RequestQueue:
    """Queue of requests, with statistics that clients can read.

    Attributes:
        stats: shared memory with the statistics.
    """

    def __init__(self) -> None:
        self.stats = Segment(STATS.size)
        self._pending: deque[ServerRequest] = deque()
        self._items = self._working = self._busy_ns = self._since_ns = 0
        self._changed = threading.Condition()
        self._failure = b""  # reply to all requests after a thread has died
        self.closed = False

    def put(self, request: ServerRequest) -> None:
        """Append a request to the queue."""
        with self._changed:
            if not self._failure:
                self._pending.append(request)
                self._publish(request.count)
                self._changed.notify()
                return
        request.target.send_reply(request.request_id, self._failure)

    def fail(self, error: BaseException, batch: list[ServerRequest]) -> None:
        """Answer a batch and all later requests with an error, because the thread that had the batch has died."""
        reason = ResourceError(f"the model server failed ({type(error).__name__}: {error}); run again", fault="F70")
        with self._changed:
            self._failure = dump_reply(partial(raise_error, reason))
            unanswered, self._pending = [*batch, *self._pending], deque()
        for request in unanswered:
            request.target.send_reply(request.request_id, self._failure)

    def close(self) -> None:
        """Drop the pending requests, and end the threads that wait for the next batch."""
        with self._changed:
            self.closed = True
            self._pending.clear()
            self._changed.notify_all()

    def next_batch(self) -> list[ServerRequest]:
        """Wait for the oldest request; return it with others of its batch key, up to the maximum batch size.

        The list is empty once the queue is closed.
        """
        with self._changed:
            while not self._pending and not self.closed:
                self._changed.wait()
            if self.closed:
                return []
            batch = [self._pending.popleft()]
            first, left = batch[0], batch[0].max_batch - batch[0].count
            if first.batch_key is not None and left > 0:
                for other in list(self._pending):
                    if other.batch_key == first.batch_key and other.count <= left:
                        batch.append(other)
                        left -= other.count
                        self._pending.remove(other)
                        if not left:
                            break
            if not self._working:
                self._since_ns = time.monotonic_ns()
            self._working += 1
            return batch

    def mark_done(self, batch: list[ServerRequest]) -> None:
        """Update the statistics after a batch has been computed."""
        with self._changed:
            self._working -= 1
            if not self._working:
                self._busy_ns += time.monotonic_ns() - self._since_ns
            self._publish(-sum(request.count for request in batch))

    def _publish(self, change: int) -> None:
        self._items += change
        self.stats.write([memoryview(STATS.pack(self._items, self._busy_ns))])


class ModelServer:
    """Answers requests for a model in background threads.

    Args:
        model: what requests are computed with.
        address: socket for workers on this machine; empty for none.
        key: authentication key of the socket.
        foreign: whether code of a user's own computes. It need not know of threads, so there is one; and it may keep
            its inputs, or write into them after it has answered, so they are copied. Otherwise they are in memory that
            the worker uses again.
    """

    def __init__(self, model: Any, streams: DeviceStreams, address: str, key: bytes, *, foreign: bool = False) -> None:
        self._address, self._key = address, key
        self._requests = RequestQueue()
        self._listener = Listener(address, "AF_UNIX", BACKLOG, key) if address else None
        count = 1 if foreign else streams.count
        ready = threading.Barrier(count + 1)
        self._threads = [
            threading.Thread(target=_work, args=(model, streams, self._requests, ready), daemon=True)
            for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()
        ready.wait()
        if self._listener is not None:
            connect = partial(ClientConnection, streams=streams, copy_inputs=foreign)
            arguments = self._listener, connect, self._requests
            self._threads.append(threading.Thread(target=_accept_clients, args=arguments, daemon=True))
            self._threads[-1].start()

    def answer(self, call: Call) -> Any:
        """Answer a call from within this process."""
        caller = LocalCaller()
        self._requests.put(ServerRequest(caller, 0, *call))
        return caller.wait()

    def stop(self, timeout_s: float) -> None:
        """Stop the threads and the socket; a computation that goes on for longer than the timeout is left behind."""
        self._requests.close()
        if self._listener is not None:
            with contextlib.suppress(OSError, EOFError, AuthenticationError):
                Client(self._address, "AF_UNIX", self._key).close()  # wakes the thread, which closes the socket
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))


def start_server(load: Callable[[], Any], streams: DeviceStreams, address: str, key: bytes) -> Callable[[Call], Any]:
    """Load a model in a process of its own and serve it as long as the process lives.

    Returns:
        A function that answers a call from within this process.
    """
    streams.initialize()
    model = load()
    return ModelServer(model, streams, address, key, foreign=is_foreign(model)).answer


def is_foreign(predictor: Any) -> bool:
    """Return whether a model of a predictor is code of a user's own.

    Classes of jostle that wrap such code have an attribute `foreign`.
    """
    models = [getattr(predictor, name) for name in MODELS if hasattr(predictor, name)]
    return any(getattr(model, "foreign", type(model).__module__.split(".")[0] != "jostle") for model in models)


def _accept_clients(
    listener: Listener, connect: Callable[[Connection], ClientConnection], requests: RequestQueue
) -> None:
    with listener:  # clients notice when it is closed
        while not requests.closed:
            # A client may lack the key, or have disconnected.
            with contextlib.suppress(OSError, EOFError, AuthenticationError):
                client = connect(listener.accept())
                threading.Thread(target=_enqueue_requests, args=(client, requests), daemon=True).start()


def _enqueue_requests(client: ClientConnection, requests: RequestQueue) -> None:
    for request in client.requests(requests.stats):
        requests.put(request)


def _work(model: Any, streams: DeviceStreams, requests: RequestQueue, ready: threading.Barrier) -> None:
    # The guard is left only at the end: it changes settings of the whole process, which other threads rely on.
    with streams.stream(), getattr(model, "guard", nullcontext)():
        ready.wait()
        batch: list[ServerRequest] = []
        try:
            while batch := requests.next_batch():
                replies = _compute_replies(model, batch)
                requests.mark_done(batch)
                for request, reply in zip(batch, replies, strict=True):
                    request.target.send_reply(request.request_id, reply)
                del request
                batch = []  # otherwise freed segments would stay mapped until the next batch
        except BaseException as error:
            requests.fail(error, batch)
            raise


def _compute_replies(model: object, batch: list[ServerRequest]) -> list[bytes]:
    if len(batch) > 1:
        try:
            arguments = [request.arguments for request in batch]
            answers = batch[0].function.together(model, arguments)  # type: ignore[attr-defined]
            return [dump_reply(lambda answer=answer: answer) for answer in answers]  # type: ignore[misc]
        except BaseException:  # one request failed; computed separately, each gets its own result or error
            pass
    return [request.compute_reply(model) for request in batch]


def raise_error(error: Exception) -> None:
    """Raise an error, so that `dump_reply` serializes it."""
    raise error
