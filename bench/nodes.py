"""How evenly Ray shares work out among machines: `python -m bench.nodes`.

The machines are simulated: as far as Ray can tell they are eight, each with one CPU, and all are this one. So the work
does not compute; it sleeps for as long as a video takes, and what is measured is the sharing out: handing over, asking
for the next, collecting. It counts from when all are at work until the first has nothing left to do.
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

AIM = 0.9  # of what machines that wait for nothing would do
STORE_BYTES = 80 * 2**20


@dataclass(frozen=True)
class Sleeping:
    """Work that takes its time and no CPU."""

    seconds: float

    def __call__(self) -> Callable[[int], tuple[float, float]]:
        def slept(number: int) -> tuple[float, float]:
            begun = time.time()  # a clock that all processes share
            time.sleep(self.seconds)
            return begun, time.time()

        return slept


def shared_out(nodes: int, each: int, seconds: float) -> tuple[float, float]:
    """Share of the machines' time that work was done in, and that time in seconds."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.pop("RAY_ADDRESS", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster as Simulated

        small = {"object_store_memory": STORE_BYTES}
        simulated = Simulated(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
        try:
            for _ in range(nodes):
                simulated.add_node(num_cpus=1, **small)
            simulated.wait_for_nodes()
            with Cluster(simulated.address) as cluster:
                items = list(range(nodes * (each + 1)))  # processes begin one after another: one more for that
                times = [found for _, found in cluster.map_unordered(Sleeping(seconds), items, nodes)]
        finally:
            simulated.shutdown()
    ready = sorted(begin for begin, _ in times)[nodes - 1]
    over = sorted(end for _, end in times)[-nodes]
    worked = sum(max(0.0, min(end, over) - max(begin, ready)) for begin, end in times)
    return worked / (nodes * (over - ready)), over - ready


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 1 under --strict when the target is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--each", type=int, default=12, help="items for each machine")
    parser.add_argument("--seconds", type=float, default=2.0, help="that an item takes")
    given = parser.parse_args(arguments)
    share, wall = shared_out(given.nodes, given.each, given.seconds)
    print(f"{given.nodes} simulated machines, {given.each} items of {given.seconds:g} s each: {wall:.1f} s,")
    print(f"in which each was at work for {share:.3f} of the time (aim {AIM})")
    return finish(given, {"nodes": given.nodes, "share": share, "wall_s": wall}, missed=share < AIM)


if __name__ == "__main__":
    from bench import nodes  # so that other processes find the same module

    sys.exit(nodes.main())
