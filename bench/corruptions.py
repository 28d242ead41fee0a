"""What a corrupted frame costs, beside what it costs elsewhere: `python -m bench.corruptions`.

One run, one thread, both contenders by turns on the same frames. Prints one line a corruption and size, then
the geometric mean, what missed its target and what is slower than its rival; the codec kinds follow beside
the bare encoder.
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
from bench.codecs import Codec, codecs
from bench.rivals import ALONE, FPS, SEVERITY, Rival, rivals
from bench.timing import Clock, Work, by_turns, finish, hold_to_one_thread, make_parser, seconds

SIZES = ((224, 224), (256, 340))  # (height, width), as recognition benchmarks crop and store
LENGTH = 32
MEAN_TARGET = 15.0
CODEC_TARGET = 0.9
TURN_S = 0.3  # of the rival's time in one turn; slower rivals are given fewer frames


@dataclass(frozen=True)
class Opponent:
    """Work that is measured by turns with ours, and what is expected of the ratio.

    Attributes:
        frames: how many frames one call of `work` does.
    """

    who: str
    work: Work
    frames: int
    target: float
    counted: bool


@dataclass(frozen=True)
class Row:
    """One corruption at one size, in milliseconds a frame."""

    spec: str
    size: str
    ours_ms: float
    peer_ms: float | None = None
    ratio: float | None = None
    target: float | None = None
    who: str = "nobody"
    counted: bool = False
    floor_ms: float = 0.0

    @property
    def misses(self) -> bool:
        return self.ratio is not None and self.target is not None and self.ratio < self.target

    @property
    def is_a_copy(self) -> bool:
        """Whether the peer takes hardly longer than writing the frames: a ratio near 1 is then all there is."""
        return self.peer_ms is not None and self.peer_ms < 2 * self.floor_ms


@dataclass(frozen=True)
class Bench:
    """How everything in one run is measured."""

    repeats: int
    clock: Clock

    def row(self, spec: str, frames: Frames, opponent: Opponent | None = None) -> Row:
        """Our whole call on the clip, against the opponent's."""
        ours = our_work(spec, frames)
        ours()  # the first call compiles and reads tables
        work = None if opponent is None else opponent.work
        pair = by_turns(ours, work, repeats=self.repeats, clock=self.clock)
        height, width = frames.shape[1:3]
        size, ours_ms = f"{width}x{height}", pair.ours * 1e3 / len(frames)
        floor_ms = self.copy_floor(frames)
        if opponent is None or pair.peer is None or pair.ratio is None:
            return Row(spec, size, ours_ms, floor_ms=floor_ms)
        return Row(
            spec,
            size,
            ours_ms,
            peer_ms=pair.peer * 1e3 / opponent.frames,
            ratio=pair.ratio * len(frames) / opponent.frames,
            target=opponent.target,
            who=opponent.who,
            counted=opponent.counted,
            floor_ms=floor_ms,
        )

    def copy_floor(self, frames: Frames) -> float:
        """Milliseconds a frame for writing the clip elsewhere: what no corruption can undercut."""
        out = np.empty_like(frames)
        np.copyto(out, frames)
        pair = by_turns(lambda: np.copyto(out, frames), None, repeats=self.repeats, clock=self.clock)
        return pair.ours * 1e3 / len(frames)


def our_work(spec: str, frames: Frames) -> Work:
    """One call of `jostle.corrupt` that strikes every frame of the clip."""
    # A profile whose severity is a share of the frames would leave most of them alone: ask for all.
    placement = "everywhere" if spec.startswith("thumos14-c") else None
    full = f"{spec}:{SEVERITY}"
    # Every call is another video, so that what is drawn once for a clip is drawn within the measured time.
    videos = map(str, itertools.count())
    return lambda: jostle.corrupt(frames, full, video_id=next(videos), placement=placement, fps=FPS)


def rival_as_opponent(rival: Rival, frames: Frames) -> Opponent:
    """The rival at work on the clip, or on as many of its frames as fit a turn."""
    if rival.on_clip is not None:
        work = rival.on_clip(frames)
        work()
        return Opponent(rival.who, work, len(frames), rival.target, rival.counted)
    assert rival.on_frame is not None
    strike = rival.on_frame(frames)
    strike(0)
    once = max(seconds(lambda: strike(0)), 1e-6)
    n = min(len(frames), max(1, int(TURN_S / once)))
    picks = np.linspace(0, len(frames) - 1, n).astype(int).tolist()

    def work() -> Frames:
        # As a user of a function for single frames would get a clip out of it, and as ours gives one.
        out = np.empty((n, *frames.shape[1:]), np.uint8)
        for i, t in enumerate(picks):
            out[i] = strike(t)
        return out

    return Opponent(rival.who, work, n, rival.target, rival.counted)


def codec_as_opponent(codec: Codec, frames: Frames) -> Opponent:
    """The encoder and decoder alone, with the options of the corruption."""
    work = codec.bare(frames, FPS)
    work()
    return Opponent(codec.who, work, len(frames), CODEC_TARGET, counted=False)


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean of ratios that does not care which side is called one.

    >>> geometric_mean([2.0, 8.0])
    4.0
    """
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def table(rows: Sequence[Row], *, markdown: bool) -> str:
    """Rows as aligned text or as Markdown."""
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


def summary(rows: Sequence[Row]) -> list[str]:
    """The sentences under the table."""
    counted = [row for row in rows if row.counted and row.ratio]
    profiles = dict.fromkeys(row.spec.split("/")[0] for row in counted)
    parts = {profile: [r for r in counted if r.spec.startswith(f"{profile}/")] for profile in profiles}
    missed = [row for row in rows if row.misses]
    slower = [row for row in counted if row.ratio and row.ratio < 1]
    return [
        f"geometric mean {_mean(counted):.1f}x over {len(counted)} rows (target {MEAN_TARGET:g}x): "
        + ", ".join(f"{profile} {_mean(part):.1f}x" for profile, part in parts.items()),
        f"of what does more than copy frames: {_mean([row for row in counted if not row.is_a_copy]):.1f}x",
        "under target: " + (", ".join(f"{_named(row)} of {row.target:g}" for row in missed) or "none"),
        "slower than the peer: " + (", ".join(map(_named, slower)) or "none"),
    ]


def _mean(rows: Sequence[Row]) -> float:
    return geometric_mean([row.ratio for row in rows if row.ratio])


def _named(row: Row) -> str:
    return f"{row.spec} {row.size} {row.ratio:.2f}x" + (" (a mere copy)" if row.is_a_copy else "")


def facts(clock: Clock, repeats: int) -> dict[str, str]:
    """What the numbers depend on besides the code."""
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


def _known(spec: str) -> bool:
    profile, name = spec.split("/")
    return name in jostle.names("corruptions", profile=profile)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit code whether every target was met."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", default="*", help="specs to measure, as a shell pattern: 'kinetics-c/*'")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--no-codecs", action="store_true")
    options = parser.parse_args(arguments)
    hold_to_one_thread()
    bench = Bench(options.repeats, options.clock)

    about = facts(options.clock, options.repeats)
    rows: list[Row] = []
    codec_rows: list[Row] = []
    floors: dict[str, float] = {}
    absent: set[str] = set()

    def wanted(spec: str) -> bool:
        if not fnmatch.fnmatch(spec, options.only):
            return False
        if not _known(spec):
            absent.add(spec)
            return False
        print(f"{spec} {width}x{height}", file=sys.stderr)
        return True

    for height, width in SIZES:
        frames, about["frames"] = frames_for(LENGTH, height, width)
        floors[f"{width}x{height}"] = bench.copy_floor(frames)
        for rival in rivals():
            if wanted(rival.spec):
                rows.append(bench.row(rival.spec, frames, rival_as_opponent(rival, frames)))
        for spec in ALONE:
            if wanted(spec):
                rows.append(bench.row(spec, frames))
        for codec in () if options.no_codecs else codecs(height, width, FPS):
            if wanted(codec.spec):
                codec_rows.append(bench.row(codec.spec, frames, codec_as_opponent(codec, frames)))

    for name, value in about.items():
        print(f"{name}: {value}")
    print("copy floor: " + ", ".join(f"{size} {ms:.4f} ms" for size, ms in floors.items()))
    print(f"\n{table(rows, markdown=options.markdown)}\n")
    print("\n".join(summary(rows)))
    if codec_rows:
        print("\ncodec kinds beside the encoder and decoder alone, same options")
        print(f"\n{table(codec_rows, markdown=options.markdown)}")
    if absent:
        print("not measured, jostle does not list them: " + ", ".join(sorted(absent)))
    every = rows + codec_rows
    record = {"facts": about, "copy_floor_ms": floors, "rows": [asdict(row) for row in every]}
    return finish(options, record, missed=any(row.misses for row in every))


if __name__ == "__main__":
    sys.exit(main())
