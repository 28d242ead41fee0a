"""How many frames a second an inspector looks at: `python -m bench.inspecting --device cuda`.

Drawn frames that are in memory already, so that decoding does not count. What the cores do, which describe frames, and
what the network does are measured apart as well: the slower of the two is what bounds the whole.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

import jostle
from bench.clips import drawn_frames
from bench.timing import finish, make_parser
from jostle.mending.descriptor import ARRAY_TASK, describe_frame, describe_frames, stream_descriptors
from jostle.parallel.workers import available_cpus

SIZES = ((112, 112), (256, 340), (720, 1280))
AIM = 20_000  # frames a second on a GPU


def rates(height: int, width: int, device: str, frames: int, turns: int) -> dict[str, float]:
    """Median frames a second: of an inspection, and of its two parts by themselves, which a GPU does side by side."""
    few = drawn_frames(30, height, width)
    video = np.broadcast_to(few, (-(-frames // 30), *few.shape)).reshape(-1, *few.shape[1:])[:frames]
    inspector = jostle.load_inspector(device=device)
    inspector.rules = False  # they are plain Python, and are measured by `bench.watching`
    seen = describe_frames(video)
    on_gpu = inspector.device.type == "cuda"
    remembered = itertools.cycle(seen)
    known: dict[str, Callable[..., Any]] = {
        "stream_descriptors": lambda frames, jobs: iter(np.array_split(seen, max(len(seen) // ARRAY_TASK, 1))),
        "describe_frame": lambda frame: next(remembered),
    }

    def inspecting() -> None:
        jostle.inspect(video, inspector=inspector)

    def looking() -> None:
        deque(stream_descriptors(video, available_cpus()) if on_gpu else map(describe_frame, video), maxlen=0)

    def answering() -> None:
        with patch.multiple("jostle.mending.inspector", **known):
            inspecting()

    taken: dict[str, list[float]] = {"all": [], "looking": [], "network": []}
    for _ in range(turns + 1):
        for part, one in zip(taken, (inspecting, looking, answering), strict=True):
            begun = time.perf_counter()
            one()
            taken[part].append(time.perf_counter() - begun)
    return {part: frames / statistics.median(times[1:]) for part, times in taken.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--frames", type=int, default=12000)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args(arguments)
    made = {}
    for height, width in SIZES:
        # Large frames are fewer, so that they fit into memory.
        count = min(given.frames, 2**32 // (height * width * 3))
        made[f"{width}x{height}"] = found = rates(height, width, given.device, count, given.turns)
        said = f"{width} x {height}: {found['all']:8.0f} frames a second on {given.device} (aim {AIM} on a GPU); "
        print(said + f"looking alone {found['looking']:.0f}, network alone {found['network']:.0f}", flush=True)
    return finish(given, made)


if __name__ == "__main__":
    sys.exit(main())
