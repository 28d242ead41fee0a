"""`watch`: events, output streams, slow or closed readers, and reconnection."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from helpers.known_verdicts import KnownFrame
from jostle import api
from jostle.api.streams import WatchState, watch_metrics
from jostle.core.interruption import Stopped
from jostle.errors import BadValue, MediaError
from jostle.io.video import live
from jostle.mending.stream import VideoStream
from jostle.mending.verdicts import Verdict
from jostle.reporting.prometheus import render

WIDTH, HEIGHT = 32, 24
NBYTES = WIDTH * HEIGHT * 3 // 2
HEADER = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F10:1 Ip A1:1 C420jpeg\n".encode()


class DarkIsDamaged(VideoStream):
    """Stream for which black frames are damaged."""

    def _inspect(self, frame: Any, time: float, concealed: bool) -> list[Verdict]:
        damaged = not frame.any()
        self._pending.append(KnownFrame(self._count, time, damaged, 0.95 if damaged else 0.98))
        return self._release(self._ahead)


@pytest.fixture(autouse=True)
def dark_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.mending.stream.open_network", lambda inspector: None)
    monkeypatch.setattr("jostle.mending.stream.VideoStream", DarkIsDamaged)


def picture(number: int | None) -> bytes:
    """Return the planes of a grey picture, or of a black one for None."""
    luma = 16 if number is None else 60 + number % 100
    return bytes([luma]) * (WIDTH * HEIGHT) + b"\x80" * (NBYTES - WIDTH * HEIGHT)


def pictures(text: str) -> list[bytes]:
    return [picture(None if letter == "x" else number) for number, letter in enumerate(text)]


def y4m(path: Path, text: str) -> Path:
    path.write_bytes(HEADER + b"".join(b"FRAME\n" + one for one in pictures(text)))
    return path


def watch(source: Path | str, **options: Any) -> tuple[WatchState, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    state = api.watch(str(source), inspector=object(), on_event=events.append, **options)  # type: ignore[arg-type]
    return state, events


def test_events_have_start_and_end(tmp_path: Path) -> None:
    state, events = watch(y4m(tmp_path / "a.y4m", "...xx..x"))
    assert events == [
        {"event": "start", "kind": "black", "frame": 3, "time": 0.3, "confidence": 0.95},
        {"event": "end", "kind": "black", "frame": 5, "time": 0.5, "confidence": 0.95}
        | {"first_frame": 3, "frames": 2, "seconds": 0.2},
        {"event": "start", "kind": "black", "frame": 7, "time": 0.7, "confidence": 0.95},
        {"event": "end", "kind": "black", "frame": 8, "time": pytest.approx(0.8), "confidence": 0.95}
        | {"first_frame": 7, "frames": 1, "seconds": pytest.approx(0.1), "stream_ended": True},
    ]
    assert (state.frames, state.damaged, state.kinds, state.events) == (8, 3, {"black": 3}, {"black": 2})
    assert state.ended == "end"
    state, events = watch(tmp_path / "a.y4m", until_damaged=True)
    assert [event["event"] for event in events] == ["start"]
    assert (state.ended, state.frames) == ("damaged", 4)


def test_intact_frames_are_passed_through_unchanged(tmp_path: Path) -> None:
    source, out = y4m(tmp_path / "a.y4m", "..xx..x"), tmp_path / "out.y4m"
    state, _ = watch(source, out=str(out))
    assert out.read_bytes() == source.read_bytes()
    assert state.mended == 0
    state, _ = watch(source, out=str(out), mend=True, overwrite=True)
    originals = pictures(".......")
    expected = [originals[number] for number in (0, 1, 1, 1, 4, 5, 5)]
    assert out.read_bytes() == HEADER + b"".join(b"FRAME\n" + one for one in expected)
    assert state.mended == 3
    watch(source, out=str(out), mend=True, how="mark", overwrite=True)
    assert out.read_bytes().replace(b" XDAMAGED=black", b"") == source.read_bytes()
    assert out.read_bytes().count(b"FRAME XDAMAGED=black\n") == 3


@pytest.mark.fault("F134")
def test_long_damage_is_black_and_reported_as_lost(tmp_path: Path) -> None:
    source, out = y4m(tmp_path / "a.y4m", ".xxxxx."), tmp_path / "out.y4m"
    _, events = watch(source, out=str(out), mend=True, hold_limit=0.2)
    frames = pictures(".xxxxx.")
    expected = [frames[number] for number in (0, 0, 0, 0, 4, 5, 6)]
    assert out.read_bytes() == HEADER + b"".join(b"FRAME\n" + one for one in expected)
    assert [(one["event"], one["frame"]) for one in events] == [
        ("start", 1),
        ("lost", 4),
        ("end", 6),
        ("found", 6),
    ]


def test_raw_frames_stay_raw(tmp_path: Path) -> None:
    source, out = tmp_path / "a.yuv", tmp_path / "out.yuv"
    source.write_bytes(b"".join(pictures("..x.")))
    raw_format = {"size": (WIDTH, HEIGHT), "pixel_format": "yuv420p", "fps": 20}
    state, _ = watch(source, out=str(out), mend=True, **raw_format)
    frames = pictures("....")
    assert out.read_bytes() == b"".join(frames[number] for number in (0, 1, 1, 3))
    assert state.time == 0.15


@pytest.mark.fault("F132")
def test_truncated_source_is_reported(tmp_path: Path) -> None:
    source = y4m(tmp_path / "a.y4m", "....")
    source.write_bytes(source.read_bytes()[:-7])
    state, events = watch(source)
    assert (state.ended, state.frames) == ("broken", 3)
    assert events == [{"event": "broken", "frame": 3, "time": 0.2, "bytes": NBYTES - 7}]


def test_garbage_is_an_event(tmp_path: Path) -> None:
    source = y4m(tmp_path / "a.y4m", "...")
    data = source.read_bytes()
    cut = len(HEADER) + 2 * (6 + NBYTES)
    source.write_bytes(data[:cut] + b"?" * 99 + data[cut:])
    state, events = watch(source)
    assert (state.frames, state.resyncs, state.ended) == (3, 1, "end")
    assert events == [{"event": "resync", "frame": 2, "time": 0.1, "bytes": 99}]


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """A file of MPEG-TS, whose fifth to seventh frames are black."""
    path = tmp_path / "a.ts"
    with av.open(str(path), "w", format="mpegts") as container:
        stream = container.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.gop_size = 1
        for number in range(12):
            pixels = np.full((48, 64, 3), 0 if 5 <= number < 8 else 90 + 5 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def test_file_is_converted_to_y4m(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.y4m"
    _, events = watch(video, out=str(out))
    assert [(one["event"], one["frame"]) for one in events] == [("start", 5), ("end", 8)]
    with av.open(str(video)) as one, av.open(str(out)) as other:
        theirs, ours = (list(container.decode(video=0)) for container in (one, other))
    assert len(ours) == 12
    for first, second in zip(theirs, ours, strict=True):
        assert (first.to_ndarray() == second.to_ndarray()).all()


def test_size_change_ends_an_output_but_not_a_watch(tmp_path: Path) -> None:
    source = y4m(tmp_path / "a.y4m", "..")
    small = b"YUV4MPEG2 W4 H2 F10:1 C420jpeg\nFRAME\n" + bytes([80]) * 12
    source.write_bytes(source.read_bytes() + small)
    assert watch(source)[0].frames == 3
    with pytest.raises(MediaError, match="from 32x24 to 4x2, which the output cannot say"):
        watch(source, out=str(tmp_path / "out.y4m"))


class SlowPipe:
    """Pipe whose reader reads nothing until `read` is called."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()

    def read(self) -> bytes:
        os.close(self.into)
        data = b""
        while chunk := os.read(self.out, 1 << 20):
            data += chunk
        os.close(self.out)
        return data


def test_slow_reader_loses_frames_only_with_drop(tmp_path: Path) -> None:
    source, pipe = y4m(tmp_path / "a.y4m", "." * 200), SlowPipe()  # more than a pipe holds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jostle.io.video.live_output.DRAIN_S", 0.01)
        state, _ = watch(source, out=f"/dev/fd/{pipe.into}", drop=True, overwrite=True)
    assert 0 < state.dropped < 200
    assert state.frames == 200
    threading.Thread(target=pipe.read).start()


def test_closed_reader_ends_the_watch(tmp_path: Path) -> None:
    source, pipe = y4m(tmp_path / "a.y4m", "." * 40 + "x" * 200), SlowPipe()
    reader = threading.Thread(target=lambda: (os.read(pipe.out, 5000), os.close(pipe.out)))
    reader.start()
    state, _ = watch(source, out=f"/dev/fd/{pipe.into}", overwrite=True)
    reader.join()
    os.close(pipe.into)
    assert state.ended == "reader_gone"
    assert state.frames < 240


def test_signal_ends_the_watch_with_all_verdicts(tmp_path: Path) -> None:
    source = y4m(tmp_path / "a.y4m", ".." + "x" * 8)

    def stop(state: WatchState) -> None:
        if state.frames == 3:
            raise Stopped(signal.SIGINT)

    state, events = watch(source, on_frame=stop, lookahead=4)
    assert (state.ended, state.signal) == ("stopped", signal.SIGINT)
    assert state.frames == 7  # four were still waiting
    assert [one["event"] for one in events] == ["start", "end"]


@pytest.fixture
def server(video: Path) -> Iterator[tuple[str, list[int]]]:
    """A TCP server that sends the video to each of the first two clients, then closes."""
    listening = socket.create_server(("127.0.0.1", 0))
    connections: list[int] = []

    def serve() -> None:
        for _ in range(2):
            client, _ = listening.accept()
            with client:
                client.sendall(video.read_bytes())
            connections.append(1)
        listening.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"tcp://127.0.0.1:{listening.getsockname()[1]}", connections
    thread.join()


def test_address_is_reconnected(server: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BACK_OFF_S", (0.01,))
    state, events = watch(server[0], retries=2)
    names = [one["event"] for one in events]
    assert names == ["start", "end", "disconnected", "connected", "start", "end", "disconnected"]
    assert [one["frame"] for one in events if one["event"] == "start"] == [5, 17]
    assert (state.frames, state.reconnects, state.ended) == (24, 1, "broken")
    times = [one["time"] for one in events]
    assert times == sorted(times)


@pytest.mark.fault("F133")
def test_unreachable_address_does_not_leak_its_password() -> None:
    with pytest.raises(MediaError, match=r"rtsp://127.0.0.1:1/cam: cannot be opened \(Connection refused\)") as caught:
        watch("rtsp://admin:hunter2@127.0.0.1:1/cam")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(BadValue, match="gopher:// is not among the addresses"):
        watch("gopher://cam")


def test_invalid_options_are_refused(tmp_path: Path) -> None:
    source = y4m(tmp_path / "a.y4m", ".")
    with pytest.raises(BadValue, match="needs a place for it"):
        watch(source, mend=True)
    with pytest.raises(BadValue, match="there is no -o"):
        watch(source, drop=True)
    with pytest.raises(BadValue, match="uncompressed"):
        watch(source, mend=True, out="a.mp4")
    with pytest.raises(BadValue, match="is the input itself"):
        watch(source, out=str(source))
    (tmp_path / "b.y4m").touch()
    with pytest.raises(BadValue, match="--overwrite"):
        watch(source, out=str(tmp_path / "b.y4m"))
    with pytest.raises(MediaError, match="no such file"):
        watch(tmp_path / "nothere.mp4")


def test_metrics_are_served(tmp_path: Path) -> None:
    state, _ = watch(y4m(tmp_path / "a.y4m", "..x."))
    with api.serve_watch_metrics("127.0.0.1:0", state) as port:
        reply = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)
        text = reply.read().decode()
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert text.endswith("\n")
    assert "\njostle_watch_frames_total 4\n" in text
    assert '\njostle_watch_damaged_frames_total{kind="black"} 1\n' in text
    assert '\njostle_watch_frame_seconds_bucket{le="+Inf"} 4\n' in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(set(names)) == len(names)
    assert render(watch_metrics(WatchState())).count('kind="clean"') == 0


def test_standard_input_and_output(tmp_path: Path) -> None:
    data = y4m(tmp_path / "a.y4m", "..x.").read_bytes()
    source, sink = os.pipe(), os.pipe()
    saved = [os.dup(handle) for handle in (0, 1)]
    os.dup2(source[0], 0)
    os.dup2(sink[1], 1)
    writer = threading.Thread(target=lambda: (os.write(source[1], data), os.close(source[1])))
    writer.start()
    try:
        state, _ = watch("-", out="-")
    finally:
        writer.join()
        for number, handle in enumerate(saved):
            os.dup2(handle, number)
    assert os.read(sink[0], 1 << 16) == data
    assert (state.source, state.frames) == ("stdin", 4)
    for handle in (source[0], *sink, *saved):
        os.close(handle)


@pytest.mark.slow
def test_watch_as_a_process_in_a_pipe(tmp_path: Path) -> None:
    """Run `jostle watch` with the bundled inspector in a process that receives its input in small pieces."""
    source = y4m(tmp_path / "a.y4m", "...")
    words = ["watch", "-", "--mend", "-o", "-", "--events", "events", "--metrics", "0"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-m", "jostle", *words], cwd=tmp_path, **pipes)  # type: ignore[call-overload]
    assert process.stdin is not None
    data = source.read_bytes()
    for begin in range(0, len(data), 1000):
        process.stdin.write(data[begin : begin + 1000])
        process.stdin.flush()
    out, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert len(out) == len(data)
    assert all(json.loads(line) for line in (tmp_path / "events").read_text().splitlines())
    assert b"metrics on port" in stderr
