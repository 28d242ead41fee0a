"""Cost of frame-based detectors and VSGN, compared with plain computation: `python -m bench.frame_detectors`.

Forward pass of a clip, or of windows of features, and a training step, with random weights. The plain side uses
PyTorch's 3D convolutions, loops over regions (AFSD) and over heads, points and parts of segments (E2E-TAD) as in the
originals' compiled kernels, and loops over the edges of a graph and the ends of a box (VSGN). Both sides are timed
alternately, after a check that their outputs agree: CPU time of one thread, or wall time on a GPU.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

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
)
from bench.transcriptions.boundary_pooling import boundary_max_pool
from bench.transcriptions.deformable_attention import attend
from bench.transcriptions.roi_align import roi_align
from bench.transcriptions.vsgn import plain_vsgn
from jostle.models.detection import afsd, e2e_tad
from jostle.models.detection.blocks import afsd as coarse_to_fine
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.e2e_tad import DeformableAttention
from jostle.models.detection.detector import Detector, make_detector
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
SHARES = (1.0, 0.8, 0.5, 0.3)  # lengths of four videos, relative to the window of features; the last is stitched
TOLERANCE = 2e-3  # largest difference of raw outputs between the sides, relative to the largest output
TARGET = 0.95  # not slower, apart from the noise of the machine


@dataclass(frozen=True)
class FrameDetectorTiming:
    """Milliseconds of an operation of a detector, ours and computed plainly."""

    detector: str
    what: str
    ours_ms: float
    plain_ms: float
    ratio: float


def pool_levels(x: Tensor, levels: Sequence[Tensor], *, reproduce_bugs: bool) -> list[Tensor]:
    """Pool AFSD's regions of every level, one after another."""
    return [boundary_max_pool(x, regions) for regions in levels]


def pool(x: Tensor, regions: Tensor, *, reproduce_bugs: bool) -> Tensor:
    """Pool AFSD's regions of one level."""
    return boundary_max_pool(x, regions)


def attention(self: DeformableAttention, query: Tensor, reference: Tensor, source: Tensor, padded: None) -> Tensor:
    """Compute E2E-TAD's deformable attention of sequences without padding."""
    value, weight = (
        torch.unflatten(x, -1, (self.heads, -1)) for x in (self.value_proj(source), self.attention_weights(query))
    )
    position = self.places(query, reference, source.shape[1])
    mixture = attend(value.transpose(1, 2), position, weight.softmax(-1).transpose(1, 2))
    output: Tensor = self.output_proj(mixture.transpose(1, 2).flatten(2))
    return output


@contextmanager
def plain_operators() -> Iterator[None]:
    """Replace the operators of the networks by plain ones."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(FrameConvolution, "forward", nn.Conv3d.forward))
        stack.enter_context(mock.patch.object(DeformableAttention, "forward", attention))
        stack.enter_context(mock.patch.object(e2e_tad, "roi_align", roi_align))
        stack.enter_context(mock.patch.object(afsd, "pool_levels", pool_levels))
        stack.enter_context(mock.patch.object(coarse_to_fine, "boundary_max_pool", pool))
        stack.enter_context(plain_vsgn())
        yield


def build_detector(name: str, device: str) -> Detector[Any]:
    """Return a detector with random weights and no dropout, so that outputs of both sides can be compared."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        detector = make_detector(name)
    for module in detector.modules():
        if isinstance(module, nn.Dropout | nn.MultiheadAttention):
            setattr(module, "p" if isinstance(module, nn.Dropout) else "dropout", 0.0)
    return detector.to(device)


def make_inputs(detector: Detector[Any], device: str) -> tuple[tuple[Tensor, ...], list[int]]:
    """Return the arguments of a detector's forward pass, and the steps of every clip or video."""
    config = detector.config
    generator = torch.Generator().manual_seed(0)
    if detector.looks_at == "frames":
        clip = torch.randn(1, 3, config.max_length, config.crop, config.crop, generator=generator)
        return (clip.to(device),), [config.max_length]
    lengths = [int(share * config.max_length) for share in SHARES]
    features = torch.randn(len(lengths), config.input_dim, config.max_length, generator=generator)
    for row, length in zip(features, lengths, strict=True):
        row[:, length:] = 0
    return (features.to(device), torch.tensor(lengths, device=device)), lengths


def make_operations(detector: Detector[Any], device: str) -> dict[str, Callable[[], dict[str, Tensor]]]:
    """Return the operations to time, by name: the forward pass and a training step."""
    inputs, lengths = make_inputs(detector, device)
    ends, labels = [[0.1, 0.2], [0.3, 0.6], [0.7, 0.75]], [0, 1, 2]
    actions = Actions.of([([[a * length, b * length] for a, b in ends], labels) for length in lengths], device)

    def forward() -> dict[str, Tensor]:
        detector.eval()
        with torch.inference_mode():
            outputs = detector(*inputs)
        return {
            key: value
            for key, value in vars(outputs).items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }

    def step() -> dict[str, Tensor]:
        detector.train()
        detector.zero_grad(set_to_none=True)
        losses = detector.loss(detector(*inputs), actions)
        losses.total.backward()
        return {"total": losses.total.detach()}

    return {"forward": make_blocking(forward, device), "training step": make_blocking(step, device)}


def measure(name: str, device: str, pattern: str, repeats: int) -> Iterator[FrameDetectorTiming]:
    """Yield the timings of a detector, for operations that have `pattern` in their name."""
    for operation, ours in make_operations(build_detector(name, device), device).items():
        if pattern not in operation:
            continue

        def plain(ours: Callable[[], dict[str, Tensor]] = ours) -> dict[str, Tensor]:
            with plain_operators():
                return ours()

        outputs, expected = ours(), plain()
        for key, value in outputs.items():
            difference = ((value - expected[key]).abs().max() / expected[key].abs().max()).item()
            if not difference < TOLERANCE:
                raise SystemExit(f"{name}: {key} differs by {difference:.1e} in {operation}; nothing was timed")
        times = compare(ours, plain, repeats=repeats, clock=clock_for(device))
        yield FrameDetectorTiming(name, operation, 1e3 * times.ours, 1e3 * times.peer, times.ratio)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the timings of each detector, and return the exit code."""
    parser = make_parser(__doc__, strict="exit with 1 if a detector is slower than the plain one")
    parser.add_argument("--size", choices=NAMES, default="puppets", help="small ones, or those published for THUMOS14")
    parser.add_argument("--only", default="", help="measure only detectors with this in their name")
    parser.add_argument("--what", default="", help="measure only operations with this in their name: 'forward'")
    add_device_option(parser)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    limit_threads()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"{platform.machine()}, torch {torch.__version__}, {options.device}, median of {options.repeats}")
    print(f"{'detector':26} {'operation':14} {'ours, ms':>9} {'plain, ms':>10} {'times faster':>13}")
    rows = []
    for name in NAMES[options.size]:
        if options.only not in name:
            continue
        for row in measure(name, options.device, options.what, options.repeats):
            rows.append(row)
            print(
                f"{row.detector:26} {row.what:14} {row.ours_ms:9.0f} {row.plain_ms:10.0f} {row.ratio:13.2f}", flush=True
            )
    return finish(options, [asdict(row) for row in rows], missed=any(row.ratio < TARGET for row in rows))


if __name__ == "__main__":
    sys.exit(main())
