"""Cost of corrupting on a GPU, compared with one core: `python -m bench.gpu_corruptions`.

The frame-level corruptions of ImageNet-C at severity 3 on clips in GPU memory, 224 x 224, compared with the compiled
kernels on one thread and with a copy of the frames on the GPU. Bytes of both sides are compared first. Each call has
another seed, as epochs have, and waits for the GPU, so that it includes the work of the CPU. Calls that are queued
without waiting, as in a training loop, are timed as well; they are compared with queued copies.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import itertools
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

import jostle
from bench.clips import drawn_frames
from bench.timing import (
    Work,
    finish,
    limit_threads,
    make_blocking,
    make_parser,
    synchronize,
    time_call,
    time_median,
)
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.corruptions.gpu.batch import gpu_kernel

CLIPS, FRAMES, SIDE, SEVERITY = 32, 16, 224, 3
MEAN_TARGET, MIN_TARGET = 20, 5  # speed relative to one core: the geometric mean, and each
NEARLY_COPIES = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "brightness", "contrast", "saturate")
MAX_COPIES = 2  # target of their time, in copies


@dataclass(frozen=True)
class GpuTiming:
    """Milliseconds a frame on the GPU, blocking and queued, and on one core, and the ratio of core to blocking."""

    kind: str
    gpu_ms: float
    queued_ms: float
    core_ms: float
    times: float


def time_blocking(work: Work, turns: int) -> float:
    """Return the median seconds of a call that waits for the GPU, after two calls to warm up."""
    blocking = make_blocking(work, "cuda")
    for _ in range(2):
        blocking()
    return time_median(blocking, repeats=turns, clock="wall")


def time_queued(work: Work, turns: int) -> float:
    """Return the mean seconds of calls of which only the last waits for the GPU."""

    def queue() -> None:
        for _ in range(10 * turns):
            work()

    synchronize("cuda")
    return time_call(make_blocking(queue, "cuda"), "wall") / (10 * turns)


def measure(kind: str, clips: torch.Tensor, names: list[str], turns: int) -> GpuTiming:
    """Time a corruption on the GPU and on one core.

    Raises:
        AssertionError: if the bytes differ.
    """
    spec = f"imagenet-c/{kind}:{SEVERITY}"
    few = [clip.cpu().numpy() for clip in clips[:2]]

    def corrupt_on_core() -> list[np.ndarray]:
        return [jostle.corrupt(clip, spec, video_id=name) for clip, name in zip(few, names, strict=False)]

    corrupted = jostle.corrupt(clips, spec, video_id=names)[:2].cpu().numpy()
    assert np.array_equal(corrupted, np.stack(corrupt_on_core())), f"{spec}: bytes differ from those of the CPU"
    count = clips.shape[0] * clips.shape[1]
    seeds = itertools.count()

    def corrupt_on_gpu() -> torch.Tensor:
        return jostle.corrupt(clips, spec, video_id=names, seed=next(seeds))

    gpu, queued = time_blocking(corrupt_on_gpu, turns) / count, time_queued(corrupt_on_gpu, turns) / count
    core = time_median(corrupt_on_core, repeats=3, clock="cpu") / (len(few) * clips.shape[1])
    return GpuTiming(kind, 1e3 * gpu, 1e3 * queued, 1e3 * core, core / gpu)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the timings of each corruption, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--clips", type=int, default=CLIPS)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        parser.error("this benchmark needs a GPU, and torch finds none")
    limit_threads()
    frames = drawn_frames(FRAMES, SIDE, SIDE)
    clips = torch.from_numpy(np.stack([np.roll(frames, number, 1) for number in range(options.clips)])).cuda()
    names = [f"clip {number}" for number in range(options.clips)]
    copy = 1e3 * time_queued(clips.clone, options.turns) / (options.clips * FRAMES)
    device = torch.cuda.get_device_name()
    print(f"{device}, {options.clips} clips of {FRAMES} frames; a copy takes {copy:.5f} ms a frame")
    rows, failed = [], []
    for kind in profiles["imagenet-c"].entries:
        if gpu_kernel(Spec.parse(f"imagenet-c/{kind}")) is None:
            print(f"{kind:20} runs on the CPU")
            continue
        try:
            row = measure(kind, clips, names, options.turns)
        except Exception as error:  # a failure does not stop the others
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
    most = max((row.queued_ms / copy for row in rows if row.kind in NEARLY_COPIES), default=0.0)
    print(f"geometric mean {mean:.1f} (target {MEAN_TARGET}), minimum {least:.1f} (target {MIN_TARGET})")
    print(f"noise and light take at most {most:.1f} copies (target {MAX_COPIES})")
    numbers = {"copy_ms": copy, "rows": [asdict(row) for row in rows]}
    missed = mean < MEAN_TARGET or least < MIN_TARGET or most > MAX_COPIES
    return finish(options, numbers, missed=missed) or int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
