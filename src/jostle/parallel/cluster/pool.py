"""Worker actors that Ray runs on a cluster, set up like the process that starts them; those that die are replaced."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.core.environment import library_versions
from jostle.core.plugins import inherit_plugins, plugin_modules
from jostle.errors import BadValue, ResourceError
from jostle.parallel.serialization import TaskHandler, dump_reply, load_reply

HINT = "work on this machine alone, with one job"

# Environment variables that affect results or the location of files. Ray assigns devices, and secrets are not sent.
FORWARDED = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TORCH_HOME", "CUBLAS_WORKSPACE_CONFIG",
           "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")  # fmt: skip
FORWARDED_PREFIX = "JOSTLE_"


class WorkerActor:
    """Ray actor that executes one task after another."""

    def __init__(
        self, factory: bytes, folder: str, paths: Sequence[str], modules: Sequence[str], expected: Mapping[str, str]
    ) -> None:
        with contextlib.suppress(OSError):  # relative paths work if the folder is shared
            os.chdir(folder)
        sys.path.extend(path for path in paths if path not in sys.path)  # modules are found where the caller finds them
        inherit_plugins(modules)
        self._handler = TaskHandler(factory, HINT)
        self._expected_versions = expected

    def begin(self) -> bytes:
        """Load what the work needs; return a serialized None or the error."""
        return dump_reply(self._begin)

    def work(self, payload: bytes) -> bytes:
        """Process one serialized item and serialize the outcome."""
        return self._handler.handle(payload)

    def node_id(self) -> str:
        """Return the id of the Ray node that the actor runs on."""
        return node_id()

    def _begin(self) -> None:
        check_library_versions(self._expected_versions, library_versions())
        self._handler.begin()


def node_id() -> str:
    """Return the id of the Ray node that this process runs on."""
    import ray

    name: str = ray.get_runtime_context().get_node_id()
    return name


def check_library_versions(expected: Mapping[str, str], actual: Mapping[str, str]) -> None:
    """Check that this machine has the library versions of the caller."""
    mismatches = [
        f"{name} is {actual.get(name, 'missing')}, not {expected.get(name, 'missing')}"
        for name in sorted(expected.keys() | actual.keys())
        if actual.get(name) != expected.get(name)
    ]
    if mismatches:
        raise BadValue(
            f"{platform.node()}: library versions differ from the caller's: {'; '.join(mismatches)}; install the same "
            "on all machines"
        )


def worker_setup() -> tuple[str, list[str], list[str], dict[str, str]]:
    """Return the setup of this process for an actor: folder, module paths, plugin modules and library versions."""
    return os.getcwd(), [path or os.getcwd() for path in sys.path], plugin_modules(), library_versions()


def runtime_environment() -> dict[str, Any]:
    """Return the environment variables for actors on other machines, as a Ray runtime environment."""
    named = {name: os.environ[name] for name in FORWARDED if name in os.environ}
    ours = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED_PREFIX)}
    return {"env_vars": named | ours}


MAX_DEATHS = 3  # actors that may die while processing the same item; whole machines may disappear
TIMEOUT_S = 300.0  # for a free CPU; the cluster may have to start machines first
POLL_S = 5.0
MAX_REASON_CHARS = 200  # of Ray's reason for a death


@dataclass(frozen=True)
class Member:
    """A worker actor, and the number of its predecessors that died while starting."""

    actor: Any
    failed_before: int = 0


class ActorPool:
    """Worker actors of one `map_unordered` call; see `Pool`. Only started actors are handed items."""

    hint, max_deaths = HINT, MAX_DEATHS

    def __init__(self, ray: Any, factory: bytes, count: int) -> None:
        self._ray = ray
        self._idle: deque[Member] = deque()  # started actors without an item
        self._starting: dict[Any, Member] = {}  # waiting for a CPU or loading, by reference
        self._since = time.monotonic()  # when something was last done
        self._all: list[Member] = []
        self._factory = ray.put(factory)
        self._worker_setup = worker_setup()
        self._actor_class = ray.remote(WorkerActor).options(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
            runtime_env=runtime_environment(),
        )
        for _ in range(count):
            self._spawn()

    def _spawn(self, failed_before: int = 0) -> None:
        """Request one more actor from Ray."""
        member = Member(self._actor_class.remote(self._factory, *self._worker_setup), failed_before)
        self._all.append(member)
        self._starting[member.actor.begin.remote()] = member

    def _register_started(self, done: Any) -> None:
        """Add a started actor to the idle ones, or request another if it died while starting."""
        member = self._starting.pop(done)
        reply = self._fetch_reply(done)
        if isinstance(reply, bytes):
            load_reply(reply)
            self._idle.append(member)
            return
        self._all.remove(member)
        if member.failed_before + 1 < MAX_DEATHS:
            self._spawn(member.failed_before + 1)
        elif not self._all:
            raise ResourceError(f"no process can be started on the cluster: {reply}", fault="F63")

    def _fetch_reply(self, done: Any) -> bytes | str:
        """Return a serialized reply, or the reason that the actor or its machine died."""
        errors = self._ray.exceptions
        try:
            reply: bytes = self._ray.get(done)
        except errors.RayTaskError:
            raise  # a bug in jostle: errors of the work arrive as replies
        except errors.RayError as error:
            return death_reason(error)
        return reply

    def take_idle(self) -> Member | None:
        """Return a started actor without an item; None if there is none."""
        return self._idle.popleft() if self._idle else None

    def put_idle(self, member: Member) -> None:
        """Take an actor back."""
        self._idle.append(member)

    def send(self, member: Member, payload: bytes) -> Any:
        """Send a serialized item; return Ray's reference of the reply."""
        return member.actor.work.remote(payload)

    def wait(self, busy: Collection[Any], *, block: bool) -> Sequence[Any]:
        """Return the references of items that are done; actors that started meanwhile become idle.

        Raises:
            ResourceError: F71 if no CPU of the cluster was free for a long time.
        """
        done = self._ray.wait([*busy, *self._starting], timeout=POLL_S if block else 0)[0]
        if done or busy or not block:
            self._since = time.monotonic()
        elif time.monotonic() - self._since > TIMEOUT_S:
            raise ResourceError(
                f"no CPU of the cluster was free for {TIMEOUT_S:g} s; see `ray status`, then run again", fault="F71"
            )
        for reference in [reference for reference in done if reference in self._starting]:
            self._register_started(reference)
        return [reference for reference in done if reference in busy]

    def receive(self, reference: Any, member: Member) -> bytes | str:
        """Return a serialized reply, or the reason that the actor or its machine died."""
        return self._fetch_reply(reference)

    def replace(self, member: Member, reason: str | None, item: str, deaths: int) -> ResourceError:
        """Remove an actor that died, and request another."""
        self._all.remove(member)
        self._ray.kill(member.actor)  # if only its reply was lost
        self._spawn()
        message = f"{deaths} processes of the cluster died at {item}: {reason}; if memory ran out, use fewer jobs"
        return ResourceError(message, fault="F63")

    def shutdown(self) -> None:
        """Kill all actors of the pool."""
        for member in self._all:
            self._ray.kill(member.actor)
        self._all.clear()


def death_reason(error: Exception) -> str:
    """Return Ray's reason for a death in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("The actor is dead because", "The actor died because"))]
    return (causes or lines or [type(error).__name__])[0].partition(" Worker exit")[0][:MAX_REASON_CHARS]
