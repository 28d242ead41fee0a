"""y4m and raw frames on pipes: exact bytes, resynchronisation after garbage and reported truncation."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from helpers.refusals import refused
from jostle.core.types.video_location import hide_credentials
from jostle.errors import BadValue, MediaError
from jostle.io.video import y4m
from jostle.io.video.live import open_live
from jostle.io.video.live_output import PictureOutput
from jostle.io.video.raw_picture import LivePicture, PictureLayout, RgbOfPictures, StreamFacts
from jostle.io.video.y4m import RawReader, Y4mReader

HEADER = b"YUV4MPEG2 W4 H2 F25:1 Ip A1:1 C420jpeg\n"


def picture(value: int) -> bytes:
    return bytes([value]) * 12


def stream(*values: int) -> bytes:
    return HEADER + b"".join(b"FRAME\n" + picture(value) for value in values)


class ReadResult:
    """Output of a reader for bytes from a pipe."""

    def __init__(self, data: bytes) -> None:
        read_end, write_end = os.pipe()
        writer = threading.Thread(target=self._write, args=(write_end, data))
        writer.start()
        self.reports: list[tuple[str, int]] = []
        try:
            reader = Y4mReader(read_end, "pipe", lambda *report: self.reports.append(report))
            self.pictures = list(reader)
            self.facts, self.broken = reader.facts, reader.broken
        finally:
            os.close(read_end)
            writer.join()
        self.values = [int(picture.samples[0]) for picture in self.pictures]

    @staticmethod
    def _write(into: int, data: bytes) -> None:
        try:
            os.write(into, data)
        except BrokenPipeError:
            pass
        finally:
            os.close(into)


def test_a_stream_is_read() -> None:
    read = ReadResult(stream(1, 2, 3))
    assert read.values == [1, 2, 3]
    assert read.facts.layout == PictureLayout(4, 2, "yuv420p")
    assert (read.facts.fps, read.facts.pixel_aspect) == (25, 1)
    assert not read.broken
    assert read.reports == []


@pytest.mark.fault("F132")
def test_garbage_between_frames_is_skipped() -> None:
    data = stream(1, 2, 3)
    cut = len(HEADER) + 2 * 18
    read = ReadResult(data[:cut] + b"garbage FRAM garbage" + data[cut:])
    assert read.values == [1, 2, 3]
    assert read.reports == [("resync", 20)]


@pytest.mark.fault("F132")
def test_bytes_lost_in_a_frame_cost_that_frame_alone() -> None:
    data = stream(1, 2, 3, 4)
    cut = len(HEADER) + 18 + 10
    read = ReadResult(data[:cut] + data[cut + 5 :])
    assert read.values == [1, 2, 3, 4]  # the second is part of a frame and of what follows it
    assert [name for name, _ in read.reports] == ["resync"]
    assert bytes(read.pictures[2].samples.data) == picture(3)


@pytest.mark.fault("F132")
@pytest.mark.parametrize("missing", [1, 11, 12, 13])
def test_an_end_within_a_frame_is_reported(missing: int) -> None:
    read = ReadResult(stream(1, 2)[:-missing])
    assert read.values == [1]
    assert read.broken
    assert read.reports[-1][0] == "broken"


@pytest.mark.fault("F132")
def test_a_stream_that_turns_into_garbage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(y4m, "MAX_GARBAGE", 1000)
    monkeypatch.setattr(y4m, "SEARCH", 500)
    with refused("F132", MediaError, match="without the beginning of a frame"):
        ReadResult(stream(1) + b"\xfe" * 5000)
    read = ReadResult(stream(1) + b"\xfe" * 600)
    assert read.broken
    assert read.values == [1]


def test_concatenated_streams_are_read() -> None:
    other = b"YUV4MPEG2 H2 W2 Cmono\nFRAME\n" + b"\x07" * 4
    read = ReadResult(stream(1) + other)
    assert read.values == [1, 7]
    assert [one.layout.pixel_format for one in read.pictures] == ["yuv420p", "gray"]


@pytest.mark.fault("F132")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "ended before its first byte"),
        (b"\x1aE\xdf\xa3 matroska", "begins with"),
        (b"YUV4MPEG2 W4 C420\n", "is damaged"),
        (b"YUV4MPEG2 W4 H2 F25:x\n", "is damaged"),
        (b"YUV4MPEG2 W4 H2 Cxyz\n", "are not known"),
        (b"YUV4MPEG2 W400000 H200000\n", "claims frames of 400000x200000"),
        (b"YUV4MPEG2 W0 H2\n", "claims frames of 0x2"),
        (b"YUV4MPEG2 W4 H2", "does not end"),
        (b"YUV4MPEG2 " + b"W4 " * 5000, "does not end"),
    ],
)
def test_invalid_streams_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(MediaError, match=message):
        ReadResult(data)


@pytest.mark.parametrize("size", [(16, 8), (5, 3)])
@pytest.mark.parametrize("pixel_format", ["yuv420p", "yuv422p", "yuv444p", "gray", "yuv420p10le", "yuvj420p"])
def test_bytes_equal_those_of_ffmpeg(tmp_path: Path, pixel_format: str, size: tuple[int, int]) -> None:
    """Round trip from FFmpeg through our reader and writer back to FFmpeg: the same bytes and planes."""
    path, copy = tmp_path / "in.y4m", tmp_path / "out.y4m"
    pixels = np.random.default_rng(0).integers(0, 256, (3, size[1], size[0], 3), np.uint8)
    with av.open(str(path), "w", format="yuv4mpegpipe", options={"strict": "-1"}) as container:
        encoder = container.add_stream("wrapped_avframe", rate=25)
        encoder.width, encoder.height, encoder.pix_fmt = *size, pixel_format
        for one in pixels:
            frame = av.VideoFrame.from_ndarray(one, format="rgb24").reformat(format=pixel_format)
            container.mux(encoder.encode(frame))
    source = open_live(str(path), lambda *report: None)
    with copy.open("wb") as file:
        output = PictureOutput(file.fileno(), source.facts, raw=False, drop=False)
        pictures = list(source)
        for one in pictures:
            output.write(one, one.samples, None)
        output.close()
    source.close()
    assert copy.read_bytes() == path.read_bytes()
    with av.open(str(path)) as container:
        for one, reference in zip(pictures, container.decode(video=0), strict=True):
            layout = PictureLayout(reference.width, reference.height, reference.format.name)
            assert bytes(layout.from_frame(reference).data) == bytes(one.samples.data)
            assert RgbOfPictures()(one).shape == (size[1], size[0], 3)


def test_marks_are_comments_that_ffmpeg_accepts(tmp_path: Path) -> None:
    path = tmp_path / "marked.y4m"
    layout = PictureLayout(16, 16, "yuv420p")
    samples = layout.black()
    one = LivePicture(layout.to_frame(samples), layout, None, b" Ip", samples)
    with path.open("wb") as file:
        output = PictureOutput(file.fileno(), StreamFacts(layout, Fraction(25)), raw=False, drop=False)
        output.write(one, one.samples, "black")
        output.write(one, one.samples, None)
        output.close()
    assert path.read_bytes().count(b"FRAME Ip XDAMAGED=black\n") == 1
    with av.open(str(path)) as container:
        assert len(list(container.decode(video=0))) == 2


@pytest.mark.parametrize("pixel_format", ["rgb24", "bgr24", "rgba", "nv12", "yuyv422", "yuv420p", "gray16le"])
def test_raw_frames_are_read(pixel_format: str) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=pixel_format)
    layout = PictureLayout(8, 6, pixel_format)
    data = bytes(layout.from_frame(frame).data)
    out, into = os.pipe()
    os.write(into, data + data[:10])
    os.close(into)
    reports: list[tuple[str, int]] = []
    reader = RawReader(out, StreamFacts(layout), lambda *report: reports.append(report))
    pictures = list(reader)
    os.close(out)
    assert [bytes(one.samples.data) for one in pictures] == [data]
    assert reports == [("broken", 10)]
    assert reader.broken
    if pixel_format == "rgb24":
        assert (RgbOfPictures()(pictures[0]) == pixels).all()


def test_unsupported_raw_formats_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.raw"
    file.write_bytes(b"123456")
    with pytest.raises(BadValue, match="need both"):
        open_live(str(file), lambda *report: None, size=(2, 2))
    for name in ("pal8", "0rgb", "monob", "nonsense"):
        with pytest.raises(BadValue, match="choose another pixel format"):
            open_live(str(file), lambda *report: None, size=(2, 2), pixel_format=name)


@pytest.mark.fault("F133")
@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("rtsp://admin:se/cr?et@cam/1", "rtsp://..."),
        ("rtsp://admin:secret@[::1]:554/a", "rtsp://[::1]:554/a"),
        ("http://cam/a.m3u8?token=secret", "http://cam/a.m3u8?..."),
        ("rtsp://[secret", "rtsp://..."),
        ("rtsp://cam/secret@x", "rtsp://..."),
        ("a file.mp4", "a file.mp4"),
    ],
)
def test_addresses_are_printed_without_credentials(address: str, printed: str) -> None:
    assert hide_credentials(address) == printed
