"""What corrupting on a GPU costs, beside one core: `python -m bench.gpu_corruptions`.

The frame-level kinds of ImageNet-C on clips that lie on the GPU, 224 x 224, severity 3, and a plain copy of the same
frames there; beside the compiled kernels on one thread. The bytes of both are compared first. Each call has a seed of
its own, as epochs have, and is waited for, so that what the CPU does for it counts. Beside that stands what calls take
that are queued one behind the other, as in a loop that has more to do; copies are compared with copies that are queued.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

import jostle
from bench.clips import drawn_frames
from bench.timing import finish, hold_to_one_thread, make_parser, seconds
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.corruptions.gpu.batch import gpu_kernel

CLIPS, FRAMES, SIDE, SEVERITY = 32, 16, 224, 3
AIM, LEAST = 20, 5  # times one core: the geometric mean, and each
NEAR_A_COPY = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "brightness", "contrast", "saturate")
COPIES = 2  # that these may take


@dataclass(frozen=True)
class Row:
    """Milliseconds a frame on the GPU, waited for and queued, and on one core, and the ratio of first and last."""

    kind: str
    gpu_ms: float
    queued_ms: float
    core_ms: float
    times: float


def timed(work: Callable[[], object], turns: int) -> float:
    """Median seconds of a call, the GPU waited for."""
    taken = []
    for _ in range(turns + 2):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[2:])


def queued(work: Callable[[], object], turns: int) -> float:
    """Seconds of a call of many, of which only the last is waited for."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(10 * turns):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / (10 * turns)


def measured(kind: str, clips: torch.Tensor, names: list[str], turns: int) -> Row:
    """One kind.

    Raises:
        AssertionError: if the bytes differ.
    """
    spec = f"imagenet-c/{kind}:{SEVERITY}"
    few = [clip.cpu().numpy() for clip in clips[:2]]

    def on_a_core() -> list[np.ndarray]:
        return [jostle.corrupt(clip, spec, video_id=name) for clip, name in zip(few, names, strict=False)]

    made = jostle.corrupt(clips, spec, video_id=names)
    assert np.array_equal(made[:2].cpu().numpy(), np.stack(on_a_core())), f"{spec}: other bytes than the CPU's"
    count = clips.shape[0] * clips.shape[1]
    seeds = itertools.count()

    def on_the_gpu() -> torch.Tensor:
        return jostle.corrupt(clips, spec, video_id=names, seed=next(seeds))

    gpu, behind = timed(on_the_gpu, turns) / count, queued(on_the_gpu, turns) / count
    core = statistics.median(seconds(on_a_core) for _ in range(3)) / (len(few) * clips.shape[1])
    return Row(kind, 1e3 * gpu, 1e3 * behind, 1e3 * core, core / gpu)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit status whether an aim is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--clips", type=int, default=CLIPS)
    parser.add_argument("--turns", type=int, default=7)
    given = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        parser.error("there is no GPU here")
    hold_to_one_thread()
    frames = drawn_frames(FRAMES, SIDE, SIDE)
    clips = torch.from_numpy(np.stack([np.roll(frames, number, 1) for number in range(given.clips)])).cuda()
    names = [f"clip {number}" for number in range(given.clips)]
    copy = 1e3 * queued(clips.clone, given.turns) / (given.clips * FRAMES)
    print(f"{torch.cuda.get_device_name()}, {given.clips} clips of {FRAMES} frames; a copy takes {copy:.5f} ms a frame")
    rows, failed = [], []
    for kind in profiles["imagenet-c"].entries:
        if gpu_kernel(Spec.parse(f"imagenet-c/{kind}")) is None:
            print(f"{kind:20} by way of the CPU")
            continue
        try:
            row = measured(kind, clips, names, given.turns)
        except Exception as error:  # one that fails does not take the others' figures along
            failed.append(kind)
            print(f"{kind:20} failed: {type(error).__name__}: {str(error)[:400]}", flush=True)
            continue
        rows.append(row)
        ours = f"{row.gpu_ms:8.5f} ms on the GPU, {row.queued_ms:8.5f} queued"
        theirs = f"{row.core_ms:6.3f} on a core: {row.times:6.1f} times"
        print(f"{kind:16} {ours}, {theirs}; {row.queued_ms / copy:5.1f} copies", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    if not rows:
        return 1
    mean, least = statistics.geometric_mean(row.times for row in rows), min(row.times for row in rows)
    most = max((row.queued_ms / copy for row in rows if row.kind in NEAR_A_COPY), default=0.0)
    print(f"geometric mean {mean:.1f} (aim {AIM}), the least {least:.1f} (aim {LEAST})")
    print(f"noise and light take {most:.1f} copies at most (aim {COPIES})")
    numbers = {"copy_ms": copy, "rows": [asdict(row) for row in rows]}
    return finish(given, numbers, missed=mean < AIM or least < LEAST or most > COPIES) or int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
