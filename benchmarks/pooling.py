"""What AFSD's boundary max pooling costs, beside a loop over regions: `python -m benchmarks.pooling`.

At the sizes of a clip of THUMOS14 and of ActivityNet: regions of all levels pooled from the frames, and those of the
finest level from itself. Both sides by turns, after a check that values and gradients agree. On a CPU one thread is
used and its time counted; on a GPU it is the clock on the wall, and both sides wait for the device.
"""

from __future__ import annotations

from benchmarks.timing import ask_for_one_thread

ask_for_one_thread()  # before anything below loads a thread pool

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from benchmarks.timing import Clock, Work, by_turns  # noqa: E402
from benchmarks.transcriptions.boundary_pooling import boundary_max_pool as plain  # noqa: E402
from jostle.detectors.blocks.boundary_pooling import boundary_max_pool as ours  # noqa: E402
from jostle.detectors.blocks.refinement import frame_regions  # noqa: E402

SIZES = {  # channels, steps, regions
    "THUMOS14, frames": (512, 256, 126),
    "THUMOS14, finest level": (1024, 64, 64),
    "ActivityNet, frames": (512, 768, 189),
    "ActivityNet, finest level": (1024, 96, 96),
}
TARGET = 3.0
Pool = Callable[[Tensor, Tensor], Tensor]


def case(channels: int, steps: int, count: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Features, regions around the ends of segments of all lengths, and a gradient."""
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(1, channels, steps, generator=draw)
    centre = torch.rand(1, count, generator=draw) * steps
    half = torch.rand(1, count, generator=draw) ** 2 * steps / 2
    gradient = torch.rand(1, channels, count, generator=draw)
    regions = frame_regions(torch.stack([centre - half, centre + half], -1))
    return x.to(device).requires_grad_(), regions.to(device), gradient.to(device)


def works(pool: Pool, x: Tensor, regions: Tensor, gradient: Tensor) -> dict[str, Work]:
    """What is timed of one side."""

    def wait() -> None:
        if x.is_cuda:
            torch.cuda.synchronize()

    def forward() -> None:
        with torch.inference_mode():
            pool(x, regions)
        wait()

    def both() -> None:
        x.grad = None
        pool(x, regions).backward(gradient)
        wait()

    return {"forward": forward, "forward and backward": both}


def check(x: Tensor, regions: Tensor, gradient: Tensor) -> None:
    """Refuse to time two sides that say different things."""
    found = []
    for pool in (ours, plain):
        x.grad = None
        values = pool(x, regions)
        values.backward(gradient)
        assert x.grad is not None
        found.append((values.detach(), x.grad))
    if not torch.equal(found[0][0], found[1][0]) or not torch.allclose(found[0][1], found[1][1], atol=1e-4):
        raise SystemExit("pooling: values or gradients differ; nothing was timed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit code whether every target was met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pooling", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeats", type=int, default=15, help="turns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write rows and facts there")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    clock: Clock = "wall" if options.device == "cuda" else "cpu"
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()}, one thread"
    about = {"device": name, "torch": torch.__version__, "clock": f"{clock}, medians of {options.repeats}"}
    for fact, value in about.items():
        print(f"{fact}: {value}")
    print(f"\n{'regions of':28}{'what':24}{'ours ms':>10}{'loop ms':>10}{'ratio':>8}  target")
    rows = []
    for of, size in SIZES.items():
        x, regions, gradient = case(*size, options.device)
        check(x, regions, gradient)
        mine, others = works(ours, x, regions, gradient), works(plain, x, regions, gradient)
        for what in mine:
            pair = by_turns(mine[what], others[what], repeats=options.repeats, clock=clock)
            assert pair.peer is not None
            assert pair.ratio is not None
            rows.append({"of": of, "what": what, "ours_ms": pair.ours * 1e3, "loop_ms": pair.peer * 1e3})
            rows[-1]["ratio"] = pair.ratio
            aim = f"{TARGET:.1f}" + (" missed" if pair.ratio < TARGET else "")
            print(f"{of:28}{what:24}{pair.ours * 1e3:10.2f}{pair.peer * 1e3:10.2f}{pair.ratio:8.2f}  {aim}")
    if options.json:
        options.json.write_text(json.dumps({"facts": about, "rows": rows}, indent=1) + "\n")
    return 1 if options.strict and any(float(str(row["ratio"])) < TARGET for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
