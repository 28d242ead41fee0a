"""Fixtures for a real Ray cluster of three simulated machines."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def no_global_randomness() -> Iterator[None]:
    """Restore the interpreter-wide generator, from which Ray draws for its own purposes."""
    before = random.getstate()
    yield
    random.setstate(before)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a head without CPUs and two machines with one CPU each; tests may add and remove machines."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jostle[ray]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        cluster.workers = [cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20) for _ in range(2)]
        cluster.wait_for_nodes()
        yield cluster
        cluster.shutdown()
