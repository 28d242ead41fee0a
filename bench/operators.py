"""What AFSD's pooling and E2E-TAD's attention cost, beside plain loops: `python -m bench.operators`.

At the sizes of a clip of THUMOS14 and of ActivityNet. Pooling: regions of all levels from the frames, and those of the
finest level from itself, beside a loop over regions. Attention, from values, places and weights on: steps that look
around themselves, and queries that look at steps, beside a loop over videos, heads and points. Both sides by turns,
after a check that values and gradients agree. On a CPU one thread is used and its time counted; on a GPU it is the
clock on the wall, and both sides wait for the device.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.timing import Clock, Work, by_turns, finish, make_parser
from bench.transcriptions.boundary_pooling import boundary_max_pool as plain_pool
from bench.transcriptions.deformable_attention import attended as plain_attention
from jostle.models.detection.blocks.afsd import frame_regions
from jostle.models.detection.blocks.boundaries import boundary_max_pool
from jostle.models.detection.blocks.e2e_tad import mixtures

REGIONS = {  # channels, steps, regions
    "pooling, THUMOS14, frames": (512, 256, 126),
    "pooling, THUMOS14, finest level": (1024, 64, 64),
    "pooling, ActivityNet, frames": (512, 768, 189),
    "pooling, ActivityNet, finest level": (1024, 96, 96),
}
QUERIES = {  # clips, steps, queries
    "attention, THUMOS14, steps": (1, 64, 64),
    "attention, THUMOS14, queries": (1, 64, 40),
    "attention, THUMOS14, steps of 4 clips": (4, 64, 64),
    "attention, ActivityNet, steps": (1, 96, 96),
}
HEADS, POINTS, WIDTH = 8, 4, 32  # E2E-TAD's attention, the width that of a head
TARGET = 3.0
Operator = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """Two ways of computing the same, what they are given, and what their gradient begins with."""

    ours: Operator
    plain: Operator
    given: tuple[Tensor, ...]
    gradient: Tensor

    @property
    def learned(self) -> list[Tensor]:
        """What has a gradient."""
        return [x for x in self.given if x.requires_grad]


def pooling(channels: int, steps: int, count: int, device: str) -> Case:
    """Features, and regions around the ends of segments of all lengths."""
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(1, channels, steps, generator=draw)
    centre = torch.rand(1, count, generator=draw) * steps
    half = torch.rand(1, count, generator=draw) ** 2 * steps / 2
    gradient = torch.rand(1, channels, count, generator=draw)
    regions = frame_regions(torch.stack([centre - half, centre + half], -1))
    return Case(boundary_max_pool, plain_pool, (x.to(device).requires_grad_(), regions.to(device)), gradient.to(device))


def attention(clips: int, steps: int, count: int, device: str) -> Case:
    """Values, places within the clip and a little beyond, and weights."""
    draw = torch.Generator().manual_seed(0)
    value = torch.rand(clips, HEADS, steps, WIDTH, generator=draw)
    place = torch.rand(clips, HEADS, count, POINTS, generator=draw) * (steps + 4) - 2
    weight = torch.rand(clips, HEADS, count, POINTS, generator=draw).softmax(-1)
    gradient = torch.rand(clips, HEADS, count, WIDTH, generator=draw)

    def ours(value: Tensor, place: Tensor, weight: Tensor) -> Tensor:
        return mixtures(place, weight, value.shape[2]) @ value

    given = tuple(x.to(device).requires_grad_() for x in (value, place, weight))
    return Case(ours, plain_attention, given, gradient.to(device))


def works(operator: Operator, case: Case) -> dict[str, Work]:
    """What is timed of one side."""

    def wait() -> None:
        if case.gradient.is_cuda:
            torch.cuda.synchronize()

    def forward() -> None:
        with torch.inference_mode():
            operator(*case.given)
        wait()

    def both() -> None:
        torch.autograd.grad(operator(*case.given), case.learned, case.gradient)
        wait()

    return {"forward": forward, "forward and backward": both}


def check(case: Case) -> None:
    """Refuse to time two sides that say different things."""
    found = []
    for operator in (case.ours, case.plain):
        values = operator(*case.given)
        found.append((values.detach(), *torch.autograd.grad(values, case.learned, case.gradient)))
    if not all(torch.allclose(mine, other, atol=1e-4) for mine, other in zip(*found, strict=True)):
        raise SystemExit("operators: values or gradients differ; nothing was timed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit code whether every target was met."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="measure only what has this in its name: 'attention'")
    parser.add_argument("--repeats", type=int, default=15, help="turns")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    clock: Clock = "wall" if options.device == "cuda" else "cpu"
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()}, one thread"
    about = {"device": name, "torch": torch.__version__, "clock": f"{clock}, medians of {options.repeats}"}
    for fact, value in about.items():
        print(f"{fact}: {value}")
    print(f"\n{'of':40}{'what':24}{'ours ms':>10}{'loop ms':>10}{'ratio':>8}  target")
    cases = [(of, pooling, size) for of, size in REGIONS.items()]
    cases += [(of, attention, size) for of, size in QUERIES.items()]
    rows = []
    for of, made, size in cases:
        if options.only not in of:
            continue
        case = made(*size, options.device)
        check(case)
        mine, others = works(case.ours, case), works(case.plain, case)
        for what in mine:
            pair = by_turns(mine[what], others[what], repeats=options.repeats, clock=clock)
            assert pair.peer is not None
            assert pair.ratio is not None
            rows.append({"of": of, "what": what, "ours_ms": pair.ours * 1e3, "loop_ms": pair.peer * 1e3})
            rows[-1]["ratio"] = pair.ratio
            aim = f"{TARGET:.1f}" + (" missed" if pair.ratio < TARGET else "")
            print(f"{of:40}{what:24}{pair.ours * 1e3:10.2f}{pair.peer * 1e3:10.2f}{pair.ratio:8.2f}  {aim}")
    return finish(
        options, {"facts": about, "rows": rows}, missed=any(float(str(row["ratio"])) < TARGET for row in rows)
    )


if __name__ == "__main__":
    sys.exit(main())
