"""Watching a stream: detection and delay on damage by independent code, and false alarms on clean footage.

    python -m studies.watching WORK choose damage clean record --clips FOLDER ... --choosing FOLDER

`choose` sets the thresholds of FFmpeg's blockdetect and blurdetect, which have none, by the clean clips directly in the
folder that `--choosing` names. `damage` puts a stretch of every kind of `studies.world_damage` into `--count` of the
clips, each clip with its own seed, and has jostle open the damaged streams too; `clean` watches all of them, or
`--clean` of them, as they are. `record` puts the records beside this file. A clip is a video file or a folder of
pictures, anywhere below the folders that `--clips` names; clips to judge by must not be among those to choose by.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import av
import av.filter
import cv2
import numpy as np
import numpy.typing as npt

import jostle
import jostle.api
from jostle.io.video.live import DecodedFile
from jostle.io.video.location import locate
from jostle.io.video.raw_picture import RgbOfPictures
from jostle.mending import stream
from jostle.mending.inspection import Inspector
from jostle.mending.stream import VideoStream
from jostle.mending.stream_repair import JudgedPicture
from studies.harness import Grid, GridRun, Record, choose_evenly, list_runs, run_module, run_study
from studies.world_damage import (
    BEFORE,
    CODECS,
    FPS,
    KINDS,
    WORDS,
    Frames,
    Mask,
    damage_clip,
    damage_stream,
    is_visible,
    write_stream,
)

LOOKAHEADS = (0, 5, 15)
FILES = (".avi", ".mp4", ".mkv")
LONGEST = 110  # frames of a clip that is damaged
MERGED = 25  # clean frames between two alarms of one event
FREEZE = 0.2  # seconds after which freezedetect speaks; its default, 2, is longer than a stretch
PEER_QUANTILE = 0.995  # of clean frames, under the thresholds of blockdetect and blurdetect

# Damaged streams of `CODECS` that jostle decodes itself, so that it knows what the decoder reports.
OPENED = {f"{kind}, opened by jostle": kind for kind in CODECS}


@dataclass(frozen=True)
class WatchRun(GridRun):
    """One clip with one kind of damage, or clean."""

    clip: str
    kind: str
    seed: int


def main() -> None:
    """Run the steps that are arguments."""
    steps = {
        "choose": write_thresholds,
        "damage": Grid(damage_runs, measure_run, summarise),
        "clean": Grid(clean_runs, measure_run, summarise),
    }
    run_study(
        __doc__,
        "watching",
        steps,
        lambda arguments: {"paths": {path.name: path for path in sorted(find_clips(arguments.clips))}},
        clips=[Path()],
        choosing=Path,
        count=12,
        clean=10**6,
        seed=0,
    )


def write_thresholds(work: Path, choosing: Path) -> None:
    """Choose the thresholds of filters without one, and write them."""
    thresholds = json.dumps(choose_thresholds(choosing))
    (work / "peers.json").write_text(thresholds)
    print(thresholds, flush=True)


def damage_runs(paths: dict[str, Path], count: int, seed: int) -> list[WatchRun]:
    """Return the runs of every kind of damage, in some of the clips."""
    chosen = enumerate(choose_evenly(list(paths), count), seed)
    return [WatchRun(clip, kind, number) for number, clip in chosen for kind in (*KINDS, *OPENED)]


def clean_runs(paths: dict[str, Path], clean: int, seed: int) -> list[WatchRun]:
    """Return the runs of some of the clips as they are."""
    return list_runs(WatchRun, clip=choose_evenly(list(paths), clean), kind=["clean"], seed=[seed])


def find_clips(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the video files and the folders of pictures below some folders."""
    for folder in folders:
        for path in sorted([folder, *folder.rglob("*")]):
            if path.suffix in FILES or (path.is_dir() and any(path.glob("*.jpg"))):
                yield path


def read_clip(path: Path) -> tuple[Frames, float]:
    """Return the frames of a clip and their rate."""
    if path.is_dir():
        pictures = [cv2.imread(str(picture)) for picture in sorted(path.glob("*.jpg"))]
        return np.stack([picture[..., ::-1] for picture in pictures if picture is not None]), 25.0
    clip = jostle.read(path)
    return clip.frames, float(clip.fps)


@dataclass(frozen=True, eq=False)
class WatchedClip:
    """Frames of a clip to watch.

    Attributes:
        damaged: which of them are.
        concealed: which of them their decoder concealed in part, where jostle decoded them.
        file: that it decoded them from.
    """

    frames: Frames
    fps: float
    damaged: Mask
    concealed: Mask | None = None
    file: Path | None = None


@contextmanager
def open_clip(path: Path, kind: str, seed: int) -> Iterator[WatchedClip]:
    """Read a clip and damage it."""
    frames, fps = read_clip(path)
    if kind == "clean":
        yield WatchedClip(frames, fps, np.zeros(len(frames), np.bool_))
        return
    frames = frames[:LONGEST]
    if len(frames) < 2 * BEFORE + 5:
        raise ValueError(f"{path.name}: {len(frames)} frames are too few")
    if kind not in OPENED:
        frames, damaged = damage_clip(frames, kind, seed)
        yield WatchedClip(frames, fps, damaged)
        return
    with TemporaryDirectory() as folder:
        *streams, _ = damage_stream(frames, OPENED[kind], seed)
        files = [Path(folder, name) for name in ("sound.avi", "damaged.avi")]
        for file, packets in zip(files, streams, strict=True):
            write_stream(str(file), packets, OPENED[kind], frames.shape[1:3])
        sound, damaged_file = (decode_file(file) for file in files)
        yield WatchedClip(
            np.stack([frame for frame, _ in damaged_file.values()]),
            float(FPS),
            np.array([is_visible(frame, sound[number][0]) for number, (frame, _) in damaged_file.items()]),
            np.array([concealed for _, concealed in damaged_file.values()]),
            files[1],
        )


def decode_file(path: Path) -> dict[int, tuple[Frames, bool]]:
    """Decode a file as `jostle watch` does; return its frames by number, and whether each is concealed in part."""
    to_rgb = RgbOfPictures()
    with closing(DecodedFile(locate(path), lambda *report: None)) as pictures:
        return {round((one.time or 0) * FPS): (to_rgb(one), one.concealed) for one in pictures}


def measure_run(run: WatchRun, paths: dict[str, Path], work: Path) -> Record:
    """Watch one clip by every system."""
    thresholds = json.loads((work / "peers.json").read_text())
    with open_clip(paths[run.clip], run.kind, run.seed) as clip:
        return measure_clip(run, clip, thresholds)


def measure_clip(run: WatchRun, clip: WatchedClip, thresholds: dict[str, float]) -> Record:
    """Watch a clip that is damaged, or clean, by every system."""
    begin = time.monotonic()
    frames, fps, damaged = clip.frames, clip.fps, clip.damaged
    systems, confidences = {}, {}
    for name, system in SYSTEMS.items():
        alarms, kinds, sureness = system(clip, thresholds)
        systems[name] = score(alarms, kinds, damaged, WORDS.get(OPENED.get(run.kind, run.kind), ()))
        if sureness:
            right = Counter((round(value, 2), bool(alarm == truth)) for value, alarm, truth in
                            zip(sureness, alarms, damaged, strict=True))  # fmt: skip
            confidences[name] = sorted([value, truth, count] for (value, truth), count in right.items())
    record: Record = {"run": asdict(run)}
    sizes = {"frames": len(frames), "damaged": int(damaged.sum()), "length": round(len(frames) / fps, 2)}
    return record | sizes | {"systems": systems, "confidences": confidences, "seconds": round(time.monotonic() - begin)}


def score(alarms: Mask, kinds: Sequence[str], damaged: Mask, words: Sequence[str]) -> Record:
    """Count found and rightly named frames, the delay to the first one, and false events."""
    hits = alarms & damaged
    score: Record = {"events": count_events(alarms & ~damaged), "alarms": int((alarms & ~damaged).sum())}
    if damaged.any():
        first = int(np.flatnonzero(damaged)[0])
        score |= {"found": int(hits.sum()), "right": sum(kinds[t] in words for t in np.flatnonzero(hits).tolist())}
        score["delay"] = int(np.flatnonzero(hits)[0]) - first if hits.any() else None
        score["kinds"] = Counter(kinds[t] for t in np.flatnonzero(hits).tolist())
    else:
        score["kinds"] = Counter(kinds[t] for t in np.flatnonzero(alarms).tolist())
    return score


def count_events(alarms: Mask) -> int:
    """Count the alarms, those with few frames between them as one."""
    where = np.flatnonzero(alarms)
    return int(len(where) > 0) + int((np.diff(where) > MERGED).sum())


def poisson_interval(events: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of the mean of a Poisson count.

    >>> [round(value, 3) for value in poisson_interval(0)]
    [0.0, 3.689]
    """

    from scipy.special import gammaincinv  # type: ignore[import-untyped, unused-ignore]

    tail = (1 - level) / 2
    return (float(gammaincinv(events, tail)) if events else 0.0), float(gammaincinv(events + 1, 1 - tail))


Answers = tuple[Mask, list[str], list[float]]  # alarms, kinds, and confidences where there are any
System = Callable[[WatchedClip, dict[str, float]], Answers]


@cache
def load_network() -> Inspector:
    """Load the bundled inspector once."""
    return jostle.load_inspector()


def watch(clip: WatchedClip, _: dict[str, float], *, lookahead: int, use_network: bool) -> Answers:
    """Watch frames by the inspector of a stream."""
    frames, fps = clip.frames, clip.fps
    concealed = [False] * len(frames) if clip.concealed is None else clip.concealed.tolist()
    network = load_network() if use_network else None
    replay = ReplayedNetwork(causal_probabilities(frames)) if use_network else None
    with mock.patch.object(stream, "open_network", return_value=replay):
        watched = VideoStream(
            lookahead=lookahead, inspector=network or "jostle", fps=round(fps, 3), use_network=use_network
        )
        judged: list[JudgedPicture] = []
        for frame, one in zip(frames, concealed, strict=True):
            judged += watched.push(frame, concealed=one)
        verdicts = [one.verdict for one in judged + watched.flush()]
    assert [verdict.index for verdict in verdicts] == list(range(len(frames)))
    alarms = np.array([verdict.damaged for verdict in verdicts])
    return alarms, [verdict.kind for verdict in verdicts], [verdict.confidence for verdict in verdicts]


class ReplayedNetwork:
    """Causal network of a stream whose probabilities are known: they are the same for every look-ahead."""

    def __init__(self, probabilities: npt.NDArray[np.float64]) -> None:
        self._left = iter(probabilities.tolist())

    def push(self, descriptor: npt.NDArray[np.uint8]) -> float:
        """Return the probability of the next frame."""
        return next(self._left)


def causal_probabilities(frames: Frames) -> npt.NDArray[np.float64]:
    """Return the causal network's probabilities of damage, those of the last clip again without computing them."""
    if _last.get("frames") is not frames:
        _last.update(frames=frames, probabilities=np.array(list(load_network().inspect(frames, causal=True))))
    probabilities: npt.NDArray[np.float64] = _last["probabilities"]
    return probabilities


_last: dict[str, Any] = {}


def inspect(clip: WatchedClip, _: dict[str, float], *, causal: bool) -> Answers:
    """Inspect frames by a network of the inspector alone, which has a rule for frames of one colour beside it."""
    inspector, frames = load_network(), clip.frames
    probabilities = causal_probabilities(frames) if causal else np.array(list(inspector.inspect(frames, causal=False)))
    return probabilities >= inspector.threshold(causal=causal), ["unknown"] * len(frames), []


def inspect_file(clip: WatchedClip, _: dict[str, float]) -> Answers:
    """Inspect frames by rules and the network that looks at both sides, as `jostle inspect` and mending do."""
    source = jostle.Clip.at_rate(clip.frames, round(clip.fps, 3)) if clip.file is None else clip.file
    inspection = jostle.api.inspection(source, inspector=load_network())
    return inspection.damaged, inspection.kinds.tolist(), []


def filter_frames(frames: Frames, fps: float, name: str, options: str = "") -> Iterator[dict[str, str]]:
    """Yield the metadata that a filter of FFmpeg gives each frame."""
    graph = av.filter.Graph()
    height, width = frames.shape[1:3]
    source = graph.add_buffer(width=width, height=height, format="yuv420p", time_base=_tick(fps))
    links = [source, graph.add(name, options or None), graph.add("buffersink")]
    for one, other in itertools.pairwise(links):
        one.link_to(other)
    graph.configure()
    for number, frame in enumerate(frames):
        picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuv420p")
        picture.pts, picture.time_base = number, _tick(fps)
        graph.push(picture)
        yield dict(graph.pull().metadata)


def _tick(fps: float) -> Any:
    from fractions import Fraction

    return 1 / Fraction(fps).limit_denominator(1001)


def blackdetect(clip: WatchedClip, _: dict[str, float]) -> Answers:
    """Detect black frames; `black_start` comes with the first of them, whatever the shortest duration."""
    alarms, black = np.zeros(len(clip.frames), np.bool_), False
    for t, data in enumerate(filter_frames(clip.frames, clip.fps, "blackdetect", "d=0")):
        black = (black or "lavfi.black_start" in data) and "lavfi.black_end" not in data
        alarms[t] = black
    return alarms, ["black"] * len(clip.frames), []


def freezedetect(clip: WatchedClip, _: dict[str, float]) -> Answers:
    """Detect frozen frames; a freeze is announced late and dated back, which counts as with a long look-ahead."""
    alarms, frozen = np.zeros(len(clip.frames), np.bool_), False
    for t, data in enumerate(filter_frames(clip.frames, clip.fps, "freezedetect", f"d={FREEZE}")):
        begin = data.get("lavfi.freezedetect.freeze_start")
        if begin is not None:
            alarms[round(float(begin) * clip.fps) + 1 : t + 1] = frozen = True
        if "lavfi.freezedetect.freeze_end" in data:
            frozen = False
        alarms[t] |= frozen
    return alarms, ["frozen"] * len(clip.frames), []


def block_values(frames: Frames, fps: float) -> npt.NDArray[np.float64]:
    """Return blockdetect's measure of each frame; a graph for each, since the filter carries sums over."""
    values = [next(filter_frames(frame[None], fps, "blockdetect")).get("lavfi.block", "0") for frame in frames]
    return np.array([float(value) for value in values])


def blur_values(frames: Frames, fps: float) -> npt.NDArray[np.float64]:
    """Return blurdetect's measure of each frame; infinite where it finds no edges."""
    values = [float(data.get("lavfi.blur", "nan")) for data in filter_frames(frames, fps, "blurdetect")]
    return np.nan_to_num(np.array(values), nan=np.inf)


def blockdetect(clip: WatchedClip, thresholds: dict[str, float]) -> Answers:
    """Detect blocks by the threshold that was chosen."""
    return block_values(clip.frames, clip.fps) > thresholds["blockdetect"], ["blocky"] * len(clip.frames), []


def blurdetect(clip: WatchedClip, thresholds: dict[str, float]) -> Answers:
    """Detect blur by the threshold that was chosen."""
    return blur_values(clip.frames, clip.fps) > thresholds["blurdetect"], ["blurred"] * len(clip.frames), []


def choose_thresholds(folder: Path) -> dict[str, float]:
    """Return thresholds that few clean frames exceed, of clips directly in a folder."""
    clips = [read_clip(path) for path in sorted(folder.iterdir()) if path.suffix in FILES]
    chosen = {}
    for name, measure in (("blockdetect", block_values), ("blurdetect", blur_values)):
        values = np.concatenate([measure(frames[:LONGEST], fps) for frames, fps in clips])
        chosen[name] = float(np.quantile(values[np.isfinite(values)], PEER_QUANTILE))
    return chosen


SYSTEMS: dict[str, System] = {
    "rules 5": partial(watch, lookahead=5, use_network=False),
    **{f"stream {n}": partial(watch, lookahead=n, use_network=True) for n in LOOKAHEADS},
    "file": inspect_file,
    "both sides": partial(inspect, causal=False),
    "causal": partial(inspect, causal=True),
    "blackdetect": blackdetect,
    "freezedetect": freezedetect,
    "blockdetect": blockdetect,
    "blurdetect": blurdetect,
}


def summarise(record: Record) -> str:
    """Return what is printed of a record."""
    frames = {name: one.get("found", one["events"]) for name, one in record["systems"].items()}
    return f"{record['damaged']} of {record['frames']}: {frames}"


if __name__ == "__main__":
    run_module("studies.watching")
