"""Throughput of an inspector in frames a second: `python -m bench.inspecting --device cuda`.

Frames are generated and in memory, so that decoding does not count. The descriptors, which are computed by the cores,
and the network are also measured separately; the slower of the two limits the whole.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

import jostle
from bench.clips import drawn_frames
from bench.timing import Work, finish, make_parser, time_call
from jostle.mending.descriptor import ARRAY_TASK, describe_frame, describe_frames, stream_descriptors
from jostle.parallel.workers import available_cpus

SIZES = ((112, 112), (256, 340), (720, 1280))
TARGET = 20_000  # frames a second on a GPU


def measure(height: int, width: int, device: str, frames: int, turns: int) -> dict[str, float]:
    """Return the median frames a second of an inspection and of its two parts, which run concurrently on a GPU."""
    few = drawn_frames(30, height, width)
    video = np.broadcast_to(few, (-(-frames // 30), *few.shape)).reshape(-1, *few.shape[1:])[:frames]
    inspector = jostle.load_inspector(device=device)
    inspector.rules = False  # they are plain Python, and are measured by `bench.watching`
    descriptors = describe_frames(video)
    on_gpu = inspector.device.type == "cuda"
    repeated = itertools.cycle(descriptors)
    tasks = max(len(descriptors) // ARRAY_TASK, 1)
    precomputed: dict[str, Callable[..., Any]] = {
        "stream_descriptors": lambda frames, jobs: iter(np.array_split(descriptors, tasks)),
        "describe_frame": lambda frame: next(repeated),
    }

    def inspect() -> None:
        jostle.inspect(video, inspector=inspector)

    def describe() -> None:
        deque(stream_descriptors(video, available_cpus()) if on_gpu else map(describe_frame, video), maxlen=0)

    def run_network() -> None:
        with patch.multiple("jostle.mending.inspection", **precomputed):
            inspect()

    parts: dict[str, Work] = {"all": inspect, "looking": describe, "network": run_network}
    rounds = [{name: time_call(work, "wall") for name, work in parts.items()} for _ in range(turns + 1)]
    return {name: frames / statistics.median(times[name] for times in rounds[1:]) for name in parts}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print frames a second for each size, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--frames", type=int, default=12000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args(arguments)
    rates = {}
    for height, width in SIZES:
        # Large frames are fewer, so that they fit into memory.
        count = min(options.frames, 2**32 // (height * width * 3))
        rates[f"{width}x{height}"] = rate = measure(height, width, options.device, count, options.turns)
        print(
            f"{width} x {height}: {rate['all']:8.0f} frames a second on {options.device} (target {TARGET} on a GPU); "
            f"descriptors alone {rate['looking']:.0f}, network alone {rate['network']:.0f}",
            flush=True,
        )
    return finish(options, rates)


if __name__ == "__main__":
    sys.exit(main())
