"""Cost of detectors, compared with plain transcriptions of the original programs: `python -m bench.detectors`.

Forward pass, training step and post-processing at the sizes published for THUMOS14. Both sides have the same weights
and are timed alternately, after a check that their outputs agree: CPU time of one thread, or wall time on a GPU.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import dataclasses
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import torch

from bench.timing import (
    Clock,
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
from bench.transcriptions import detector_steps as plain
from bench.transcriptions.detectors import Original, Sizes
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import Detector, make_detector
from jostle.models.detection.outputs import suppress

NAMES = ("actionformer", "tridet", "temporalmaxer")
MEDIAN_LENGTH = 1200  # steps of the median THUMOS14 test video
VIDEOS = {"cpu": 6, "cuda": 16}
TRAINING_LENGTHS = (1800, 1000)  # steps of the two videos of a training batch
TOLERANCE = 5e-4  # largest difference of logits between the sides, float32
TARGETS = {
    "cpu": {"forward, T = 1200": 1.8, "training step": 1.0, "post-processing": 5.0},
    "cuda": {"forward, real lengths": 3.0, "training step": 2.0, "post-processing": 5.0},
}


@dataclass(frozen=True)
class DetectorTiming:
    """Milliseconds of an operation of a detector, ours and the transcription's."""

    detector: str
    what: str
    ours_ms: float
    plain_ms: float
    ratio: float
    target: float | None

    @property
    def misses(self) -> bool:
        return self.target is not None and self.ratio < self.target


def realistic_lengths(count: int, longest: int = 2304) -> list[int]:
    """Return the steps of `count` videos distributed as in THUMOS14: half below 1200, a few at the padded length."""
    steps = (NormalDist(0.0, 0.7).inv_cdf((i + 0.5) / count) for i in range(count))
    return [min(longest, round(MEDIAN_LENGTH * 2.0 ** (step / 0.7))) for step in steps]


def randomize_weights(net: torch.nn.Module, seed: int = 0) -> None:
    """Draw weights as large as after training, so that scores and lengths differ from point to point."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            mean, spread = 0.0, 0.2
            if "drop_path" in name:
                mean = 0.3
            elif name.endswith("cls_head.conv.bias"):
                mean, spread = (-8.0 if name.startswith("cls") else -1.0), 1.0
            elif name.endswith("offset_head.conv.bias"):
                mean, spread = 0.4, 0.6
            elif (name.endswith("weight") and (weight.ndim == 1 or weight.shape[0] == 1)) or name.endswith("scale"):
                mean, spread = 1.0, 0.4
            elif name.endswith("weight"):
                spread = 1.5 * (3 / weight[0].numel()) ** 0.5
            values = rng.uniform(mean - spread, mean + spread, tuple(weight.shape))
            weight.copy_(torch.as_tensor(values, dtype=weight.dtype))


class DetectorPair:
    """A detector and the transcription of its original, with equal weights, on one device."""

    def __init__(self, name: str, device: str) -> None:
        self.name, self.device = name, device
        self.ours: Detector[Any] = make_detector(f"{name}_thumos_i3d")
        randomize_weights(self.ours)
        sizes = Sizes(max_segments=self.ours.config.max_segments)
        self.plain = Original(name, sizes).eval()
        self.plain.load_state_dict(self.ours.state_dict())
        self.ours.to(device).eval()
        self.plain.to(device)

    def make_videos(self, lengths: Sequence[int]) -> list[torch.Tensor]:
        """Return random (C, T) features of videos of the given lengths."""
        rng = np.random.default_rng(len(lengths))
        features = (rng.standard_normal((self.ours.config.input_dim, n), np.float32) for n in lengths)
        return [torch.from_numpy(x).to(self.device) for x in features]

    def make_batches(self, videos: list[torch.Tensor], size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return padded batches of features and their lengths; videos of similar length are batched together."""
        ordered = sorted(videos, key=lambda x: x.shape[-1])
        batches = []
        for first in range(0, len(ordered), size):
            own = ordered[first : first + size]
            lengths = torch.tensor([x.shape[-1] for x in own], device=self.device)
            padded = torch.nn.utils.rnn.pad_sequence([x.T for x in own], True).transpose(1, 2).contiguous()
            batches.append((padded, lengths))
        return batches

    def operations(self, batch: int) -> Iterator[tuple[str, Work, Work]]:
        """Yield the operations to time: a name, our function and that of the transcription."""
        video = self.make_videos([MEDIAN_LENGTH])
        one = self.make_batches(video, 1)
        yield "forward, T = 1200", self.make_forward(one), self.make_plain_forward(video)
        many = self.make_videos(realistic_lengths(VIDEOS[self.device]))
        batches, plain_forward = self.make_batches(many, batch), self.make_plain_forward(many)
        yield "forward, real lengths", self.make_forward(batches), plain_forward
        if self.device == "cuda":
            yield "forward, real lengths, ours in bfloat16", self.make_forward(batches, half=True), plain_forward
        with torch.inference_mode():
            outputs, expected = self.ours(*one[0]), self.plain(video)
        self.check_logits(outputs, expected)

        def postprocess() -> object:
            with torch.inference_mode():
                return suppress(self.ours.decode(outputs)[0], self.ours.config)

        def make_plain_postprocess(nms: plain.SoftNms) -> Callable[[], tuple[Any, Any, Any]]:
            def work() -> tuple[Any, Any, Any]:
                with torch.inference_mode():
                    candidates = plain.decode_candidates(self.plain, expected, 0)
                    return plain.suppress_candidates(candidates, self.plain.sizes.max_segments, nms)

            return work

        self.check_segments(postprocess(), make_plain_postprocess(plain.soft_nms_compiled)())
        yield "post-processing", postprocess, make_plain_postprocess(plain.soft_nms_numpy)
        yield "post-processing, compiled rival", postprocess, make_plain_postprocess(plain.soft_nms_compiled)
        yield ("training step", *self.make_training_steps())

    def make_forward(self, batches: list[tuple[torch.Tensor, torch.Tensor]], *, half: bool = False) -> Work:
        """Return the forward pass of our detector over batches."""

        def work() -> None:
            with torch.inference_mode(), torch.autocast(self.device, torch.bfloat16, enabled=half):
                for features, lengths in batches:
                    self.ours(features, lengths)

        return work

    def make_plain_forward(self, videos: list[torch.Tensor]) -> Work:
        """Return the forward pass of the transcription, one video at a time as in the original."""

        def work() -> None:
            with torch.inference_mode():
                for video in videos:
                    self.plain([video])

        return work

    def make_training_steps(self) -> tuple[Work, Work]:
        """Return a training step of each side: forward, losses, backward, gradient clipping, AdamW."""
        videos = self.make_videos(TRAINING_LENGTHS)
        features, lengths = self.make_batches(videos, len(videos))[0]
        rng = np.random.default_rng(5)
        segments, labels = [], []
        for n in sorted(TRAINING_LENGTHS):
            start = rng.uniform(0, n - 60, 15)
            segments.append(np.stack([start, start + rng.gamma(2.0, 8.0, 15) + 2], 1).astype(np.float32))
            labels.append(rng.integers(0, 20, 15))
        actions = Actions.of(list(zip(segments, labels, strict=True)), self.device)
        plain_segments = [torch.from_numpy(x).to(self.device) for x in segments]
        plain_labels = [torch.from_numpy(x).to(self.device) for x in labels]
        ordered = sorted(videos, key=lambda x: x.shape[-1])
        for net in (self.ours, self.plain):
            net.train()
        optimisers = [torch.optim.AdamW(net.parameters(), 1e-6) for net in (self.ours, self.plain)]

        def make_step(
            net: torch.nn.Module, optimiser: torch.optim.Optimizer, total: Callable[[], torch.Tensor]
        ) -> Work:
            def work() -> None:
                optimiser.zero_grad(set_to_none=True)
                total().backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()

            return work

        return (
            make_step(self.ours, optimisers[0], lambda: self.ours.loss(self.ours(features, lengths), actions).total),
            make_step(
                self.plain,
                optimisers[1],
                lambda: plain.compute_losses(self.plain, self.plain(ordered), plain_segments, plain_labels)["total"],
            ),
        )

    def check_logits(self, outputs: Any, expected: dict[str, Any]) -> None:
        """Exit unless the logits of both sides agree."""
        for level, logits in enumerate(outputs.logits[0].split(list(outputs.points.sizes))):
            other = expected["cls"][level][0][: len(logits)]
            inside = expected["mask"][level][0][: len(logits), None]
            difference = ((logits - other).abs() * inside).max().item()
            if not difference < TOLERANCE:
                raise SystemExit(f"{self.name}: logits of level {level} differ by {difference:.2g}; nothing was timed")

    def check_segments(self, detections: Any, expected: tuple[Any, Any, Any]) -> None:
        """Exit unless nearly all final segments agree; the others are ties that are broken differently."""
        ends = np.abs(detections.segments[:, None] - expected[0]).max(-1) < 0.05
        shared = (ends & (detections.labels[:, None] == expected[2])).any(1).mean() if len(detections) else 0.0
        if not shared > 0.98:
            raise SystemExit(f"{self.name}: only {shared:.1%} of the final segments agree; nothing was timed")


def measure(pair: DetectorPair, *, pattern: str, repeats: int, clock: Clock, batch: int) -> Iterator[DetectorTiming]:
    """Yield the timings of a detector, for operations that have `pattern` in their name."""
    targets = TARGETS[pair.device]
    for operation, ours, other in pair.operations(batch):
        if pattern not in operation:
            continue
        print(f"{pair.name}: {operation}", file=sys.stderr)
        works = [make_blocking(work, pair.device) for work in (ours, other)]
        for work in works * (3 if pair.device == "cuda" else 1):  # compile, fill caches, let cuDNN choose algorithms
            work()
        times = compare(*works, repeats=repeats, clock=clock)
        yield DetectorTiming(
            pair.name, operation, times.ours * 1e3, times.peer * 1e3, times.ratio, targets.get(operation)
        )


def describe_environment(device: str, clock: Clock, repeats: int, batch: int) -> dict[str, str]:
    """Return the device, library versions and settings that the numbers depend on."""
    name = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, one thread"
    return {
        "device": name,
        "torch": torch.__version__,
        "clock": f"{clock}, medians of {repeats}",
        "sizes": "THUMOS14, 2048-dimensional features, 20 classes; the transcription pads to 2304",
        "lengths": f"{realistic_lengths(VIDEOS[device])}; ours in batches of {batch}, the transcription one by one",
        "training": f"a batch of {TRAINING_LENGTHS} steps with 15 actions each",
        "rival in post-processing": "plain NumPy; 'compiled' is the same in Numba, in place of the originals' C++",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the timings of each detector, and return the exit code."""
    parser = make_parser(__doc__)
    add_device_option(parser)
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--what", default="", help="measure only operations with this in their name: 'forward'")
    parser.add_argument("--repeats", type=int, help="default: 5 on a CPU, 20 on a GPU")
    parser.add_argument("--batch", type=int, help="videos in a batch of ours; default: 1 on a CPU, 4 on a GPU")
    options = parser.parse_args(arguments)
    cuda, clock = options.device == "cuda", clock_for(options.device)
    repeats, batch = options.repeats or (20 if cuda else 5), options.batch or (4 if cuda else 1)
    limit_threads()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    facts = describe_environment(options.device, clock, repeats, batch)
    print_facts(facts)
    print(f"\n{'detector':14}{'operation':42}{'ours ms':>10}{'plain ms':>11}{'ratio':>8}  target")
    rows = []
    for name in (options.only,) if options.only else NAMES:
        pair = DetectorPair(name, options.device)
        for row in measure(pair, pattern=options.what, repeats=repeats, clock=clock, batch=batch):
            rows.append(row)
            target = "" if row.target is None else f"{row.target:.1f}" + (" missed" if row.misses else "")
            print(f"{row.detector:14}{row.what:42}{row.ours_ms:10.2f}{row.plain_ms:11.2f}{row.ratio:8.2f}  {target}")
    record = {"facts": facts, "rows": [dataclasses.asdict(row) for row in rows]}
    return finish(options, record, missed=any(row.misses for row in rows))


if __name__ == "__main__":
    sys.exit(main())
