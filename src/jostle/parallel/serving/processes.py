"""Starts the processes that hold a model, and starts one again that dies."""

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

from jostle.errors import ResourceError
from jostle.parallel.orphans import Lifeline
from jostle.parallel.serialization import opened, packed, reply_of
from jostle.parallel.serving.client import INSTEAD, Served, leave
from jostle.parallel.serving.server import Lanes, answering
from jostle.parallel.workers import Worker

GRACE_S = 1.0  # nothing is left to be tidied there, and libraries have been seen to hold a process up
RESTARTS = 3  # of one that dies, as a model may be too large for what memory is left at the moment


@contextlib.contextmanager
def serving(load: Callable[[], Any], lanes: Lanes, environments: Sequence[Mapping[str, str]]) -> Iterator[Served]:
    """Have something loaded in processes of this machine, for workers to ask, until the context ends.

    Args:
        load: gives what is asked, such as a model on a GPU; called in each of the processes.
        lanes: how they use their device.
        environments: of the processes, of which there are as many.

    Raises:
        ResourceError: if they cannot be started.
        JostleError: what `load` raises.
    """
    with contextlib.ExitStack() as end:
        folder = None if sys.platform == "linux" else tempfile.mkdtemp(prefix="jostle-")
        if folder is not None:  # elsewhere a socket has to lie somewhere
            end.callback(shutil.rmtree, folder, ignore_errors=True)
        pool, key = uuid.uuid4().hex, os.urandom(32)
        names = [f"jostle-{pool}-{number}" for number in range(len(environments))]
        served = Served(
            tuple(f"\0{name}" if folder is None else os.path.join(folder, name[-40:]) for name in names), key
        )
        held = _Held(Lifeline())
        end.callback(held.dismiss)
        end.callback(leave, served)
        keepers = [
            _Keeper(packed(partial(_answering, load, lanes, address, key), INSTEAD), address, key, held, environment)
            for address, environment in zip(served.addresses, environments, strict=True)
        ]
        for keeper in keepers:  # they load side by side
            keeper.begin()
        for keeper in keepers:
            keeper.await_begun()
        for keeper in keepers:
            threading.Thread(target=keeper.keep, daemon=True).start()
        yield served


def _answering(load: Callable[[], Any], lanes: Lanes, address: str, key: bytes) -> Callable[[object], None]:
    """Called in a process that does nothing else; questions come by its connections alone."""
    answering(load, lanes, address, key)
    atexit.register(os._exit, 0)  # nothing is left to be tidied, and threads in a library would not let it end
    return lambda order: None


class _Held:
    """The processes that live, all of which end with this one."""

    def __init__(self, lifeline: Lifeline) -> None:
        self._lifeline = lifeline
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        self.over = False

    def hire(self, environment: Mapping[str, str]) -> Worker | None:
        """One more; nobody is taken on when it is over."""
        with self._lock:
            if self.over:
                return None
            worker = Worker(environment)
            self._all.append(worker)
            self._hold()
            return worker

    def bury(self, worker: Worker) -> str:
        """Take leave of one that died; how it came to its end."""
        with self._lock:
            if self.over:
                return "at the end"
            self._all.remove(worker)
            self._hold()
            return worker.end()

    def dismiss(self) -> None:
        """Let all go, and wait until they are gone."""
        with self._lock:
            self.over = True
            leaving, self._all = self._all, []
            self._hold()
            for worker in leaving:
                worker.dismiss()
            for worker in leaving:
                worker.see_off(GRACE_S)
            self._lifeline.release()

    def _hold(self) -> None:
        self._lifeline.hold(worker.process_id for worker in self._all)


class _Keeper:
    """Keeps one place filled with a process that answers there."""

    def __init__(self, beginning: bytes, address: str, key: bytes, held: _Held, environment: Mapping[str, str]) -> None:
        self._beginning, self._address, self._key = beginning, address, key
        self._held, self._environment = held, environment
        self._worker: Worker | None = None

    def begin(self) -> None:
        """Start a process."""
        self._worker = self._held.hire(self._environment)
        if self._worker is not None:
            self._worker.give(self._beginning)
            self._worker.give(packed("begin", INSTEAD))

    def await_begun(self) -> None:
        """Wait until it has loaded what it is asked about.

        Raises:
            ResourceError: if it died of that.
            JostleError: what loading raised.
        """
        assert self._worker is not None
        reply = self._worker.take()
        if reply is None:
            how = self._held.bury(self._worker)
            raise ResourceError(
                f"a process that loads the model died {how}; if memory ran out, use a smaller model", fault="F70"
            )
        opened(reply)

    def keep(self) -> None:
        """Start another whenever it dies, a few times; after that whoever comes is told."""
        for left in range(RESTARTS, -1, -1):
            if self._worker is None:
                return
            self._worker.take()  # it says nothing more, and ends
            how = self._held.bury(self._worker)
            why: Exception = ResourceError(
                f"the process with the model died {how}, as did {RESTARTS} before it; if memory ran out, use a smaller "
                "model",
                fault="F70",
            )
            try:
                if left:
                    self.begin()
                if left and self._worker is not None:
                    self.await_begun()
            except ResourceError as error:
                why = error
                break
            except Exception as error:  # whatever loading may end in, it is no fault of a video
                why = ResourceError(f"the process with the model cannot be started again: {error}", fault="F70")
                break
        if not self._held.over:
            self._refuse(why)

    def _refuse(self, why: Exception) -> None:
        """Stand where the process listened."""
        failure = pickle.dumps(reply_of(partial(_raise, why)))
        with contextlib.suppress(OSError), Listener(self._address, "AF_UNIX", authkey=self._key) as listener:
            while not self._held.over:
                with contextlib.suppress(EOFError, AuthenticationError), listener.accept() as line:
                    line.send_bytes(failure)


def _raise(error: Exception) -> None:
    raise error
