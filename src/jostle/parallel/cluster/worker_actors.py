"""Worker actors that Ray runs on the machines of a cluster, set up like the process that starts them."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.plugins import inherit_plugins, plugin_modules
from jostle.core.versions import library_versions
from jostle.errors import BadValue
from jostle.parallel.serialization import TaskHandler, dump_reply

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
    """Check that this machine has the library versions of the caller.

    Raises:
        BadValue: if a version differs: results of different machines would not be comparable.
    """
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
