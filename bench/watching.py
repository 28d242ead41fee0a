"""Latency and memory of watching a live stream on one core: `python -m bench.watching [--frames 2160000]`.

Frames of 720p, one by one: the time from a frame to the verdicts that depend on it, which is the latency in addition to
the look-ahead, compared with FFmpeg's own detectors of black and frozen pictures. Then a long stream as fast as
possible: the growth of memory after its first tenth, and whether all verdicts are those of a pass over the same frames
in memory.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np

import jostle
from bench.clips import KINETICS, Frames, drawn_frames, real_frames
from bench.timing import Clock, finish, limit_threads, make_parser, time_call

P50_MS, P99_MS = 10.0, 40.0  # targets of the latency at 720p
GROWTH_MIB = 16.0  # target of the growth of memory after the first tenth of a long stream
LOOP = 500  # frames of the long stream before it repeats


def damaged_loop(height: int, width: int, count: int = LOOP) -> Frames:
    """Return frames of a clip, some of them black, white or repeated."""
    frames = real_frames(KINETICS, count, height, width)
    loop = np.array(drawn_frames(count, height, width) if frames is None else frames)
    loop[40:48], loop[60:63] = 0, 255
    loop[70:110] = loop[70]
    return loop


def measure_stream(frames: int, lookahead: int) -> dict[str, Any]:
    """Watch a long stream of small frames; return speed, growth of resident memory, and whether verdicts are right."""
    loop = damaged_loop(72, 96)
    watcher = jostle.Watcher(lookahead=lookahead, mend=True, fps=25)
    # The network takes medians over blocks of eight frames, so that its results repeat with every second loop.
    in_memory = (loop[number % LOOP] for number in range(4 * LOOP + lookahead))
    offline = [_judgement(verdict) for verdict in jostle.Watcher(lookahead=lookahead, fps=25).watch(in_memory)]

    def stream() -> Iterator[Any]:
        buffer = np.empty_like(loop[0])  # reused, as cameras do
        for number in range(frames):
            np.copyto(buffer, loop[number % LOOP])
            yield buffer

    memory, damaged, same, start = 0.0, 0, True, time.process_time()
    for verdict in watcher.watch(stream()):
        damaged += verdict.damaged
        if verdict.index < frames - lookahead:  # the last verdicts have no look-ahead
            index = verdict.index if verdict.index < 4 * LOOP else 2 * LOOP + verdict.index % (2 * LOOP)
            same &= _judgement(verdict) == offline[index]
        if verdict.index == frames // 10:
            memory = resident_mib()
    seconds = time.process_time() - start
    growth = resident_mib() - memory
    return {
        "frames": frames,
        "frames_a_second": frames / seconds,
        "grown_mib": growth,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "damaged": damaged,
        "same_as_offline": same,
    }


def _judgement(verdict: Any) -> tuple[bool, str, float]:
    return verdict.damaged, verdict.kind, verdict.confidence


def resident_mib() -> float:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def measure_latency(height: int, width: int, count: int, lookahead: int, clock: Clock) -> dict[str, float]:
    """Return the milliseconds of single frames: percentiles of ours, and the median of FFmpeg's filters."""
    loop = np.array(damaged_loop(height, width, 120))
    watcher, graph = jostle.Watcher(lookahead=lookahead, mend=True, fps=25), ffmpeg_detectors(height, width)
    ours, peer = [], []

    def filter_frame(picture: Any) -> None:
        graph.push(picture)
        graph.pull()

    for number in range(count):
        frame = loop[number % len(loop)]
        ours.append(time_call(partial(watcher.push, frame), clock))
        picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuv420p")
        picture.pts = number
        peer.append(time_call(partial(filter_frame, picture), clock))
    warm = slice(20, None)
    p50, p99 = (1000 * float(value) for value in np.percentile(ours[warm], (50, 99)))
    return {"p50_ms": p50, "p99_ms": p99, "ffmpeg_p50_ms": 1000 * float(np.median(peer[warm]))}


def ffmpeg_detectors(height: int, width: int) -> Any:
    """Return a filter graph of blackdetect, freezedetect and blockdetect on one thread."""
    graph = av.filter.Graph()
    graph.threads = 1
    source = graph.add_buffer(width=width, height=height, format="yuv420p", time_base="1/25")
    chain = [graph.add(name) for name in ("blackdetect", "freezedetect", "blockdetect", "buffersink")]
    for node, following in zip([source, *chain], chain, strict=False):
        node.link_to(following)
    graph.configure()
    return graph


def main(arguments: Sequence[str] | None = None) -> int:
    """Print latency and memory, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--frames", type=int, default=20_000, help="frames of the long stream")
    parser.add_argument("--lookahead", type=int, default=5)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--count", type=int, default=1000, help="number of frames of 720p")
    options = parser.parse_args(arguments)
    limit_threads()
    latency = measure_latency(720, 1280, options.count, options.lookahead, options.clock)
    ratio = latency["p50_ms"] / latency["ffmpeg_p50_ms"]
    print(
        f"1280 x 720, {options.count} frames, look-ahead {options.lookahead}: p50 {latency['p50_ms']:.1f} ms (target "
        f"{P50_MS:.0f}), p99 {latency['p99_ms']:.1f} ms (target {P99_MS:.0f}); {ratio:.2f} times blackdetect, "
        f"freezedetect and blockdetect of FFmpeg ({latency['ffmpeg_p50_ms']:.1f} ms)",
        flush=True,
    )
    stream = measure_stream(options.frames, options.lookahead)
    same = "equal to" if stream["same_as_offline"] else "DIFFERENT FROM"
    print(
        f"96 x 72, {stream['frames']} frames ({stream['frames'] / 25 / 3600:.1f} h at 25 fps): "
        f"{stream['frames_a_second']:.0f} a second; memory {stream['grown_mib']:+.1f} MiB after the first tenth "
        f"(target {GROWTH_MIB:.0f}), peak {stream['peak_mib']:.0f} MiB; verdicts {same} offline",
        flush=True,
    )
    missed = latency["p50_ms"] > P50_MS or latency["p99_ms"] > P99_MS or stream["grown_mib"] > GROWTH_MIB
    return finish(options, {"720p": latency, "stream": stream}, missed=missed or not stream["same_as_offline"])


if __name__ == "__main__":
    sys.exit(main())
