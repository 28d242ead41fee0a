"""The verb on live streams: watch."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jostle.core.interruption import Stopped
from jostle.core.options import option, takes
from jostle.core.results import Result
from jostle.core.types.clip import check_rate
from jostle.errors import BadValue
from jostle.io.files.atomic import refuse_existing, refuse_output_in
from jostle.mending.options import WatchOptions
from jostle.mending.verdicts import UNDECODABLE

if TYPE_CHECKING:
    from jostle.io.video.live_output import PictureOutput
    from jostle.io.video.raw_picture import LivePicture
    from jostle.mending.stream import VideoStream
    from jostle.mending.stream_repair import JudgedPicture
    from jostle.reporting.prometheus import PrometheusMetric

# Upper ends in seconds of the classes of the time that one frame takes.
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.1, 0.25, 1.0)
_NOTHING = np.zeros(0, np.uint8)  # in place of pictures where there is no output
STOP_S = 0.25  # for what a reader takes after a signal
End = Literal["end", "broken", "damaged", "stopped", "reader_gone"]


@dataclass
class WatchState(Result):
    """State of a stream that is being watched, and its summary at the end.

    Attributes:
        source: without user, password and query.
        frames: of the stream so far, judged or `undecodable`; `damaged` of them.
        kinds: damaged frames of each kind, also those that are `undecodable`; `events` the runs of each.
        kind: of the damage that goes on, None while the stream is clean.
        confidence: of the last verdict.
        time: of the last verdict in seconds.
        lost: whether the stream is lost: damaged for longer than a frame may be held.
        connected: whether the source delivers.
        concealed: frames that show what the decoder concealed.
        mended: frames that were replaced by others.
        dropped: frames that were left out for a slow reader.
        resyncs: times that the next frame had to be searched for.
        reconnects: times that an address was connected to again.
        durations: counts of the seconds that a frame took, by `BUCKETS` and above; `busy_s` their sum.
        updated: Unix time of the last verdict.
        wall_s: seconds from begin to end.
        ended: `end`, `broken` (before the source's own end), `damaged` (for `until_damaged`), `stopped` (by a signal),
            `reader_gone` (of the output).
        signal: number of the signal for `stopped`.
    """

    json_keys = (
        *("source", "frames", "damaged", "share_damaged", "kinds", "events", "seconds", "wall_seconds", "lost"),
        *("concealed", "mended", "dropped", "resyncs", "reconnects", "ended"),
    )

    source: str = ""
    frames: int = 0
    damaged: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    kind: str | None = None
    confidence: float | None = None
    time: float = 0.0
    lost: bool = False
    connected: bool = True
    concealed: int = 0
    mended: int = 0
    dropped: int = 0
    resyncs: int = 0
    reconnects: int = 0
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    busy_s: float = 0.0
    updated: float = 0.0
    wall_s: float = 0.0
    ended: End | None = None
    signal: int | None = None

    @property
    def share_damaged(self) -> float | None:
        """Share of frames that are damaged; None without a frame."""
        return self.damaged / self.frames if self.frames else None

    @property
    def seconds(self) -> float:
        """Time of the last frame."""
        return self.time

    @property
    def wall_seconds(self) -> float:
        """Seconds from begin to end."""
        return self.wall_s

    def notes(self) -> tuple[str, ...]:
        """Return how much is damaged, and what became of it."""
        count = sum(self.events.values())
        kinds = ", ".join(f"{kind} {frames}" for kind, frames in self.kinds.most_common())
        found = f"{self.damaged} of {self.frames} frames damaged in {count} stretch{'es' if count != 1 else ''}"
        parts = [f"{found} ({kinds})" if kinds else f"none of {self.frames} frames damaged"]
        if self.concealed:
            parts.append(f"{self.concealed} show what the decoder concealed")
        if self.mended:
            parts.append(f"{self.mended} replaced")
        if self.dropped:
            parts.append(f"{self.dropped} dropped for a slow reader")
        if self.ended == "stopped":
            parts.append("stopped")
        return ("; ".join(parts),)


@dataclass(frozen=True, kw_only=True, eq=False)
class WatchConfig(WatchOptions):
    """Options of watching a stream, as requested."""

    on_event: Callable[[dict[str, Any]], None] | None = field(
        default=None, metadata=option("Called with every event, plain values.", python=True)
    )
    on_frame: Callable[[WatchState], None] | None = field(
        default=None, metadata=option("Called after every verdict.", python=True)
    )
    state: WatchState | None = field(
        default=None, metadata=option("Filled on the way, where another thread wants to read it.", python=True)
    )


@takes(WatchConfig)
def watch(config: WatchConfig) -> WatchState:
    """Watch a stream until it ends, for damage; with `out` hand it on, mended or as it came."""
    from jostle.io.video.facts import require_pyav

    require_pyav("watching a stream")
    from jostle.io.video.live import open_live
    from jostle.mending.loading import stream_inspector
    from jostle.mending.stream import VideoStream

    source, out, how, inspector = config.source, config.out, config.how, config.inspector
    if config.mend and out is None:
        raise BadValue("mending a stream needs a place for it: -o - for the next program, or -o FILE.y4m")
    if config.drop and out is None:
        raise BadValue("--drop is for frames that a slow reader of -o does not take; there is no -o")
    rate = None if config.fps is None else check_rate(config.fps)
    state = WatchState() if config.state is None else config.state
    watching = _Watch(state, config.on_event, config.on_frame, config.until_damaged)
    watching.mends, watching.marks = config.mend, config.mend and how == "mark"
    _check_output(source, out, config.overwrite)
    # Loaded first: a stream does not wait.
    loaded = stream_inspector(inspector)
    raw: dict[str, Any] = {"size": config.size, "pixel_format": config.pixel_format, "fps": rate}
    opened = open_live(source, watching.report, **raw, retries=config.retries)
    watching.state.source = opened.name
    rate = rate or opened.facts.fps
    stream = VideoStream(
        lookahead=config.lookahead,
        how=how if config.mend else "mark",
        hold_limit=config.hold_limit,
        inspector=loaded,
        fps=None if rate is None else float(rate),
    )
    begun = time.monotonic()
    with contextlib.closing(opened), _output_handle(out) as handle:
        try:
            watching.run(stream, opened, handle, drop=config.drop)
        finally:
            watching.close()
    watching.state.wall_s = time.monotonic() - begun
    return watching.state


def _check_output(source: str, out: str | None, overwrite: bool) -> None:
    if out is None or out == "-":
        return
    path = Path(out)
    if path.suffix.lower() not in (".y4m", ".yuv", ".raw", ".rgb", ".gray", ""):
        raise BadValue(
            f"{out}: a stream is written uncompressed, as .y4m; for a compressed file use "
            f"`-o - | ffmpeg -i - {path.name}`"
        )
    if os.path.exists(source):
        refuse_output_in(Path(source), path)
    refuse_existing(path, overwrite or not path.is_file())  # others are no files, such as pipes


@contextlib.contextmanager
def _output_handle(out: str | None) -> Iterator[int | None]:
    if out is None or out == "-":
        yield None if out is None else 1
        return
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


class _DamageFound(Exception):
    """The first damaged frame, for `until_damaged`."""


class _Watch:
    """One stream on its way from source to output.

    Attributes:
        mends: whether damaged frames are replaced or marked; only then a stream can be lost.
        marks: whether frames are marked in their headers.
    """

    def __init__(
        self,
        state: WatchState,
        on_event: Callable[[dict[str, Any]], None] | None,
        on_frame: Callable[[WatchState], None] | None,
        until_damaged: bool,
    ) -> None:
        from jostle.mending.damage_events import DamageEvents

        self.state, self._on_event, self._on_frame = state, on_event, on_frame
        self._events, self._until_damaged = DamageEvents(), until_damaged
        self._waiting: deque[LivePicture] = deque()  # pictures without a verdict, where there is an output
        self._output: PictureOutput | None = None
        self._stream: VideoStream | None = None
        self.mends = self.marks = False
        self._count, self._time = 0, 0.0  # frames that came, and the time of the last
        self._loss: dict[str, Any] | None = None  # the event that began it

    def run(self, stream: VideoStream, source: Any, handle: int | None, *, drop: bool) -> None:
        """Watch until the source ends, a signal comes, or the reader of the output is gone."""
        from jostle.io.video.live_output import PictureOutput
        from jostle.io.video.raw_picture import RgbOfPictures

        self._stream = stream
        to_rgb = RgbOfPictures()
        try:
            for picture in source:
                begun = time.perf_counter()
                output = picture
                if handle is not None:
                    if self._output is None:
                        self._output = PictureOutput(handle, source.facts, raw=source.raw, drop=drop)
                    output = self._output.prepare(picture)
                    self._waiting.append(output)
                samples = _NOTHING if handle is None else output.samples
                # Waiting for the reader of the output is no time of ours.
                some = stream.push(to_rgb(picture), picture.time, samples, concealed=picture.concealed)
                self._count_time(time.perf_counter() - begun)
                self._time = self._count / stream.fps if picture.time is None else picture.time
                self._count += 1
                self.state.concealed += picture.concealed
                self._show(some)
            self._show(stream.flush())
            if self._output is not None:
                self._output.close()
            self.state.ended = "broken" if source.broken else "end"
        except _DamageFound:
            self.state.ended = "damaged"
        except BrokenPipeError:
            self.state.ended = "reader_gone"
        except Stopped as stopped:
            self.state.ended, self.state.signal = "stopped", stopped.number
            if self._output is not None:
                self._output.limit(STOP_S)
            with contextlib.suppress(_DamageFound, BrokenPipeError):  # Ctrl-C also reaches the reader of the output
                self._show(stream.flush())
        if self.state.ended != "damaged":  # there the damage goes on, only nobody watches it
            for event in self._events.flush():
                self._report_event(event)
            self._end_loss(self._count, self._time, {"stream_ended": True})

    def close(self) -> None:
        """Leave the output to its reader as it is."""
        if self._output is not None:
            self._output.limit(STOP_S)
            with contextlib.suppress(BrokenPipeError):
                self._output.close()

    def report(self, what: str, facts: dict[str, Any]) -> None:
        """Take note of something that happened to the source."""
        if what == UNDECODABLE:
            self._add_loss(facts["frame"], facts.get("time", self._time), facts["frames"])
            return
        if what == "decodable":
            self._end_loss(facts["frame"], facts.get("time", self._time), {})
            return
        if what == "resync":
            self.state.resyncs += 1
        elif what == "disconnected":
            self.state.connected = False
            if self._stream is not None:  # nobody knows when the next frame comes
                self._show(self._stream.flush())
        elif what == "connected":
            self.state.connected = True
            self.state.reconnects += 1
        self._report_event({"event": what, "frame": self._count, "time": round(self._time, 6), **facts})

    def _add_loss(self, frame: int, time: float, lost: int) -> None:
        """Count pictures that the decoder gave none for; the first of them is an event."""
        state = self.state
        state.frames, state.damaged = state.frames + lost, state.damaged + lost
        state.kinds[UNDECODABLE] += lost
        if self._loss is None:
            self._loss = {"kind": UNDECODABLE, "frame": frame, "time": time, "frames": 0}
            state.events[UNDECODABLE] += 1
            self._report_event(
                {"event": "start", "kind": UNDECODABLE, "frame": frame, "time": round(time, 6), "confidence": 1.0}
            )
        self._loss["frames"] += lost
        state.kind = self._kind()
        if self._until_damaged:
            raise _DamageFound

    def _end_loss(self, frame: int, time: float, facts: dict[str, Any]) -> None:
        if self._loss is None:
            return
        loss, self._loss = self._loss, None
        self.state.kind = self._kind()
        event = {"event": "end", "kind": UNDECODABLE, "frame": frame, "time": round(time, 6), "confidence": 1.0}
        event |= {"first_frame": loss["frame"], "frames": loss["frames"]}
        self._report_event(event | {"seconds": round(max(time - loss["time"], 0), 6)} | facts)

    def _kind(self) -> str | None:
        """Return the kind of the damage that goes on."""
        return self._events.kind or (None if self._loss is None else UNDECODABLE)

    def _show(self, some: list[JudgedPicture]) -> None:
        state = self.state
        for one in some:
            verdict = one.verdict
            state.frames, state.time, state.confidence = state.frames + 1, verdict.time, verdict.confidence
            if verdict.damaged:
                state.damaged += 1
                state.kinds[verdict.kind] += 1
            for event in self._events.push(verdict):
                if event["event"] == "start":
                    state.events[event["kind"]] += 1
                self._report_event(event)
            state.kind, state.updated = self._kind(), time.time()
            if self.mends and one.lost != state.lost:
                state.lost = one.lost
                what = "lost" if one.lost else "found"
                self._report_event({"event": what, "frame": verdict.index, "time": round(verdict.time, 6)})
            if self._output is not None:
                self._write(one)
            if self._on_frame is not None:
                self._on_frame(state)
            if verdict.damaged and self._until_damaged:
                raise _DamageFound

    def _write(self, one: JudgedPicture) -> None:
        assert self._output is not None
        picture = self._waiting.popleft()
        samples = self._output.layout.black() if one.picture is None else one.picture
        self.state.mended += samples is not picture.samples
        self._output.write(picture, samples, one.verdict.kind if self.marks and one.verdict.damaged else None)
        self.state.dropped = self._output.dropped

    def _count_time(self, seconds: float) -> None:
        self.state.busy_s += seconds
        self.state.durations[sum(seconds > end for end in BUCKETS)] += 1

    def _report_event(self, event: dict[str, Any]) -> None:
        if self._on_event is not None:
            self._on_event(event)


@contextlib.contextmanager
def serve_watch_metrics(address: str, state: WatchState) -> Iterator[int]:
    """Serve the state of a stream as Prometheus metrics while the context lasts; yield the port.

    Args:
        address: `HOST:PORT`, or a port of this machine alone.
    """
    from jostle.reporting.prometheus import parse_listen_address, serve_metrics

    with serve_metrics(parse_listen_address(address), lambda: watch_metrics(state)) as port:
        yield port


def watch_metrics(state: WatchState) -> list[PrometheusMetric]:
    """Return the metrics of a stream."""
    from jostle.mending.verdicts import KINDS
    from jostle.reporting.prometheus import by_label, counter, gauge, histogram

    kinds, prefix = (*KINDS[1:], UNDECODABLE), "jostle_watch"
    return [
        counter(f"{prefix}_frames_total", "Frames of the stream, judged or undecodable.", state.frames),
        by_label(
            f"{prefix}_damaged_frames_total",
            "counter",
            "Frames judged damaged, by kind of damage.",
            "kind",
            [(kind, state.kinds[kind]) for kind in kinds],
        ),
        by_label(
            f"{prefix}_events_total",
            "counter",
            "Runs of damaged frames, by the kind that they began with.",
            "kind",
            [(kind, state.events[kind]) for kind in kinds],
        ),
        by_label(
            f"{prefix}_damaged",
            "gauge",
            "1 while frames are damaged, by kind of damage.",
            "kind",
            [(kind, float(state.kind == kind)) for kind in kinds],
        ),
        gauge(f"{prefix}_lost", "1 while damage lasts for longer than a frame may be held.", state.lost),
        gauge(f"{prefix}_connected", "1 while the source is connected.", state.connected),
        gauge(f"{prefix}_stream_seconds", "Time of the last frame in the stream.", state.time),
        gauge(f"{prefix}_last_frame_timestamp_seconds", "Unix time of the last verdict.", state.updated),
        counter(f"{prefix}_mended_frames_total", "Frames that were replaced by others.", state.mended),
        counter(f"{prefix}_dropped_frames_total", "Frames left out for a slow reader.", state.dropped),
        counter(f"{prefix}_resyncs_total", "Searches for the next frame after garbage.", state.resyncs),
        counter(f"{prefix}_reconnects_total", "Connections made again.", state.reconnects),
        histogram(
            f"{prefix}_frame_seconds",
            "Time that one frame takes to be judged.",
            BUCKETS,
            list(state.durations),
            state.busy_s,
        ),
    ]
