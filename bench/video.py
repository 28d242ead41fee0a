"""Throughput and memory of `jostle corrupt` on files: `python -m bench.video`.

Two measurements: the speed of a per-pixel corruption of a file on all cores, relative to decoding and encoding it with
the same reader and writer and nothing in between (severity 0); and the peak memory for half an hour of 640x480.

Every measurement is a child process, so that both sides of the first include the start of Python, and so that the
second is the memory of one program. The videos are generated once and kept.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from bench.clips import drawn_frames
from bench.timing import finish, make_parser

SIZE = (480, 640)  # (height, width)
FPS = 25
SHORT_S, LONG_S = 60, 30 * 60
# Per pixel, and about as easy to encode as the clean video: noise would measure x264 on noise.
SPEC, SEVERITY = "imagenet-c/brightness", 3
MIN_SHARE = 0.70
MAX_MB = 500


@dataclass(frozen=True)
class Child:
    """Wall time and peak memory of a child process."""

    seconds: float
    peak_mb: float


def run_child(command: Sequence[str]) -> Child:
    """Run a command, and return its time and its peak memory as counted by the kernel.

    Raises:
        RuntimeError: if the command fails.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    messages = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    # Popen must not wait again for a process that has been waited for.
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}: {messages[-2000:]}")
    return Child(time.perf_counter() - start, usage.ru_maxrss / 1024)


def make_video(path: Path, seconds: int) -> None:
    """Write a video of moving discs with x264's fastest preset, unless it exists."""
    if path.exists():
        return
    import av

    print(f"writing {path}", file=sys.stderr)
    loop = drawn_frames(50, *SIZE)
    part = path.with_suffix(".part.mp4")
    with av.open(str(part), "w") as file:
        stream = file.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "28"})
        stream.height, stream.width = SIZE
        stream.pix_fmt = "yuv420p"
        # Pictures repeat, so colours are converted once.
        pictures = [av.VideoFrame.from_ndarray(f, format="rgb24").reformat(format="yuv420p") for f in loop]
        for t in range(seconds * FPS):
            picture = pictures[abs(t % 98 - 49)]
            picture.pts = t
            picture.time_base = Fraction(1, FPS)
            file.mux(stream.encode(picture))
        file.mux(stream.encode(None))
    part.rename(path)


def corrupt_command(source: Path, target: Path, severity: int = SEVERITY) -> list[str]:
    """Return the command line of `jostle corrupt`."""
    spec = f"{SPEC}:{severity}"
    return [sys.executable, "-m", "jostle", "corrupt", str(source), "-q", "-c", spec, "-o", str(target)]


def measure_throughput(folder: Path, repeats: int) -> dict[str, float]:
    """Return the frames a second with and without the corruption, alternately, after a run of each to warm up."""
    source, target = folder / f"{SHORT_S}s.mp4", folder / "out.mp4"
    make_video(source, SHORT_S)
    seconds: dict[int, list[float]] = {SEVERITY: [], 0: []}
    for turn in range(repeats + 1):
        for severity, times in seconds.items():
            target.unlink(missing_ok=True)
            child = run_child(corrupt_command(source, target, severity))
            if turn:
                times.append(child.seconds)
    corrupt_fps, copy_fps = (SHORT_S * FPS / statistics.median(times) for times in seconds.values())
    return {"corrupt_fps": corrupt_fps, "copy_fps": copy_fps, "share": corrupt_fps / copy_fps}


def measure_memory(folder: Path) -> dict[str, float]:
    """Return the peak memory and frames a second for the half-hour video."""
    source, target = folder / f"{LONG_S}s.mp4", folder / "out.mp4"
    make_video(source, LONG_S)
    target.unlink(missing_ok=True)
    child = run_child(corrupt_command(source, target))
    target.unlink(missing_ok=True)
    return {**asdict(child), "fps": LONG_S * FPS / child.seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print throughput and memory, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-memory", action="store_true", help="skip the half-hour video")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.gettempdir()) / "jostle-benchmarks"
    folder.mkdir(exist_ok=True)

    speed = measure_throughput(folder, options.repeats)
    numbers = {"throughput": speed}
    print(f"{SPEC}:{SEVERITY} on {SIZE[1]}x{SIZE[0]}, {os.cpu_count()} cores")
    print(
        f"corrupt {speed['corrupt_fps']:.1f} fps, decode and encode alone {speed['copy_fps']:.1f} fps: "
        f"{speed['share']:.0%} (target {MIN_SHARE:.0%})"
    )
    missed = speed["share"] < MIN_SHARE
    if not options.no_memory:
        numbers["memory"] = memory = measure_memory(folder)
        peak_mb = memory["peak_mb"]
        print(f"half an hour: peak {peak_mb:.0f} MB (target under {MAX_MB}), {memory['fps']:.1f} frames a second")
        missed |= peak_mb >= MAX_MB
    return finish(options, numbers, missed=missed)


if __name__ == "__main__":
    sys.exit(main())
