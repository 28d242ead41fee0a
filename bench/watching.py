"""What it costs to watch a live stream, on one core: `python -m bench.watching [--frames 2160000]`.

A long stream at high speed: the memory at its tenth and at its end, and whether its verdicts are those of one pass over
the same frames in memory, to its end. Then 720p frames one by one: the time from a frame to the verdicts that it makes
known, which is the delay beyond the look-ahead, beside FFmpeg's own detectors of black and frozen pictures on the same
frames.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch

import jostle
from bench.clips import KINETICS, Frames, drawn_frames, real_frames
from bench.timing import Clock, finish, hold_to_one_thread, make_parser, reader

P50_MS, P99_MS = 10.0, 40.0  # targets of the delay at 720p
GROWTH_MIB = 16.0  # target of the memory after the first tenth of a long stream
LOOP = 500  # frames of the long stream before it repeats


def damaged_loop(height: int, width: int, count: int = LOOP) -> Frames:
    """Frames of a clip, some of them black, white, or repeated."""
    frames = real_frames(KINETICS, count, height, width)
    loop = np.array(drawn_frames(count, height, width) if frames is None else frames)
    loop[40:48], loop[60:63] = 0, 255
    loop[70:110] = loop[70]
    return loop


def long_stream(frames: int, lookahead: int) -> dict[str, Any]:
    """Watch a small stream as fast as possible; memory is what the process holds, in MiB."""
    loop = damaged_loop(72, 96)
    watcher = jostle.Watcher(lookahead=lookahead, mend=True, fps=25)
    # The network's medians are of blocks of eight frames, so that the loop is the same to it every second time.
    in_memory = (loop[number % LOOP] for number in range(4 * LOOP + lookahead))
    offline = [_judgement(one) for one in jostle.Watcher(lookahead=lookahead, fps=25).watch(in_memory)]

    def stream() -> Iterator[Any]:
        buffer = np.empty_like(loop[0])  # as a camera does it
        for number in range(frames):
            np.copyto(buffer, loop[number % LOOP])
            yield buffer

    memory, damaged, same, begun = 0.0, 0, True, time.process_time()
    for verdict in watcher.watch(stream()):
        damaged += verdict.damaged
        if verdict.index < frames - lookahead:  # what lies ahead of the last ones is missing
            known = verdict.index if verdict.index < 4 * LOOP else 2 * LOOP + verdict.index % (2 * LOOP)
            same &= _judgement(verdict) == offline[known]
        if verdict.index == frames // 10:
            memory = resident_mib()
    taken = time.process_time() - begun
    grown = resident_mib() - memory
    return {
        "frames": frames,
        "frames_a_second": frames / taken,
        "grown_mib": grown,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "damaged": damaged,
        "same_as_offline": same,
    }


def _judgement(verdict: Any) -> tuple[bool, str, float]:
    return verdict.damaged, verdict.kind, verdict.confidence


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def delays(height: int, width: int, count: int, lookahead: int, clock: Clock) -> dict[str, float]:
    """Milliseconds of single frames: ours, and those of FFmpeg's filters."""
    now = reader(clock)
    loop = np.array(damaged_loop(height, width, 120))
    watcher, graph = jostle.Watcher(lookahead=lookahead, mend=True, fps=25), detectors_of_ffmpeg(height, width)
    ours, peer = [], []
    for number in range(count):
        frame = loop[number % len(loop)]
        begun = now()
        watcher.push(frame)
        ours.append(now() - begun)
        theirs = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuv420p")
        theirs.pts = number
        begun = now()
        graph.push(theirs)
        graph.pull()
        peer.append(now() - begun)
    warm = slice(20, None)
    p50, p99 = (1000 * float(value) for value in np.percentile(ours[warm], (50, 99)))
    return {"p50_ms": p50, "p99_ms": p99, "ffmpeg_p50_ms": 1000 * float(np.median(peer[warm]))}


def detectors_of_ffmpeg(height: int, width: int) -> Any:
    """A graph of blackdetect, freezedetect and blockdetect on one thread."""
    graph = av.filter.Graph()
    graph.threads = 1
    source = graph.add_buffer(width=width, height=height, format="yuv420p", time_base="1/25")
    chain = [graph.add(name) for name in ("blackdetect", "freezedetect", "blockdetect", "buffersink")]
    for one, other in zip([source, *chain], chain, strict=False):
        one.link_to(other)
    graph.configure()
    return graph


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--frames", type=int, default=20_000, help="of the long stream")
    parser.add_argument("--lookahead", type=int, default=5)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--count", type=int, default=1000, help="of the frames of 720p")
    given = parser.parse_args(arguments)
    hold_to_one_thread()
    torch.set_num_threads(1)
    single = delays(720, 1280, given.count, given.lookahead, given.clock)
    ratio = single["p50_ms"] / single["ffmpeg_p50_ms"]
    print(
        f"1280 x 720, {given.count} frames, look-ahead {given.lookahead}: p50 {single['p50_ms']:.1f} ms (target "
        f"{P50_MS:.0f}), p99 {single['p99_ms']:.1f} ms (target {P99_MS:.0f}); {ratio:.2f} times black-, freeze- and "
        f"blockdetect of FFmpeg ({single['ffmpeg_p50_ms']:.1f} ms)",
        flush=True,
    )
    stream = long_stream(given.frames, given.lookahead)
    same = "the same as" if stream["same_as_offline"] else "OTHER THAN"
    print(
        f"96 x 72, {stream['frames']} frames ({stream['frames'] / 25 / 3600:.1f} h at 25 fps): "
        f"{stream['frames_a_second']:.0f} a second; memory {stream['grown_mib']:+.1f} MiB after the first tenth "
        f"(target {GROWTH_MIB:.0f}), peak {stream['peak_mib']:.0f} MiB; verdicts {same} offline",
        flush=True,
    )
    missed = single["p50_ms"] > P50_MS or single["p99_ms"] > P99_MS or stream["grown_mib"] > GROWTH_MIB
    return finish(given, {"720p": single, "stream": stream}, missed=missed or not stream["same_as_offline"])


if __name__ == "__main__":
    sys.exit(main())
