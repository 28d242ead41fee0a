"""`jostle watch` and the summaries of files: what a decoder cannot decode, or conceals, is never passed over."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

pytest.importorskip("torch")

COUNT, FPS, KEY_INTERVAL = 120, 25, 30
WIDTH, HEIGHT = 192, 144
ENCODERS: dict[str, tuple[str, dict[str, str]]] = {
    "h264": ("libx264", {"preset": "veryfast"}),
    "h265": ("libx265", {"preset": "veryfast", "x265-params": "log-level=none"}),
    "vp9": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8"}),
}
KINDS_OF_FILE = [("mkv", "h264"), ("mkv", "h265"), ("mkv", "vp9"), ("avi", "h264")]
KINDS_OF_FILE += [("mp4", "h264"), ("mp4", "h265"), ("mp4", "vp9"), ("webm", "vp9")]
BROADCAST = [("ts", "h264"), ("ts", "h265")]  # packets of 188 bytes: what overwrites one does not always refuse it


def write_clip(path: Path, codec: str, **options: str) -> Path:
    """Write a film that pans over a textured ground."""
    rng = np.random.default_rng(0)
    ground = rng.integers(0, 256, (HEIGHT // 8, WIDTH // 8 + COUNT // 4 + 1, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    encoder, settings = ENCODERS[codec]
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(encoder, rate=FPS)
        stream.width, stream.height, stream.pix_fmt, stream.options = WIDTH, HEIGHT, "yuv420p", dict(settings)
        stream.codec_context.gop_size, stream.codec_context.thread_count, stream.bit_rate = KEY_INTERVAL, 1, 400_000
        for t in range(COUNT):
            pixels = np.ascontiguousarray(ground[:, 2 * t : 2 * t + WIDTH])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder = tmp_path_factory.mktemp("clips")
    paths = {(kind, codec): write_clip(folder / f"{codec}.{kind}", codec) for kind, codec in KINDS_OF_FILE + BROADCAST}
    return paths | {("faststart", "h264"): write_clip(folder / "fast.mp4", "h264", movflags="faststart")}


def fill(count: int, what: str) -> bytes:
    return bytes(count) if what == "zeros" else np.random.default_rng(1).bytes(count)


def overwrite_stretch(source: Path, target: Path, what: str) -> Path:
    """Overwrite a third of a file in its middle, whatever lies there."""
    data = bytearray(source.read_bytes())
    low, high = len(data) * 4 // 10, len(data) * 7 // 10
    data[low:high] = fill(high - low, what)
    target.write_bytes(data)
    return target


def overwrite_payload(source: Path, target: Path, what: str, count: int = COUNT // 6, kept: float = 0.0) -> Path:
    """Overwrite the payload of packets but for a first share of it, and leave the container whole."""
    with av.open(str(source)) as container:
        packets = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    data = bytearray(source.read_bytes())
    for position, size in packets[COUNT // 3 : COUNT // 3 + count]:
        begin = max(min(32, size // 4), int(size * kept))
        data[position + begin : position + size] = fill(size - begin, what)
    target.write_bytes(data)
    return target


def watch(*words: str | Path, **options: Any) -> tuple[int, dict[str, Any], list[dict[str, Any]], str]:
    """Run `jostle watch --json`; return its exit code, its summary, its events and its messages."""
    events = Path(options["cwd"]) / "events.jsonl"
    events.unlink(missing_ok=True)
    command = [sys.executable, "-m", "jostle", "watch", *map(str, words), "--json", "--events", str(events)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    lines = events.read_text().splitlines() if events.exists() else []
    return done.returncode, json.loads(done.stdout or "{}"), [json.loads(line) for line in lines], done.stderr


WATCH_MANY = """
import json, sys
from jostle import api
inspector = api.load_inspector()
for path in sys.argv[1:]:
    events = []
    state = api.watch(path, inspector=inspector, on_event=events.append)
    print(json.dumps([state.to_dict(), events]))
"""


def watch_many(paths: list[Path]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    command = [sys.executable, "-c", WATCH_MANY, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.fault("F198")
def test_damaged_files_are_never_clean(clips: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    damages = {"stretch": overwrite_stretch, "payload": overwrite_payload}
    cases = [
        (kind, codec, damage, what)
        for kind, codec in KINDS_OF_FILE
        for damage in damages
        for what in ("zeros", "noise")
    ]
    cases += [(kind, codec, "stretch", what) for kind, codec in BROADCAST for what in ("zeros", "noise")]
    paths = [
        damages[damage](clips[kind, codec], tmp_path / f"{codec}-{damage}-{what}.{kind}", what)
        for kind, codec, damage, what in cases
    ]
    for case, (summary, events) in zip(cases, watch_many(paths), strict=True):
        lost = summary["kinds"].get("undecodable", 0)
        assert lost, case
        assert summary["damaged"] == sum(summary["kinds"].values()), case
        assert abs(summary["frames"] - COUNT) <= 4, (case, summary)  # a few are estimated where blocks are lost
        ours = [event for event in events if event["kind"] == "undecodable"]
        assert [event["event"] for event in ours] == ["start", "end"] * summary["events"]["undecodable"], case
        assert sum(event["frames"] for event in ours if event["event"] == "end") == lost, case


@pytest.mark.fault("F198")
def test_intact_files_have_no_undecodable_frames(clips: dict[tuple[str, str], Path]) -> None:
    for path, (summary, events) in zip(clips.values(), watch_many([*clips.values()]), strict=True):
        assert (summary["frames"], summary["damaged"], summary["ended"]) == (COUNT, 0, "end"), path.name
        assert events == [], path.name


@pytest.mark.fault("F198")
def test_lost_packets_end_a_watch_until_damaged(clips: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    damaged = overwrite_stretch(clips["webm", "vp9"], tmp_path / "damaged.webm", "noise")
    code, summary, events, _ = watch(damaged, "--until-damaged", cwd=tmp_path)
    assert (code, summary["ended"], events[0]["event"]) == (9, "damaged", "start")


@pytest.mark.fault("F199")
@pytest.mark.parametrize(
    ("kind", "codec"), [("mkv", "h264"), ("webm", "vp9"), ("avi", "h264"), ("ts", "h264"), ("faststart", "h264")]
)
def test_a_file_that_is_cut_off_is_an_error(
    clips: dict[tuple[str, str], Path], kind: str, codec: str, tmp_path: Path
) -> None:
    source = clips[kind, codec]
    data = source.read_bytes()
    cut = tmp_path / f"cut{source.suffix}"
    cut.write_bytes(data[: len(data) * 6 // 10])
    code, summary, events, messages = watch(cut, cwd=tmp_path)
    assert (code, summary["ended"]) == (3, "broken")
    assert 0 < summary["frames"] < COUNT
    assert "broken" in [event["event"] for event in events]
    assert f"error[F199]: cut{source.suffix}: ended before its end" in messages


@contextlib.contextmanager
def serve(data: bytes, *, length: int | None, chunked: bool = False) -> Iterator[str]:
    """Serve bytes by HTTP, and close the connection after them."""
    listening = socket.create_server(("127.0.0.1", 0))
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n"
    head += "" if length is None else f"Content-Length: {length}\r\n"
    head += "Transfer-Encoding: chunked\r\n" if chunked else ""

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(1 << 16)
                    body = f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n" if chunked else data
                    client.sendall(head.encode() + b"\r\n" + body)

    threading.Thread(target=run, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/film"
    finally:
        listening.close()


@pytest.mark.fault("F199")
@pytest.mark.parametrize(
    ("kind", "codec", "sized"),
    [
        ("mkv", "h264", False),
        ("faststart", "h264", True),
        pytest.param("mkv", "h264", True, marks=pytest.mark.slow),
        pytest.param("faststart", "h264", False, marks=pytest.mark.slow),
    ],
)
def test_an_http_source_that_dies_is_an_error(
    clips: dict[tuple[str, str], Path], kind: str, codec: str, sized: bool, tmp_path: Path
) -> None:
    data = clips[kind, codec].read_bytes()
    for share, expected in ((1.0, (0, "end")), (0.6, (3, "broken"))):
        part = data[: int(len(data) * share)]
        with serve(part, length=len(data) if sized else None) as address:
            code, summary, events, messages = watch(address, cwd=tmp_path)
        assert (code, summary["ended"]) == expected, messages
        assert (summary["frames"] == COUNT) == (share == 1)
        assert ("broken" in [event["event"] for event in events]) == (share < 1)


@pytest.mark.fault("F199")
def test_a_chunked_source_that_ends_is_no_error(clips: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    with serve(clips["webm", "vp9"].read_bytes(), length=None, chunked=True) as address:
        code, summary, _, messages = watch(address, cwd=tmp_path)
    assert (code, summary["frames"]) == (0, COUNT), messages


def y4m(count: int) -> bytes:
    picture = bytes(range(40, 168)) * 6 * 2 + b"\x80" * 384 * 2
    return (
        b"YUV4MPEG2 W48 H32 F25:1 C420jpeg\n" + (b"FRAME\n" + picture[: 48 * 32 * 3 // 2].ljust(2304, b"\x80")) * count
    )


@pytest.mark.fault("F199")
def test_a_pipe_that_dies_within_a_frame_is_an_error(tmp_path: Path) -> None:
    for data, expected in ((y4m(20), (0, "end")), (y4m(20)[:-1000], (3, "broken"))):
        (tmp_path / "pipe.y4m").write_bytes(data)
        with (tmp_path / "pipe.y4m").open("rb") as pipe:
            code, summary, _, messages = watch("-", stdin=pipe, cwd=tmp_path)
        assert (code, summary["ended"]) == expected
        assert ("error[F199]" in messages) == (code == 3)


@pytest.mark.fault("F200")
@pytest.mark.parametrize(
    ("blocked", "number"),
    [("output", signal.SIGTERM), ("drop", signal.SIGINT), ("events", signal.SIGINT), ("stdout", signal.SIGTERM)],
)
def test_a_signal_ends_a_watch_whose_reader_is_blocked(blocked: str, number: int, tmp_path: Path) -> None:
    source = tmp_path / "long.y4m"
    black = b"YUV4MPEG2 W48 H32 F25:1 C420jpeg\n"
    rng = np.random.default_rng(2)
    textures = [b"FRAME\n" + rng.integers(30, 220, 1536, np.uint8).tobytes() + b"\x80" * 768 for _ in range(40)]
    dark = [b"FRAME\n" + b"\x10" * 1536 + b"\x80" * 768] * 4
    source.write_bytes(black + b"".join(b"".join(textures + dark) for _ in range(60)))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # opened, and never read
    words = {
        "output": ["-o", str(fifo), "--overwrite", "--events", str(tmp_path / "events")],
        "drop": ["-o", str(fifo), "--drop", "--overwrite", "--events", str(tmp_path / "events")],
        "events": ["--events", str(fifo), "-o", str(tmp_path / "out.y4m")],
        "stdout": ["-o", "-", "--events", str(tmp_path / "events")],
    }[blocked]
    fill_pipe(fifo if blocked == "events" else None)
    command = [sys.executable, "-m", "jostle", "watch", str(source), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path)
    try:
        assert process.stdout is not None
        wait_until_blocked(lambda: amount(blocked, process, reader, tmp_path / "out.y4m"))
        process.send_signal(number)
        code = process.wait(timeout=20)
        if blocked != "drop":  # nothing waits there, so that it may have ended by itself
            assert code == 128 + number
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reader)


def amount(blocked: str, process: subprocess.Popen[bytes], reader: int, out: Path) -> int:
    """Return the number of bytes that were written so far."""
    if blocked == "events":
        return out.stat().st_size if out.exists() else 0
    pipe = process.stdout if blocked == "stdout" else reader
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)  # type: ignore[arg-type]


def wait_until_blocked(written: Callable[[], int]) -> None:
    end, before = time.monotonic() + 60, 0
    while not before or written() != before:
        assert time.monotonic() < end
        before = written()
        time.sleep(0.7)


def fill_pipe(fifo: Path | None) -> None:
    """Fill a pipe, so that its next writer waits."""
    if fifo is None:
        return
    handle = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(handle, b"\n" * 4096)
    os.close(handle)


def test_summaries_of_files_count_what_the_decoder_concealed(
    clips: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    damaged = tmp_path / "videos" / "damaged.avi"
    damaged.parent.mkdir()
    overwrite_payload(clips["avi", "h264"], damaged, "noise", count=3, kept=0.5)

    def run(*words: str | Path) -> tuple[dict[str, Any], str]:
        command = [sys.executable, "-m", "jostle", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
        return json.loads(done.stdout) if "--json" in words else {}, done.stderr

    _, summary, _, messages = watch(damaged, cwd=tmp_path)
    assert summary["concealed"] > 10
    assert f"{summary['concealed']} show what the decoder concealed" in messages
    of_file, _ = run("inspect", damaged, "--json")
    assert of_file["concealed"] > 10
    assert of_file["frames"] + of_file["undecodable"] == COUNT
    of_folder, _ = run("inspect", damaged.parent, "--csv", "table.csv", "--json", "-j", "1")
    assert of_folder["concealed"] == summary["concealed"]
    assert of_folder["kinds"] == summary["kinds"]
    mended, _ = run("mend", damaged, "-o", "mended.mkv", "--json")
    assert (mended["concealed"], mended["undecodable"]) == (of_file["concealed"], of_file["undecodable"])
