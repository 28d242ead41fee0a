"""Cost of AFSD's pooling and E2E-TAD's attention, compared with plain loops: `python -m bench.operators`.

The sizes are those of a clip of THUMOS14 and of ActivityNet. Pooling takes regions of all levels from the frames, and
those of the finest level from that level; the plain side loops over regions. Attention, from values, positions and
weights on, is that of steps to steps and of queries to steps; the plain side loops over videos, heads and points. Both
sides are timed alternately, after a check that values and gradients agree: CPU time of one thread, or wall time on a
GPU.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bench.timing import (
    Work,
    add_device_option,
    clock_for,
    compare,
    finish,
    limit_threads,
    make_blocking,
    make_parser,
    print_facts,
)
from bench.transcriptions.boundary_pooling import boundary_max_pool as plain_pool
from bench.transcriptions.deformable_attention import attend as plain_attention
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
HEADS, POINTS, WIDTH = 8, 4, 32  # of E2E-TAD's attention; WIDTH is that of a head
TARGET = 3.0
Operator = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """Two implementations of an operator, their inputs, and the gradient of their output."""

    ours: Operator
    plain: Operator
    inputs: tuple[Tensor, ...]
    gradient: Tensor

    @property
    def differentiable(self) -> list[Tensor]:
        """Inputs that require a gradient."""
        return [x for x in self.inputs if x.requires_grad]


def make_pooling(channels: int, steps: int, count: int, device: str) -> Case:
    """Return pooling of random features in regions around the ends of segments of all lengths."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, channels, steps, generator=generator)
    centre = torch.rand(1, count, generator=generator) * steps
    half = torch.rand(1, count, generator=generator) ** 2 * steps / 2
    gradient = torch.rand(1, channels, count, generator=generator)
    regions = frame_regions(torch.stack([centre - half, centre + half], -1))
    return Case(boundary_max_pool, plain_pool, (x.to(device).requires_grad_(), regions.to(device)), gradient.to(device))


def make_attention(clips: int, steps: int, count: int, device: str) -> Case:
    """Return attention to random values, at positions within the clip and slightly outside."""
    generator = torch.Generator().manual_seed(0)
    value = torch.rand(clips, HEADS, steps, WIDTH, generator=generator)
    position = torch.rand(clips, HEADS, count, POINTS, generator=generator) * (steps + 4) - 2
    weight = torch.rand(clips, HEADS, count, POINTS, generator=generator).softmax(-1)
    gradient = torch.rand(clips, HEADS, count, WIDTH, generator=generator)

    def ours(value: Tensor, position: Tensor, weight: Tensor) -> Tensor:
        return mixtures(position, weight, value.shape[2]) @ value

    inputs = tuple(x.to(device).requires_grad_() for x in (value, position, weight))
    return Case(ours, plain_attention, inputs, gradient.to(device))


def make_operations(operator: Operator, case: Case, device: str) -> dict[str, Work]:
    """Return the operations to time of one implementation, by name."""

    def forward() -> None:
        with torch.inference_mode():
            operator(*case.inputs)

    def forward_and_backward() -> None:
        torch.autograd.grad(operator(*case.inputs), case.differentiable, case.gradient)

    operations = {"forward": forward, "forward and backward": forward_and_backward}
    return {name: make_blocking(operation, device) for name, operation in operations.items()}


def check(case: Case) -> None:
    """Exit unless values and gradients of both implementations agree."""
    results = []
    for operator in (case.ours, case.plain):
        values = operator(*case.inputs)
        results.append((values.detach(), *torch.autograd.grad(values, case.differentiable, case.gradient)))
    if not all(torch.allclose(mine, other, atol=1e-4) for mine, other in zip(*results, strict=True)):
        raise SystemExit("operators: values or gradients differ; nothing was timed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the timings of each operator, and return the exit code."""
    parser = make_parser(__doc__)
    add_device_option(parser)
    parser.add_argument("--only", default="", help="measure only operators with this in their name: 'attention'")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args(arguments)
    limit_threads()
    device, clock = options.device, clock_for(options.device)
    name = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, one thread"
    facts = {"device": name, "torch": torch.__version__, "clock": f"{clock}, medians of {options.repeats}"}
    print_facts(facts)
    print(f"\n{'operator':40}{'operation':24}{'ours ms':>10}{'loop ms':>10}{'ratio':>8}  target")
    cases: list[tuple[str, Callable[..., Case], tuple[int, int, int]]]
    cases = [(of, make_pooling, size) for of, size in REGIONS.items()]
    cases += [(of, make_attention, size) for of, size in QUERIES.items()]
    rows: list[dict[str, Any]] = []
    for of, make_case, size in cases:
        if options.only not in of:
            continue
        case = make_case(*size, device)
        check(case)
        ours, plain = make_operations(case.ours, case, device), make_operations(case.plain, case, device)
        for what in ours:
            times = compare(ours[what], plain[what], repeats=options.repeats, clock=clock)
            milliseconds = {"ours_ms": times.ours * 1e3, "loop_ms": times.peer * 1e3}
            rows.append({"of": of, "what": what, **milliseconds, "ratio": times.ratio})
            target = f"{TARGET:.1f}" + (" missed" if times.ratio < TARGET else "")
            print(f"{of:40}{what:24}{times.ours * 1e3:10.2f}{times.peer * 1e3:10.2f}{times.ratio:8.2f}  {target}")
    return finish(options, {"facts": facts, "rows": rows}, missed=any(row["ratio"] < TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
