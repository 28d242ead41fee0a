"""What a detector costs, beside the plain transcription of its original: `python -m bench.detectors`.

Forward pass, training step and post-processing at the sizes published for THUMOS14, both sides by turns with the same
weights, after a check that they give the same answers. On a CPU one thread is used and its time counted; on a GPU it
is the clock on the wall, and both sides wait for the device.
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

from bench.timing import Clock, Work, by_turns, finish, make_parser
from bench.transcriptions import detector_steps as plain
from bench.transcriptions.detectors import Original, Sizes
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import Detector, load_detector
from jostle.models.detection.outputs import suppress

NAMES = ("actionformer", "tridet", "temporalmaxer")
MEDIAN = 1200  # steps of the median THUMOS14 test video
VIDEOS = {"cpu": 6, "cuda": 16}
TRAINED = (1800, 1000)  # steps of the two videos of a training batch
AGREE = 5e-4  # largest difference of logits between the sides, float32
TARGETS = {
    "cpu": {"forward, T = 1200": 1.8, "training step": 1.0, "post-processing": 5.0},
    "cuda": {"forward, real lengths": 3.0, "training step": 2.0, "post-processing": 5.0},
}


@dataclass(frozen=True)
class Row:
    """One measurement, in milliseconds."""

    detector: str
    what: str
    ours_ms: float
    plain_ms: float
    ratio: float
    target: float | None

    @property
    def misses(self) -> bool:
        return self.target is not None and self.ratio < self.target


def real_lengths(count: int, longest: int = 2304) -> list[int]:
    """Steps of `count` videos spread like THUMOS14: half of them below 1200, a few at the length all are padded to."""
    steps = (NormalDist(0.0, 0.7).inv_cdf((i + 0.5) / count) for i in range(count))
    return [min(longest, round(MEDIAN * 2.0 ** (step / 0.7))) for step in steps]


def lively(net: torch.nn.Module, seed: int = 0) -> None:
    """Weights as far from their start as training takes them, so that scores and lengths differ from point to point."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            middle, reach = 0.0, 0.2
            if "drop_path" in name:
                middle = 0.3
            elif name.endswith("cls_head.conv.bias"):
                middle, reach = (-8.0 if name.startswith("cls") else -1.0), 1.0
            elif name.endswith("offset_head.conv.bias"):
                middle, reach = 0.4, 0.6
            elif (name.endswith("weight") and (weight.ndim == 1 or weight.shape[0] == 1)) or name.endswith("scale"):
                middle, reach = 1.0, 0.4
            elif name.endswith("weight"):
                reach = 1.5 * (3 / weight[0].numel()) ** 0.5
            drawn = rng.uniform(middle - reach, middle + reach, tuple(weight.shape))
            weight.copy_(torch.as_tensor(drawn, dtype=weight.dtype))


class Match:
    """Ours and the transcription of one detector, with equal weights, on one device."""

    def __init__(self, name: str, device: str) -> None:
        self.name, self.device = name, device
        self.ours: Detector[Any] = load_detector(f"{name}_thumos_i3d")
        lively(self.ours)
        sizes = Sizes(max_segments=self.ours.config.max_segments)
        self.plain = Original(name, sizes).eval()
        self.plain.load_state_dict(self.ours.state_dict())
        self.ours.to(device).eval()
        self.plain.to(device)

    def videos(self, lengths: Sequence[int]) -> list[torch.Tensor]:
        """(C, T) features each."""
        rng = np.random.default_rng(len(lengths))
        drawn = (rng.standard_normal((self.ours.config.input_dim, n), np.float32) for n in lengths)
        return [torch.from_numpy(x).to(self.device) for x in drawn]

    def batches(self, videos: list[torch.Tensor], size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Ours takes videos of different lengths together; of like ones there is the least to waste."""
        ordered = sorted(videos, key=lambda x: x.shape[-1])
        made = []
        for first in range(0, len(ordered), size):
            own = ordered[first : first + size]
            lengths = torch.tensor([x.shape[-1] for x in own], device=self.device)
            made.append(
                (torch.nn.utils.rnn.pad_sequence([x.T for x in own], True).transpose(1, 2).contiguous(), lengths)
            )
        return made

    def works(self, batch: int) -> Iterator[tuple[str, Work, Work]]:
        """What is measured: a name, our work and the transcription's."""
        video = self.videos([MEDIAN])
        one = self.batches(video, 1)
        yield "forward, T = 1200", self.forward(one), self.plain_forward(video)
        many = self.videos(real_lengths(VIDEOS[self.device]))
        yield "forward, real lengths", self.forward(self.batches(many, batch)), self.plain_forward(many)
        if self.device == "cuda":
            half = self.forward(self.batches(many, batch), half=True)
            yield "forward, real lengths, ours in bfloat16", half, self.plain_forward(many)
        with torch.inference_mode():
            found, expected = self.ours(*one[0]), self.plain(video)
        self.check(found, expected)

        def ours_after() -> object:
            with torch.inference_mode():
                return suppress(self.ours.decode(found)[0], self.ours.config)

        def plain_after(nms: plain.Suppress) -> Callable[[], tuple[Any, Any, Any]]:
            def work() -> tuple[Any, Any, Any]:
                with torch.inference_mode():
                    return plain.suppressed(
                        plain.candidates(self.plain, expected, 0), self.plain.sizes.max_segments, nms
                    )

            return work

        self.check_segments(ours_after(), plain_after(plain.soft_nms_compiled)())
        yield "post-processing", ours_after, plain_after(plain.soft_nms_numpy)
        yield "post-processing, compiled rival", ours_after, plain_after(plain.soft_nms_compiled)
        yield ("training step", *self.training())

    def forward(self, batches: list[tuple[torch.Tensor, torch.Tensor]], *, half: bool = False) -> Work:
        def work() -> None:
            with torch.inference_mode(), torch.autocast(self.device, torch.bfloat16, enabled=half):
                for features, lengths in batches:
                    self.ours(features, lengths)

        return work

    def plain_forward(self, videos: list[torch.Tensor]) -> Work:
        def work() -> None:
            with torch.inference_mode():
                for video in videos:  # the originals take one video at a time
                    self.plain([video])

        return work

    def training(self) -> tuple[Work, Work]:
        """A step of each: forward, losses, backward, clipping, AdamW."""
        videos = self.videos(TRAINED)
        features, lengths = self.batches(videos, len(videos))[0]
        rng = np.random.default_rng(5)
        segments, labels = [], []
        for n in sorted(TRAINED):
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

        def step(net: torch.nn.Module, optimiser: torch.optim.Optimizer, total: Callable[[], torch.Tensor]) -> Work:
            def work() -> None:
                optimiser.zero_grad(set_to_none=True)
                total().backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()

            return work

        return (
            step(self.ours, optimisers[0], lambda: self.ours.loss(self.ours(features, lengths), actions).total),
            step(
                self.plain,
                optimisers[1],
                lambda: plain.losses(self.plain, self.plain(ordered), plain_segments, plain_labels)["total"],
            ),
        )

    def check(self, found: Any, expected: dict[str, Any]) -> None:
        """Refuse to time two networks that say different things."""
        for level, logits in enumerate(found.logits[0].split(list(found.points.sizes))):
            other = expected["cls"][level][0][: len(logits)]
            inside = expected["mask"][level][0][: len(logits), None]
            apart = ((logits - other).abs() * inside).max().item()
            if not apart < AGREE:
                raise SystemExit(f"{self.name}: logits of level {level} differ by {apart:.2g}; nothing was timed")

    def check_segments(self, found: Any, expected: tuple[Any, Any, Any]) -> None:
        """Nearly all final segments have a partner; the rest are ties that fell the other way."""
        ends = np.abs(found.segments[:, None] - expected[0]).max(-1) < 0.05
        shared = (ends & (found.labels[:, None] == expected[2])).any(1).mean() if len(found) else 0.0
        if not shared > 0.98:
            raise SystemExit(f"{self.name}: only {shared:.1%} of the final segments agree; nothing was timed")


def measured(match: Match, *, what: str, repeats: int, clock: Clock, batch: int) -> Iterator[Row]:
    targets, wanted = TARGETS[match.device], what
    for what, ours, other in match.works(batch):
        if wanted not in what:
            continue
        print(f"{match.name}: {what}", file=sys.stderr)
        works = [waiting(work) if match.device == "cuda" else work for work in (ours, other)]
        for work in works * (3 if match.device == "cuda" else 1):  # compile, fill caches, let cuDNN pick its algorithms
            work()
        pair = by_turns(*works, repeats=repeats, clock=clock)
        assert pair.peer is not None
        assert pair.ratio is not None
        yield Row(match.name, what, pair.ours * 1e3, pair.peer * 1e3, pair.ratio, targets.get(what))


def waiting(work: Work) -> Work:
    def waited() -> None:
        work()
        torch.cuda.synchronize()

    return waited


def facts(device: str, clock: Clock, repeats: int, batch: int) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()}, one thread"
    return {
        "device": name,
        "torch": torch.__version__,
        "clock": f"{clock}, medians of {repeats}",
        "sizes": "THUMOS14, 2048-dimensional features, 20 classes; the transcription pads to 2304",
        "lengths": f"{real_lengths(VIDEOS[device])}; ours {batch} together, the transcription one by one as originally",
        "training": f"a batch of {TRAINED} steps with 15 actions each",
        "rival in post-processing": "plain NumPy; 'compiled' is the same in Numba, in place of the originals' C++",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit code whether every target was met."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--what", default="", help="measure only what has this in its name: 'forward'")
    parser.add_argument("--repeats", type=int, help="turns; 5 on a CPU, 20 on a GPU")
    parser.add_argument("--batch", type=int, help="videos that ours takes together; 1 on a CPU, 4 on a GPU")
    options = parser.parse_args(arguments)
    cuda = options.device == "cuda"
    clock: Clock = "wall" if cuda else "cpu"
    repeats, batch = options.repeats or (20 if cuda else 5), options.batch or (4 if cuda else 1)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    about = facts(options.device, clock, repeats, batch)
    for name, value in about.items():
        print(f"{name}: {value}")
    print(f"\n{'detector':14}{'what':42}{'ours ms':>10}{'plain ms':>11}{'ratio':>8}  target")
    rows = []
    for name in (options.only,) if options.only else NAMES:
        for row in measured(Match(name, options.device), what=options.what, repeats=repeats, clock=clock, batch=batch):
            rows.append(row)
            aim = "" if row.target is None else f"{row.target:.1f}" + (" missed" if row.misses else "")
            print(f"{row.detector:14}{row.what:42}{row.ours_ms:10.2f}{row.plain_ms:11.2f}{row.ratio:8.2f}  {aim}")
    record = {"facts": about, "rows": [dataclasses.asdict(row) for row in rows]}
    return finish(options, record, missed=any(row.misses for row in rows))


if __name__ == "__main__":
    sys.exit(main())
