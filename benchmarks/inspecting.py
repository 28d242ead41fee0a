"""How many frames a second an inspector looks at: `python -m benchmarks.inspecting --device cuda`.

Drawn frames that are in memory already, so that decoding does not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import jostle
from benchmarks.clips import drawn_frames

SIZES = ((112, 112), (256, 340), (720, 1280))
AIM = 20_000  # frames a second on a GPU


def rate(height: int, width: int, device: str, frames: int, turns: int) -> float:
    """Median frames a second."""
    few = drawn_frames(30, height, width)
    video = np.broadcast_to(few, (-(-frames // 30), *few.shape)).reshape(-1, *few.shape[1:])[:frames]
    inspector = jostle.load_inspector(device=device)
    taken = []
    for _ in range(turns + 1):
        begun = time.perf_counter()
        jostle.inspect(video, inspector=inspector)
        taken.append(time.perf_counter() - begun)
    return frames / statistics.median(taken[1:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--frames", type=int, default=3000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    rates = {}
    for height, width in SIZES:
        # Large frames are fewer, so that they fit into memory.
        count = min(given.frames, 2**30 // (height * width * 3))
        rates[f"{width}x{height}"] = found = rate(height, width, given.device, count, given.turns)
        print(f"{width} x {height}: {found:8.0f} frames a second on {given.device} (aim {AIM} on a GPU)", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rates, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
