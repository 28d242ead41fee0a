"""What detectors of frames cost, and VSGN, beside the same networks computed plainly.

`python -m bench.frame_detectors`: forward pass of a clip, or of windows of features, and a training step, with
random weights. Computed plainly is with the library's 3D convolutions, with loops over regions (AFSD), heads, points
and parts of segments (E2E-TAD), which is what the originals' compiled kernels do, and with every edge of a graph and
every end of a box by itself (VSGN). Both sides by turns, after a check that they give the same answers. On a CPU one
thread is used and its time counted; on a GPU it is the clock on the wall, and both sides wait for the device.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from bench.timing import Clock, Work, by_turns, finish, make_parser
from bench.transcriptions.boundary_pooling import boundary_max_pool
from bench.transcriptions.deformable_attention import attended
from bench.transcriptions.roi_align import roi_align
from bench.transcriptions.vsgn import edge_by_edge
from jostle.models.detection import afsd, e2e_tad
from jostle.models.detection.blocks import afsd as coarse_to_fine
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.e2e_tad import DeformableAttention
from jostle.models.detection.detector import Detector, load_detector
from jostle.models.networks.layers import FrameConvolution

NAMES = {
    "puppets": ("afsd_puppets", "basictad_puppets", "e2e_tad_puppets", "vsgn_puppets"),
    "thumos": (
        "afsd_thumos",
        "basictad_thumos_ab6",
        "e2e_tad_thumos_slowfast",
        "e2e_tad_thumos_tsm18",
        "vsgn_thumos_tsn",
    ),
}
SHARES = (1.0, 0.8, 0.5, 0.3)  # of a window of features that four videos fill; the last is stitched
AGREE = 2e-3  # largest difference of raw outputs between the sides, of the largest output
AIM = 0.95  # none shall be slower, but for the noise of a machine


@dataclass(frozen=True)
class Row:
    """One measurement, in milliseconds."""

    detector: str
    what: str
    ours_ms: float
    plain_ms: float
    ratio: float


def pool_levels(x: Tensor, levels: Sequence[Tensor], *, reproduce_bugs: bool) -> list[Tensor]:
    """AFSD's regions of every level, one after another."""
    return [boundary_max_pool(x, regions) for regions in levels]


def pool(x: Tensor, regions: Tensor, *, reproduce_bugs: bool) -> Tensor:
    """AFSD's regions of one level."""
    return boundary_max_pool(x, regions)


def attention(self: DeformableAttention, query: Tensor, reference: Tensor, source: Tensor, padded: None) -> Tensor:
    """E2E-TAD's attention without padding."""
    value, weight = (
        torch.unflatten(x, -1, (self.heads, -1)) for x in (self.value_proj(source), self.attention_weights(query))
    )
    place = self.places(query, reference, source.shape[1])
    seen = attended(value.transpose(1, 2), place, weight.softmax(-1).transpose(1, 2))
    made: Tensor = self.output_proj(seen.transpose(1, 2).flatten(2))
    return made


@contextmanager
def plainly() -> Iterator[None]:
    """Networks compute as their definitions say."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(FrameConvolution, "forward", nn.Conv3d.forward))
        stack.enter_context(mock.patch.object(DeformableAttention, "forward", attention))
        stack.enter_context(mock.patch.object(e2e_tad, "roi_align", roi_align))
        stack.enter_context(mock.patch.object(afsd, "pool_levels", pool_levels))
        stack.enter_context(mock.patch.object(coarse_to_fine, "boundary_max_pool", pool))
        stack.enter_context(edge_by_edge())
        yield


def made(name: str, device: str) -> Detector[Any]:
    """The detector with random weights, without dropout: both sides are to say the same."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        detector = load_detector(name)
    for module in detector.modules():
        if isinstance(module, nn.Dropout | nn.MultiheadAttention):
            setattr(module, "p" if isinstance(module, nn.Dropout) else "dropout", 0.0)
    return detector.to(device)


def shown(detector: Detector[Any], device: str) -> tuple[tuple[Tensor, ...], list[int]]:
    """What a detector is called with, and the steps of every clip or video in it."""
    config = detector.config
    draw = torch.Generator().manual_seed(0)
    if detector.looks_at == "frames":
        clip = torch.randn(1, 3, config.max_length, config.crop, config.crop, generator=draw)
        return (clip.to(device),), [config.max_length]
    lengths = [int(share * config.max_length) for share in SHARES]
    features = torch.randn(len(lengths), config.input_dim, config.max_length, generator=draw)
    for row, length in zip(features, lengths, strict=True):
        row[:, length:] = 0
    return (features.to(device), torch.tensor(lengths, device=device)), lengths


def works(detector: Detector[Any], device: str) -> dict[str, Work]:
    """What is timed: a clip looked at, or windows, and a step of training with them."""
    given, lengths = shown(detector, device)
    ends, labels = [[0.1, 0.2], [0.3, 0.6], [0.7, 0.75]], [0, 1, 2]
    actions = Actions.of([([[a * length, b * length] for a, b in ends], labels) for length in lengths], device)

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def forward() -> dict[str, Tensor]:
        detector.eval()
        with torch.inference_mode():
            outputs = detector(*given)
        wait()
        return {
            key: value
            for key, value in vars(outputs).items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }

    def step() -> dict[str, Tensor]:
        detector.train()
        detector.zero_grad(set_to_none=True)
        losses = detector.loss(detector(*given), actions)
        losses.total.backward()
        wait()
        return {"total": losses.total.detach()}

    return {"forward": forward, "training step": step}


def measured(name: str, device: str, what: str, repeats: int) -> Iterator[Row]:
    """The rows of one detector."""
    clock: Clock = "cpu" if device == "cpu" else "wall"
    for said, ours in works(made(name, device), device).items():
        if what not in said:
            continue

        def plain(ours: Work = ours) -> object:
            with plainly():
                return ours()

        found, wanted = ours(), plain()
        assert isinstance(found, dict)
        assert isinstance(wanted, dict)
        for key, value in found.items():
            apart = ((value - wanted[key]).abs().max() / wanted[key].abs().max()).item()
            if not apart < AGREE:
                raise SystemExit(f"{name}: {key} differs by {apart:.1e} in {said}; nothing was timed")
        pair = by_turns(ours, plain, repeats=repeats, clock=clock)
        assert pair.peer is not None
        assert pair.ratio is not None
        yield Row(name, said, 1e3 * pair.ours, 1e3 * pair.peer, pair.ratio)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit status whether any is slower."""
    parser = make_parser(__doc__, strict="exit with 1 if one is slower")
    parser.add_argument("--size", choices=NAMES, default="puppets", help="small ones, or those published for THUMOS14")
    parser.add_argument("--only", default="", help="measure only detectors that have this in their name")
    parser.add_argument("--what", default="", help="measure only what has this in its name: 'forward'")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeats", type=int, default=3, help="turns")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"{platform.machine()}, torch {torch.__version__}, {asked.device}, median of {asked.repeats}")
    print(f"{'detector':26} {'what':14} {'ours, ms':>9} {'plain, ms':>10} {'times faster':>13}")
    rows = []
    for name in NAMES[asked.size]:
        if asked.only not in name:
            continue
        for row in measured(name, asked.device, asked.what, asked.repeats):
            rows.append(row)
            print(
                f"{row.detector:26} {row.what:14} {row.ours_ms:9.0f} {row.plain_ms:10.0f} {row.ratio:13.2f}", flush=True
            )
    return finish(asked, [asdict(row) for row in rows], missed=any(row.ratio < AIM for row in rows))


if __name__ == "__main__":
    sys.exit(main())
