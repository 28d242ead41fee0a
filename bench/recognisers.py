"""Cost of recognisers, compared with PyTorch's own 3D convolutions: `python -m bench.recognisers`.

A forward pass of each family on one clip. Both sides have the same weights and are timed alternately, after a check
that their outputs agree; the plain side computes convolutions as the original does. CPU time of one thread, or wall
time on a GPU. Both sides are the same on a GPU and in training.

With `--compiled`, on a GPU, networks are compared with and without `torch.compile`, on the number of clips in a batch
of `run`, and changes of scores are printed.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from bench.timing import (
    add_device_option,
    clock_for,
    compare,
    finish,
    limit_threads,
    make_blocking,
    make_parser,
    time_call,
)
from jostle.models.networks.layers import FrameConvolution
from jostle.models.recognition.recogniser import CROPS_AT_ONCE, recognisers

CLIPS = {  # frames and size
    "slow_r50": (8, 224), "c2d_r50": (8, 224), "i3d_r50": (8, 224), "r2plus1d_r50": (16, 112),
    "slowfast_r50": (32, 112), "x3d_s": (13, 160), "x3d_m": (16, 224), "mvit_base_16x4": (16, 224),
    "i3d_resnet18": (8, 112), "i3d_resnet50": (8, 112), "s3d_resnet50": (8, 112), "tam_resnet50": (8, 112),
    "i3d_inception": (8, 112), "s3d_inception": (8, 112),
}  # fmt: skip
TOLERANCE = 1e-4  # largest difference of logits between the sides
TARGET = 1.0  # not slower


@dataclass(frozen=True)
class RecogniserTiming:
    """Milliseconds of a forward pass of a recogniser, ours and computed plainly."""

    model: str
    ours_ms: float
    plain_ms: float
    ratio: float


@dataclass(frozen=True)
class CompiledTiming(RecogniserTiming):
    """Timing of a compiled network, with the largest change of a score and the seconds of the first call."""

    moved: float
    first_s: float


@contextmanager
def plain_convolutions() -> Iterator[None]:
    """Replace convolutions frame by frame by PyTorch's 3D convolutions."""
    own = FrameConvolution.forward
    FrameConvolution.forward = nn.Conv3d.forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        FrameConvolution.forward = own  # type: ignore[method-assign]


def build_network(name: str, device: str, clips: int) -> tuple[nn.Module, Tensor]:
    """Return a network with random weights, and a random batch of clips for it."""
    frames, size = CLIPS[name]
    network = recognisers[name].load("random", {"frames": frames, "size": size}).network
    assert isinstance(network, nn.Module)
    shape = (clips, 3, frames, size, size)
    return network.to(device), torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(device)


def make_forward(network: Callable[[Tensor], Tensor], clips: Tensor) -> Callable[[], Tensor]:
    """Return the forward pass of a network, which waits for the device."""

    def forward() -> Tensor:
        with torch.inference_mode():
            return network(clips).detach()

    return make_blocking(forward, clips.device.type)


def measure(name: str, device: str, repeats: int) -> RecogniserTiming:
    """Time a forward pass on one clip.

    Raises:
        AssertionError: if outputs of the two sides differ.
    """
    ours = make_forward(*build_network(name, device, 1))

    def plain() -> Tensor:
        with plain_convolutions():
            return ours()

    difference = (ours() - plain()).abs().max()
    assert difference < TOLERANCE, f"{name}: logits differ by {difference:.1e}"
    times = compare(ours, plain, repeats=repeats, clock=clock_for(device))
    return RecogniserTiming(name, 1e3 * times.ours, 1e3 * times.peer, times.ratio)


def measure_compiled(name: str, repeats: int) -> CompiledTiming:
    """Time a forward pass on a GPU, compiled and not."""
    network, clips = build_network(name, "cuda", CROPS_AT_ONCE["cuda"])
    eager, compiled = make_forward(network, clips), make_forward(torch.compile(network, dynamic=False), clips)
    scores = eager().softmax(1)
    first_s = time_call(compiled, "wall")
    change = float((compiled().softmax(1) - scores).abs().max())
    times = compare(compiled, eager, repeats=repeats, clock="wall")
    return CompiledTiming(name, 1e3 * times.ours, 1e3 * times.peer, times.ratio, change, first_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the timings of each recogniser, and return the exit code."""
    parser = make_parser(__doc__, strict="exit with 1 if a recogniser is slower than the plain one")
    parser.add_argument("--only", choices=CLIPS, action="append", help="a model; may be repeated")
    add_device_option(parser)
    parser.add_argument("--compiled", action="store_true", help="compare with and without torch.compile, on a GPU")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    limit_threads()
    if options.compiled and options.device == "cpu":
        parser.error("--compiled needs a GPU: add --device cuda")
    print(f"{platform.machine()}, torch {torch.__version__}, {options.device}, median of {options.repeats}")
    print(f"{'model':16} {'ours, ms':>9} {'plain, ms':>10} {'times faster':>13}")
    rows: list[RecogniserTiming] = []
    for name in options.only or CLIPS:
        if options.compiled:
            row: RecogniserTiming = measure_compiled(name, options.repeats)
        else:
            row = measure(name, options.device, options.repeats)
        rows.append(row)
        line = f"{row.model:16} {row.ours_ms:9.1f} {row.plain_ms:10.1f} {row.ratio:13.2f}"
        if isinstance(row, CompiledTiming):
            line += f"   scores change by {row.moved:.1e}, first call {row.first_s:.0f} s"
        print(line, flush=True)
    return finish(options, [asdict(row) for row in rows], missed=any(row.ratio < TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
