"""Cost of corrupting a frame, compared with other implementations: `python -m bench.corruptions`.

Both contenders are timed alternately on the same frames, on one thread. The table has a line for each corruption and
size; below it are the geometric mean, the missed targets and the corruptions that are slower than the peer. Codec
corruptions follow, compared with encoding and decoding alone.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import fnmatch
import itertools
import math
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import jostle
from bench.clips import Frames, frames_for
from bench.codecs import Codec, list_codecs
from bench.rivals import FPS, SEVERITY, WITHOUT_PEER, Rival, list_rivals
from bench.timing import (
    Clock,
    Work,
    compare,
    finish,
    limit_threads,
    make_parser,
    print_facts,
    time_call,
    time_median,
)

SIZES = ((224, 224), (256, 340))  # (height, width), as recognition benchmarks crop and store
LENGTH = 32
MEAN_TARGET = 15.0
CODEC_TARGET = 0.9
TURN_S = 0.3  # target time of the peer in one turn; slower peers get fewer frames


@dataclass(frozen=True)
class Peer:
    """Another implementation, ready to be timed on a clip.

    Attributes:
        frames: number of frames that one call of `work` processes.
        target: smallest ratio that meets the target.
        counted: whether the ratio is in the geometric mean.
    """

    name: str
    work: Work
    frames: int
    target: float
    counted: bool


@dataclass(frozen=True)
class CorruptionTiming:
    """Milliseconds a frame of a corruption at one size, ours and the peer's."""

    spec: str
    size: str
    ours_ms: float
    peer_ms: float | None = None
    ratio: float | None = None
    target: float | None = None
    who: str = "none"
    counted: bool = False
    floor_ms: float = 0.0

    @property
    def misses(self) -> bool:
        return self.ratio is not None and self.target is not None and self.ratio < self.target

    @property
    def is_a_copy(self) -> bool:
        """Whether the peer hardly takes longer than a copy of the frames, which limits the ratio to about 1."""
        return self.peer_ms is not None and self.peer_ms < 2 * self.floor_ms


@dataclass(frozen=True)
class Stopwatch:
    """Clock and number of repetitions of every measurement of a run."""

    repeats: int
    clock: Clock

    def measure(self, spec: str, frames: Frames, peer: Peer | None = None) -> CorruptionTiming:
        """Time a corruption of a clip by jostle, alternately with the peer if there is one."""
        ours = make_work(spec, frames)
        ours()  # the first call compiles and reads tables
        height, width = frames.shape[1:3]
        size, per_frame = f"{width}x{height}", 1e3 / len(frames)
        if peer is None:
            ours_s = time_median(ours, repeats=self.repeats, clock=self.clock)
            return CorruptionTiming(spec, size, ours_s * per_frame, floor_ms=self.measure_copy(frames))
        times = compare(ours, peer.work, repeats=self.repeats, clock=self.clock)
        return CorruptionTiming(
            spec,
            size,
            times.ours * per_frame,
            peer_ms=times.peer * 1e3 / peer.frames,
            ratio=times.ratio * len(frames) / peer.frames,
            target=peer.target,
            who=peer.name,
            counted=peer.counted,
            floor_ms=self.measure_copy(frames),
        )

    def measure_copy(self, frames: Frames) -> float:
        """Return the milliseconds a frame of copying a clip, a lower bound for every corruption."""
        out = np.empty_like(frames)
        np.copyto(out, frames)
        return time_median(lambda: np.copyto(out, frames), repeats=self.repeats, clock=self.clock) * 1e3 / len(frames)


def make_work(spec: str, frames: Frames) -> Work:
    """Return a function that corrupts every frame of a clip by `jostle.corrupt`."""
    # Profiles whose severity is a share of the frames would skip most of them.
    placement = "everywhere" if spec.startswith("thumos14-c") else None
    full = f"{spec}:{SEVERITY}"
    # Every call gets another video, so that the time includes random draws that are cached for each video.
    videos = map(str, itertools.count())
    return lambda: jostle.corrupt(frames, full, video_id=next(videos), placement=placement, fps=FPS)


def prepare_rival(rival: Rival, frames: Frames) -> Peer:
    """Return a rival ready to process a clip, or as many of its frames as fit in a turn."""
    if rival.on_clip is not None:
        clip_work = rival.on_clip(frames)
        clip_work()
        return Peer(rival.name, clip_work, len(frames), rival.target, rival.counted)
    assert rival.on_frame is not None
    corrupt = rival.on_frame(frames)
    corrupt(0)
    frame_s = max(time_call(lambda: corrupt(0)), 1e-6)
    n = min(len(frames), max(1, int(TURN_S / frame_s)))
    indices = np.linspace(0, len(frames) - 1, n).astype(int).tolist()

    def work() -> Frames:
        # Results are collected in a clip, which `jostle.corrupt` returns too.
        out = np.empty((n, *frames.shape[1:]), np.uint8)
        for i, t in enumerate(indices):
            out[i] = corrupt(t)
        return out

    return Peer(rival.name, work, n, rival.target, rival.counted)


def prepare_codec(codec: Codec, frames: Frames) -> Peer:
    """Return encoding and decoding of a clip, with the options of the corruption, ready to be timed."""
    work = codec.make_work(frames, FPS)
    work()
    return Peer(codec.peer_name, work, len(frames), CODEC_TARGET, counted=False)


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean, or NaN without ratios.

    >>> geometric_mean([2.0, 8.0])
    4.0
    """
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def format_table(rows: Sequence[CorruptionTiming], *, markdown: bool) -> str:
    """Return a table of rows as aligned text or as Markdown."""
    head = ("corruption", "size", "jostle ms", "peer ms", "ratio", "target", "peer")
    cells = [
        (
            row.spec,
            row.size,
            f"{row.ours_ms:.3f}",
            "-" if row.peer_ms is None else f"{row.peer_ms:.3f}",
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            "-" if row.target is None else f"{row.target:g}" + (" MISSED" if row.misses else ""),
            row.who,
        )
        for row in rows
    ]
    if markdown:
        lines = [head, tuple("---" for _ in head), *cells]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    return "\n".join(
        "  ".join(text.ljust(wide) for text, wide in zip(line, widths, strict=True)).rstrip() for line in [head, *cells]
    )


def summarize(rows: Sequence[CorruptionTiming]) -> list[str]:
    """Return the lines below the table: means, missed targets and corruptions slower than the peer."""
    counted = [row for row in rows if row.counted and row.ratio]
    profiles = dict.fromkeys(row.spec.split("/")[0] for row in counted)
    parts = {profile: [r for r in counted if r.spec.startswith(f"{profile}/")] for profile in profiles}
    missed = [row for row in rows if row.misses]
    slower = [row for row in counted if row.ratio and row.ratio < 1]
    return [
        f"geometric mean {_mean(counted):.1f}x over {len(counted)} rows (target {MEAN_TARGET:g}x): "
        + ", ".join(f"{profile} {_mean(part):.1f}x" for profile, part in parts.items()),
        f"without mere copies of frames: {_mean([row for row in counted if not row.is_a_copy]):.1f}x",
        "under target: " + (", ".join(f"{_describe(row)} of {row.target:g}" for row in missed) or "none"),
        "slower than the peer: " + (", ".join(map(_describe, slower)) or "none"),
    ]


def _mean(rows: Sequence[CorruptionTiming]) -> float:
    return geometric_mean([row.ratio for row in rows if row.ratio])


def _describe(row: CorruptionTiming) -> str:
    return f"{row.spec} {row.size} {row.ratio:.2f}x" + (" (a mere copy)" if row.is_a_copy else "")


def describe_environment(clock: Clock, repeats: int) -> dict[str, str]:
    """Return the machine, library versions and settings that the numbers depend on."""
    import cv2
    import numba

    return {
        "machine": f"{platform.machine()}, {_processor()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "opencv": cv2.__version__,
        "numba": numba.__version__,
        "how": f"{clock} time, one thread, median of {repeats}, severity {SEVERITY}, clip of {LENGTH} frames",
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _is_registered(spec: str) -> bool:
    profile, name = spec.split("/")
    return name in jostle.names("corruptions", profile=profile)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and summary, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", default="*", help="specs to measure, as a shell pattern: 'kinetics-c/*'")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--no-codecs", action="store_true")
    options = parser.parse_args(arguments)
    limit_threads()
    stopwatch = Stopwatch(options.repeats, options.clock)

    facts = describe_environment(options.clock, options.repeats)
    rows: list[CorruptionTiming] = []
    codec_rows: list[CorruptionTiming] = []
    floors: dict[str, float] = {}
    unregistered: set[str] = set()

    def is_selected(spec: str) -> bool:
        if not fnmatch.fnmatch(spec, options.only):
            return False
        if not _is_registered(spec):
            unregistered.add(spec)
            return False
        print(f"{spec} {width}x{height}", file=sys.stderr)
        return True

    for height, width in SIZES:
        frames, facts["frames"] = frames_for(LENGTH, height, width)
        floors[f"{width}x{height}"] = stopwatch.measure_copy(frames)
        for rival in list_rivals():
            if is_selected(rival.spec):
                rows.append(stopwatch.measure(rival.spec, frames, prepare_rival(rival, frames)))
        for spec in WITHOUT_PEER:
            if is_selected(spec):
                rows.append(stopwatch.measure(spec, frames))
        for codec in () if options.no_codecs else list_codecs(height, width, FPS):
            if is_selected(codec.spec):
                codec_rows.append(stopwatch.measure(codec.spec, frames, prepare_codec(codec, frames)))

    print_facts(facts)
    print("copy of a frame: " + ", ".join(f"{size} {ms:.4f} ms" for size, ms in floors.items()))
    print(f"\n{format_table(rows, markdown=options.markdown)}\n")
    print("\n".join(summarize(rows)))
    if codec_rows:
        print("\ncodec corruptions, compared with encoding and decoding alone with the same options")
        print(f"\n{format_table(codec_rows, markdown=options.markdown)}")
    if unregistered:
        print("not measured, because jostle does not register them: " + ", ".join(sorted(unregistered)))
    timings = rows + codec_rows
    record = {"facts": facts, "copy_floor_ms": floors, "rows": [asdict(row) for row in timings]}
    return finish(options, record, missed=any(row.misses for row in timings))


if __name__ == "__main__":
    sys.exit(main())
