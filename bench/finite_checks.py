"""Cost of checking that outputs of models are finite: `python -m bench.finite_checks --device cuda`.

The time of the checks, as a share of the time of the calls that make them. On a GPU it is that of launching sums and
reading them, after results have been copied anyway.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import jostle
from bench.clips import drawn_frames
from bench.timing import Work, add_device_option, finish, make_parser, time_call
from jostle.core.types.clip import Clip
from jostle.corruptions.engine.stages import ClipSource
from jostle.features.video import VideoFeatures
from jostle.models.finite import OutputCheck, check_weights
from jostle.models.loading.detectors import load_detector
from jostle.models.loading.extractors import load_extractor
from jostle.models.loading.objects import load_object_detector
from jostle.models.loading.recognisers import load_recogniser

TARGET = 0.01
DETECTORS = ("actionformer_thumos_i3d", "tridet_thumos_i3d", "temporalmaxer_thumos_i3d", "vsgn_thumos_tsn")
ROWS = 1000  # rows of features, as of a video of THUMOS14
CHECKING_MODULES = ("jostle.mending.inspection", "jostle.models.recognition.recogniser", "jostle.features.video")


@contextlib.contextmanager
def timed_checks() -> Iterator[list[float]]:
    """Collect the seconds of every check."""
    seconds: list[float] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds.append(time.perf_counter() - start)

        return call

    from jostle.core.finite import check_finite

    with contextlib.ExitStack() as patches:
        for name in ("__init__", "finish"):
            patches.enter_context(patch.object(OutputCheck, name, timed(getattr(OutputCheck, name))))
        for module in CHECKING_MODULES:
            patches.enter_context(patch(f"{module}.check_finite", timed(check_finite)))
        yield seconds


def measure_share(work: Work, turns: int) -> tuple[float, float]:
    """Return the seconds of a call, and the share of the checks in it."""
    for _ in range(3):
        work()
    with timed_checks() as seconds:
        total = sum(time_call(work, "wall") for _ in range(turns))
    assert seconds
    return total / turns, sum(seconds) / total


def model_calls(device: str) -> Iterator[tuple[str, Work]]:
    """Yield calls of models of each kind that check their outputs, by name."""
    rng = np.random.default_rng(0)
    for name in DETECTORS:
        detector = load_detector(name).to(device)
        rows = rng.normal(size=(ROWS, detector.config.input_dim)).astype(np.float32)
        facts = {"fps": 25.0, "duration": 165.0, "stride": 4, "window": 16}
        yield name, partial(detector.detect, rows, **facts)
    frames = drawn_frames(64, 112, 112)
    detector = load_detector("e2e_tad_puppets", weights="clean").to(device)
    yield "e2e_tad_puppets", partial(detector.detect, frames, fps=10.0, duration=6.4)
    boxes = load_object_detector("puppet_boxes", weights="clean", device=device)
    yield "puppet_boxes", lambda: boxes(frames[:8].copy())
    recogniser = load_recogniser("puppet_c3d", weights="clean", device=device)
    yield "puppet_c3d", lambda: recogniser(frames[None, :16])
    extractor = load_extractor("puppet_net", device=device)
    video = ClipSource(Clip.at_rate(frames, 25))
    yield "puppet_net", lambda: VideoFeatures(video, extractor).plain()
    inspector = jostle.load_inspector(device=device)
    yield "inspector", lambda: jostle.inspect(np.tile(frames, (4, 1, 1, 1)), inspector=inspector)


def main() -> int:
    """Print the share of the checks in each call, and return the exit code."""
    parser = make_parser(__doc__)
    add_device_option(parser)
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    for name, work in model_calls(options.device):
        seconds, share = measure_share(work, options.turns)
        rows[name] = {"ms": 1e3 * seconds, "share": share}
        print(f"{name:28} {1e3 * seconds:9.2f} ms  checks {100 * share:5.2f} %")
    network = load_detector(DETECTORS[0])
    seconds = time_call(lambda: check_weights(network, ""), "wall")
    size = sum(value.numel() for value in network.state_dict().values())
    print(f"weights of {DETECTORS[0]}, {size / 1e6:.1f} million: {1e3 * seconds:.1f} ms, once")
    return finish(options, rows, missed=any(row["share"] > TARGET for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
