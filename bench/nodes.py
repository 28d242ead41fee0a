"""Utilisation of the machines of a Ray cluster: `python -m bench.nodes`.

The cluster is simulated on this machine: eight nodes with one CPU each. Tasks do not compute but sleep for as long as a
video takes, so that scheduling is measured: sending tasks, requesting the next and collecting results. Time counts
from when all nodes are busy until the first has no task left.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.timing import finish, make_parser
from jostle.parallel.cluster.connection import Cluster

TARGET = 0.9  # utilisation, relative to nodes that never wait
STORE_BYTES = 80 * 2**20


@dataclass(frozen=True)
class SleepFactory:
    """Worker start function for tasks that sleep."""

    seconds: float

    def __call__(self) -> Callable[[int], tuple[float, float]]:
        def sleep(number: int) -> tuple[float, float]:
            start = time.time()  # a clock that all processes share
            time.sleep(self.seconds)
            return start, time.time()

        return sleep


def measure(nodes: int, each: int, seconds: float) -> tuple[float, float]:
    """Return the utilisation of the nodes, and the seconds it was measured over."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.pop("RAY_ADDRESS", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster as SimulatedCluster

        small = {"object_store_memory": STORE_BYTES}
        head = {"num_cpus": 0, "include_dashboard": False, **small}
        simulated = SimulatedCluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(nodes):
                simulated.add_node(num_cpus=1, **small)
            simulated.wait_for_nodes()
            with Cluster(simulated.address) as cluster:
                items = list(range(nodes * (each + 1)))  # one more for each node, as they start one after another
                times = [span for _, span in cluster.map_unordered(SleepFactory(seconds), items, nodes)]
        finally:
            simulated.shutdown()
    start = sorted(begin for begin, _ in times)[nodes - 1]
    end = sorted(end for _, end in times)[-nodes]
    busy = sum(max(0.0, min(until, end) - max(begin, start)) for begin, until in times)
    return busy / (nodes * (end - start)), end - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the utilisation, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--each", type=int, default=12, help="tasks for each node")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of a task")
    options = parser.parse_args(arguments)
    share, wall = measure(options.nodes, options.each, options.seconds)
    print(f"{options.nodes} simulated nodes, {options.each} tasks of {options.seconds:g} s each: {wall:.1f} s,")
    print(f"in which each was busy for {share:.3f} of the time (target {TARGET})")
    return finish(options, {"nodes": options.nodes, "share": share, "wall_s": wall}, missed=share < TARGET)


if __name__ == "__main__":
    from bench import nodes  # so that other processes can import the same module

    sys.exit(nodes.main())
