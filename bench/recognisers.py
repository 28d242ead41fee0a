"""What a recogniser costs, beside the library's own 3D convolutions: `python -m bench.recognisers`.

A forward pass of each family on one clip, both sides by turns with the same weights, after a check that they give the
same answers. The plain side is the network as its original computes it. On a CPU one thread is used and its time
counted; on a GPU it is the clock on the wall, and both sides are the same there. So they are in training.

With `--compiled`, on a GPU, it is a network that went through `torch.compile` beside the same that did not, on as many
clips as `run` shows it at once, and how far its scores move.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from bench.timing import Clock, by_turns, finish, make_parser
from jostle.models.networks.layers import FrameConvolution
from jostle.models.recognition.recogniser import CROPS_AT_ONCE, recognisers

CLIPS = {  # frames and size
    "slow_r50": (8, 224), "c2d_r50": (8, 224), "i3d_r50": (8, 224), "r2plus1d_r50": (16, 112),
    "slowfast_r50": (32, 112), "x3d_s": (13, 160), "x3d_m": (16, 224), "mvit_base_16x4": (16, 224),
    "i3d_resnet18": (8, 112), "i3d_resnet50": (8, 112), "s3d_resnet50": (8, 112), "tam_resnet50": (8, 112),
    "i3d_inception": (8, 112), "s3d_inception": (8, 112),
}  # fmt: skip
AGREE = 1e-4  # largest difference of logits between the sides
AIM = 1.0  # none shall be slower


@dataclass(frozen=True)
class Row:
    """One measurement, in milliseconds."""

    model: str
    ours_ms: float
    plain_ms: float
    ratio: float


@dataclass(frozen=True)
class CompiledRow(Row):
    """One measurement of a compiled network: how far scores move, and seconds until the first ones are there."""

    moved: float
    first_s: float


@contextmanager
def plainly() -> Iterator[None]:
    """Networks compute as their originals do."""
    own = FrameConvolution.forward
    FrameConvolution.forward = nn.Conv3d.forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        FrameConvolution.forward = own  # type: ignore[method-assign]


def measured(name: str, device: str, repeats: int) -> Row:
    """A forward pass.

    Raises:
        AssertionError: if the sides give different answers.
    """
    frames, size = CLIPS[name]
    network = recognisers[name].load("random", {"frames": frames, "size": size}).network
    assert isinstance(network, nn.Module)
    network.to(device)
    clip = torch.randn(1, 3, frames, size, size, generator=torch.Generator().manual_seed(0)).to(device)
    clock: Clock = "cpu" if device == "cpu" else "wall"

    def ours() -> Tensor:
        with torch.inference_mode():
            return _waited(network(clip))

    def plain() -> Tensor:
        with plainly():
            return ours()

    apart = (ours() - plain()).abs().max()
    assert apart < AGREE, f"{name}: logits differ by {apart:.1e}"
    pair = by_turns(ours, plain, repeats=repeats, clock=clock)
    assert pair.peer is not None
    assert pair.ratio is not None
    return Row(name, 1e3 * pair.ours, 1e3 * pair.peer, pair.ratio)


def compiled(name: str, repeats: int) -> CompiledRow:
    """A forward pass on a GPU, compiled and not."""
    frames, size = CLIPS[name]
    network = recognisers[name].load("random", {"frames": frames, "size": size}).network
    assert isinstance(network, nn.Module)
    network.to("cuda")
    shape = (CROPS_AT_ONCE["cuda"], 3, frames, size, size)
    clips = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to("cuda")
    faster = torch.compile(network, dynamic=False)

    def as_it_is() -> Tensor:
        with torch.inference_mode():
            return _waited(network(clips))

    def ours() -> Tensor:
        with torch.inference_mode():
            return _waited(faster(clips))

    plain, begun = as_it_is(), time.monotonic()
    moved = (ours().softmax(1) - plain.softmax(1)).abs().max()
    first = time.monotonic() - begun
    pair = by_turns(ours, as_it_is, repeats=repeats, clock="wall")
    assert pair.peer is not None
    assert pair.ratio is not None
    return CompiledRow(name, 1e3 * pair.ours, 1e3 * pair.peer, pair.ratio, float(moved), first)


def _waited(made: Tensor) -> Tensor:
    if made.is_cuda:
        torch.cuda.synchronize()
    return made.detach()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit status whether any is slower."""
    parser = make_parser(__doc__, strict="exit with 1 if one is slower")
    parser.add_argument("--only", choices=CLIPS, action="append", help="a model; may be repeated")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--compiled", action="store_true", help="torch.compile beside none, on a GPU")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if asked.compiled and asked.device == "cpu":
        parser.error("--compiled is for a GPU: give --device cuda")
    print(f"{platform.machine()}, torch {torch.__version__}, {asked.device}, median of {asked.repeats}")
    print(f"{'model':16} {'ours, ms':>9} {'plain, ms':>10} {'times faster':>13}")
    rows: list[Row] = []
    for name in asked.only or CLIPS:
        row = compiled(name, asked.repeats) if asked.compiled else measured(name, asked.device, asked.repeats)
        rows.append(row)
        said = f"{row.model:16} {row.ours_ms:9.1f} {row.plain_ms:10.1f} {row.ratio:13.2f}"
        if isinstance(row, CompiledRow):
            said += f"   scores move by {row.moved:.1e}, first after {row.first_s:.0f} s"
        print(said, flush=True)
    return finish(asked, [asdict(row) for row in rows], missed=any(row.ratio < AIM for row in rows))


if __name__ == "__main__":
    sys.exit(main())
