"""What Ray runs on the machines of a cluster: processes that work off orders, and how they come to be like ours."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.plugins import arrive, travelling
from jostle.core.versions import builds
from jostle.errors import BadValue
from jostle.parallel.serialization import Desk, reply_of

INSTEAD = "work on this machine alone, with one job"

# What of our environment decides results, or where files are looked for. Devices are given out by Ray, and secrets
# stay here.
TRAVELS = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TORCH_HOME", "CUBLAS_WORKSPACE_CONFIG",
           "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")  # fmt: skip
TRAVELS_IF_IT_STARTS = "JOSTLE_"


class Slot:
    """One process of a cluster that does one thing after another."""

    def __init__(
        self, beginning: bytes, here: str, paths: Sequence[str], modules: Sequence[str], known: Mapping[str, str]
    ) -> None:
        with contextlib.suppress(OSError):  # relative paths mean what they mean there, if that folder is shared
            os.chdir(here)
        sys.path.extend(place for place in paths if place not in sys.path)  # it finds modules where we do
        arrive(modules)
        self._desk = Desk(beginning, INSTEAD)
        self._known = known

    def begin(self) -> bytes:
        """Load what the work needs; packs nothing, or what is wrong."""
        return reply_of(self._begin)

    def work(self, order: bytes) -> bytes:
        """Do the work of one packed item, and pack what came of it."""
        return self._desk.reply_to(order)

    def machine(self) -> str:
        """Which machine of the cluster it is on."""
        return machine()

    def _begin(self) -> None:
        refuse_other_builds(self._known, builds())
        self._desk.begin()


def machine() -> str:
    """Which machine of the cluster this process is on, as Ray calls it."""
    import ray

    name: str = ray.get_runtime_context().get_node_id()
    return name


def refuse_other_builds(known: Mapping[str, str], here: Mapping[str, str]) -> None:
    """See that this machine computes what the one that sends the orders would.

    Raises:
        BadValue: if a library is of another build: other bits would be mixed with those of the other machines.
    """
    other = [
        f"{name} is {here.get(name, 'missing')}, not {known.get(name, 'missing')}"
        for name in sorted(known.keys() | here.keys())
        if here.get(name) != known.get(name)
    ]
    if other:
        raise BadValue(
            f"{platform.node()}: not like the machine that the work came from: {'; '.join(other)}; install the same on "
            "all machines, or results are a mixture"
        )


def likeness() -> tuple[str, list[str], list[str], dict[str, str]]:
    """What a slot is told to be like this process: where it works, where modules are, whose parts, which builds."""
    return os.getcwd(), [place or os.getcwd() for place in sys.path], travelling(), builds()


def environment() -> dict[str, Any]:
    """What of our environment processes on other machines get, as Ray wants to be told."""
    named = {name: os.environ[name] for name in TRAVELS if name in os.environ}
    ours = {name: value for name, value in os.environ.items() if name.startswith(TRAVELS_IF_IT_STARTS)}
    return {"env_vars": named | ours}
