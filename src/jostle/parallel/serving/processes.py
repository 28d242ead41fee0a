"""Model servers: processes, which are restarted when they die, or threads of this process."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import shutil
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Listener
from typing import Any

from jostle.core.interruption import end_process
from jostle.errors import ResourceError
from jostle.parallel.serialization import dump_reply, dumps, load_reply
from jostle.parallel.serving.client import HINT, SocketClient, close_session
from jostle.parallel.serving.server import DeviceStreams, ModelServer, raise_error, start_server
from jostle.parallel.workers import OrphanSupervisor, Worker

GRACE_S = 1.0  # servers have nothing to clean up, and some libraries delay their exit
CONNECT_S = 60.0  # for the threads of this process to accept a worker; nothing restarts them
STOP_S = 5.0  # for a model of this process to end its last computation
RESTARTS = 3  # of a server; memory may be too scarce for the model at the moment


@contextlib.contextmanager
def serving(
    load: Callable[[], Any], streams: DeviceStreams, environments: Sequence[Mapping[str, str]]
) -> Iterator[SocketClient]:
    """Serve a model from processes of this machine until the context ends.

    Args:
        load: returns the model; called once in each server process.
        environments: environment variables of each server; one server is started for each.

    Raises:
        ResourceError: if the servers cannot be started.
        JostleError: what `load` raises.
    """
    with contextlib.ExitStack() as end:
        key = os.urandom(32)
        client = SocketClient(_make_addresses(len(environments), end), key)
        server_pool = _ServerPool(OrphanSupervisor())
        end.callback(server_pool.terminate)
        end.callback(close_session, client)
        keepers = [
            _ServerKeeper(
                dumps(partial(_start_server, load, streams, address, key), HINT), address, key, server_pool, environment
            )
            for address, environment in zip(client.addresses, environments, strict=True)
        ]
        for keeper in keepers:  # all load at the same time
            keeper.start()
        for keeper in keepers:
            keeper.wait_until_ready()
        for keeper in keepers:
            threading.Thread(target=keeper.run, daemon=True).start()
        yield client


@contextlib.contextmanager
def serving_here(model: Any, streams: DeviceStreams, *, foreign: bool) -> Iterator[SocketClient]:
    """Serve a model from threads of this process until the context ends; it need not be picklable.

    Args:
        foreign: see `ModelServer`.
    """
    with contextlib.ExitStack() as end:
        address, key = _make_addresses(1, end)[0], os.urandom(32)
        client = SocketClient((address,), key, timeout_s=CONNECT_S)
        server = ModelServer(model, streams, address, key, foreign=foreign)
        end.callback(server.stop, STOP_S)
        end.callback(close_session, client)
        yield client


def _make_addresses(count: int, end: contextlib.ExitStack) -> tuple[str, ...]:
    """Return addresses of sockets, whose files, if they have any, are removed at the end."""
    names = [f"jostle-{uuid.uuid4().hex}" for _ in range(count)]
    if sys.platform == "linux":  # has abstract sockets, without files
        return tuple(f"\0{name}" for name in names)
    folder = tempfile.mkdtemp(prefix="jostle-")
    end.callback(shutil.rmtree, folder, ignore_errors=True)
    return tuple(os.path.join(folder, name) for name in names)


def _start_server(
    load: Callable[[], Any], streams: DeviceStreams, address: str, key: bytes
) -> Callable[[object], None]:
    """Start the server in a dedicated process."""
    start_server(load, streams, address, key)
    atexit.register(end_process, 0)  # threads of libraries would delay the exit
    return lambda order: None


class _ServerPool:
    """The running server processes, all of which end with this process."""

    def __init__(self, lifeline: OrphanSupervisor) -> None:
        self._supervisor = lifeline
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        self.closed = False

    def spawn(self, environment: Mapping[str, str]) -> Worker | None:
        """Start a server process; returns None after `terminate`."""
        with self._lock:
            if self.closed:
                return None
            worker = Worker(environment)
            self._all.append(worker)
            self._update_supervisor()
            return worker

    def reap(self, worker: Worker) -> str:
        """Remove a server that died; return its exit status in words."""
        with self._lock:
            if self.closed:
                return "at the end"
            self._all.remove(worker)
            self._update_supervisor()
            return worker.exit_status()

    def terminate(self) -> None:
        """Terminate all servers and wait for them to exit."""
        with self._lock:
            self.closed = True
            workers, self._all = self._all, []
            self._update_supervisor()
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.join(GRACE_S)
            self._supervisor.stop()

    def _update_supervisor(self) -> None:
        self._supervisor.watch(worker.process_id for worker in self._all)


class _ServerKeeper:
    """Keeps a server process running at one address."""

    def __init__(
        self, factory: bytes, address: str, key: bytes, server_pool: _ServerPool, environment: Mapping[str, str]
    ) -> None:
        self._factory, self._address, self._key = factory, address, key
        self._pool, self._environment = server_pool, environment
        self._worker: Worker | None = None

    def start(self) -> None:
        """Start the server process and have it load the model."""
        self._worker = self._pool.spawn(self._environment)
        if self._worker is not None:
            self._worker.send(self._factory)
            self._worker.send(dumps("start", HINT))

    def wait_until_ready(self) -> None:
        """Wait until the model is loaded.

        Raises:
            ResourceError: if the server died while loading.
            JostleError: what loading raised.
        """
        assert self._worker is not None
        reply = self._worker.receive()
        if reply is None:
            status = self._pool.reap(self._worker)
            raise ResourceError(
                f"a model server died {status} while loading; if memory ran out, use a smaller model", fault="F70"
            )
        load_reply(reply)

    def run(self) -> None:
        """Restart the server whenever it dies; after too many deaths, answer every client with the error."""
        for left in range(RESTARTS, -1, -1):
            if self._worker is None:
                return
            self._worker.receive()  # blocks until the server ends
            status = self._pool.reap(self._worker)
            reason: Exception = ResourceError(
                f"the model server died {status}, as did {RESTARTS} before it; if memory ran out, use a smaller model",
                fault="F70",
            )
            try:
                if left:
                    self.start()
                if left and self._worker is not None:
                    self.wait_until_ready()
            except ResourceError as error:
                reason = error
                break
            except Exception as error:  # a failure to load is not the fault of a video
                reason = ResourceError(f"the model server cannot be restarted: {error}", fault="F70")
                break
        if not self._pool.closed:
            self._refuse(reason)

    def _refuse(self, reason: Exception) -> None:
        """Listen in place of the server and answer every client with the error."""
        failure = pickle.dumps(dump_reply(partial(raise_error, reason)))
        with contextlib.suppress(OSError), Listener(self._address, "AF_UNIX", authkey=self._key) as listener:
            while not self._pool.closed:
                with contextlib.suppress(EOFError, AuthenticationError), listener.accept() as connection:
                    connection.send_bytes(failure)
