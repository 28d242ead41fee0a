"""What `jostle corrupt` costs on files: `python -m bench.video`.

Two questions. How fast is a per-pixel corruption of a file on all cores, beside decoding and encoding it with
the same reader and writer and nothing in between, which is what severity 0 does? And how much memory does
half an hour of 640x480 take?

Every measurement is a child process, so that both sides of the first pay for starting Python, and so that the
second sees one program's memory and not this one's. The videos are generated once and kept.
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
# Per pixel, and about as easy to encode as the clean video: noise would be a measurement of x264 on noise.
SPEC, SEVERITY = "imagenet-c/brightness", 3
LEAST_SHARE = 0.70
MOST_MB = 500


@dataclass(frozen=True)
class Child:
    """What one finished child process took."""

    seconds: float
    peak_mb: float


def run_child(command: Sequence[str]) -> Child:
    """Run a command to its end; its peak memory is the kernel's count for that process.

    Raises:
        RuntimeError: the command failed.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    # Popen must not wait for a process that has been waited for.
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} gave {process.returncode}: {said.decode(errors='replace')[-2000:]}")
    return Child(time.perf_counter() - begun, used.ru_maxrss / 1024)


def make_video(path: Path, seconds: int) -> None:
    """Write a video of moving discs, the fastest way x264 has, unless it is there already."""
    if path.exists():
        return
    import av

    print(f"making {path}", file=sys.stderr)
    loop = drawn_frames(50, *SIZE)
    part = path.with_suffix(".part.mp4")
    with av.open(str(part), "w") as file:
        stream = file.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "28"})
        stream.height, stream.width = SIZE
        stream.pix_fmt = "yuv420p"
        # Colours are converted once: the pictures repeat, only their order does not.
        pictures = [av.VideoFrame.from_ndarray(f, format="rgb24").reformat(format="yuv420p") for f in loop]
        for t in range(seconds * FPS):
            picture = pictures[abs(t % 98 - 49)]
            picture.pts = t
            picture.time_base = Fraction(1, FPS)
            file.mux(stream.encode(picture))
        file.mux(stream.encode(None))
    part.rename(path)


def corrupt_command(source: Path, target: Path, severity: int = SEVERITY) -> list[str]:
    """The command line a user would type."""
    spec = f"{SPEC}:{severity}"
    return [sys.executable, "-m", "jostle", "corrupt", str(source), "-q", "-c", spec, "-o", str(target)]


def throughput(folder: Path, repeats: int) -> dict[str, float]:
    """Frames a second with and without the corruption, by turns, after one run of each to warm the caches."""
    source, target = folder / f"{SHORT_S}s.mp4", folder / "out.mp4"
    make_video(source, SHORT_S)
    taken: dict[str, list[float]] = {"corrupt": [], "copy": []}
    for turn in range(repeats + 1):
        for name, severity in (("corrupt", SEVERITY), ("copy", 0)):
            target.unlink(missing_ok=True)
            child = run_child(corrupt_command(source, target, severity))
            if turn:
                taken[name].append(child.seconds)
    frames = SHORT_S * FPS
    corrupt_fps, copy_fps = (frames / statistics.median(taken[name]) for name in ("corrupt", "copy"))
    return {"corrupt_fps": corrupt_fps, "copy_fps": copy_fps, "share": corrupt_fps / copy_fps}


def memory(folder: Path) -> dict[str, float]:
    """Peak memory and speed on the half-hour video."""
    source, target = folder / f"{LONG_S}s.mp4", folder / "out.mp4"
    make_video(source, LONG_S)
    target.unlink(missing_ok=True)
    child = run_child(corrupt_command(source, target))
    target.unlink(missing_ok=True)
    return {**asdict(child), "fps": LONG_S * FPS / child.seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 1 under --strict when a target is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-memory", action="store_true", help="leave out the half hour")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.gettempdir()) / "jostle-benchmarks"
    folder.mkdir(exist_ok=True)

    found = {"throughput": throughput(folder, options.repeats)}
    speed = found["throughput"]
    print(f"{SPEC}:{SEVERITY} on {SIZE[1]}x{SIZE[0]}, {os.cpu_count()} cores")
    print(
        f"corrupt {speed['corrupt_fps']:.1f} fps, decode and encode alone {speed['copy_fps']:.1f} fps: "
        f"{speed['share']:.0%} (target {LEAST_SHARE:.0%})"
    )
    failed = speed["share"] < LEAST_SHARE
    if not options.no_memory:
        found["memory"] = used = memory(folder)
        print(
            f"half an hour: peak {used['peak_mb']:.0f} MB (target under {MOST_MB}), {used['fps']:.1f} frames a second"
        )
        failed |= used["peak_mb"] >= MOST_MB
    return finish(options, found, missed=failed)


if __name__ == "__main__":
    sys.exit(main())
