"""Faults 1 to 19: bad video files are refused or reported, and never crash or hang the reader."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from helpers.coded_videos import write_video
from helpers.fuzzing import run
from helpers.refusals import refused
from jostle.core.types.clip import Frame
from jostle.errors import EncoderMissing, MediaError, SourceChanged
from jostle.io.video import decode, encoders, ffmpeg_frames, picture_cache
from jostle.io.video.codec import Codec, encode
from jostle.io.video.decode import Reader, read
from jostle.io.video.encode import Writer
from jostle.io.video.source import probe
from jostle.io.video.validation import Limits

SIZE = (48, 64)


def scene(count: int = 60) -> list[Frame]:
    rng = np.random.default_rng(1)
    ground = rng.integers(40, 200, (*SIZE, 3))
    frames = []
    for t in range(count):
        frame = np.roll(ground, t, 1) // 2 + 40
        frame[10:25, t % 50 : t % 50 + 12] = (220, 40, 60)
        frames.append(frame.astype(np.uint8))
    return frames


def make(path: Path, frames: list[Frame] | None = None, **settings: Any) -> Path:
    return write_video(path, frames or scene(), **settings)


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write one valid file per container."""
    folder = tmp_path_factory.mktemp("clean")
    x264 = {"preset": "veryfast", "g": "12"}
    vp9 = {"cpu-used": "8", "deadline": "realtime"}
    return {
        "mp4": make(folder / "a.mp4", options=x264, muxing={"movflags": "+faststart"}),
        "late_index": make(folder / "late.mp4", options=x264),
        "mkv": make(folder / "a.mkv", options=x264),
        "avi": make(folder / "a.avi", encoder="mpeg4", options={"g": "6", "qmin": "2", "qmax": "2"}),
        "webm": make(folder / "a.webm", encoder="libvpx-vp9", options=vp9),
        "jpegs": make(folder / "jpegs.mkv", encoder="mjpeg", pixel_format="yuvj420p"),
    }


@pytest.fixture(autouse=True)
def clear_scan_cache() -> Iterator[None]:
    decode._scans.clear()
    yield
    decode._scans.clear()


def assert_refused(path: Path | str, fault: str, message: str, **settings: object) -> None:
    with refused(fault, MediaError, match=message) as caught:
        Reader(path, **settings)  # type: ignore[arg-type]
    assert caught.value.exit_code == 3


@pytest.mark.fault("F1")
def test_F01_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    assert_refused(tmp_path / "a.mp4", "F1", r"^a\.mp4: empty file; download or copy it again$")


@pytest.mark.fault("F2")
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\xff\xd8\xff\xe0" + bytes(400), "a JPEG image"),
        (b"\x89PNG\r\n\x1a\n" + bytes(400), "a PNG image"),
        (b"PK\x03\x04" + bytes(400), "a zip archive"),
        (b"%PDF-1.7\n" + bytes(400), "a PDF document"),
        (b"RIFF\x10\0\0\0WAVEfmt " + bytes(400), "WAV audio"),
        (b"ID3\x04" + bytes(400), "MP3 audio"),
        (b"Not a video at all.\n" * 40, "text"),
        ("Kein Video, sondern schöner Text.\n".encode() * 40, "text"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
    ],
)
def test_F02_not_a_video(content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(content)
    assert_refused(tmp_path / "a.mp4", "F2", rf"^a\.mp4: not a video but {kind}")


@pytest.mark.fault("F2")
def test_F02_unknown_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(np.random.default_rng(0).bytes(5000))
    assert_refused(tmp_path / "a.mp4", "F2", r"^a\.mp4: no video that FFmpeg can open \(.*\); check that it plays")


@pytest.mark.fault("F2")
def test_F02_a_codec_that_is_not_known(clean: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "a.mkv").write_bytes(clean["jpegs"].read_bytes().replace(b"V_MJPEG", b"V_OTHER"))
    assert_refused(tmp_path / "a.mkv", "F2", r"^a\.mkv: the installed FFmpeg has no decoder for its video stream$")


@pytest.mark.fault("F3")
def test_F03_missing_index(clean: dict[str, Path], tmp_path: Path) -> None:
    content = clean["late_index"].read_bytes()
    (tmp_path / "a.mp4").write_bytes(content[: len(content) // 2])
    assert_refused(
        tmp_path / "a.mp4", "F3", r"^a\.mp4: the index \(moov\) of this mp4 is missing.*; download it again$"
    )


@pytest.mark.fault("F4")
@pytest.mark.parametrize("kind", ["mp4", "mkv", "avi", "webm"])
def test_F04_truncated_mid_stream(kind: str, clean: dict[str, Path], tmp_path: Path) -> None:
    content = clean[kind].read_bytes()
    path = tmp_path / f"half.{kind}"
    path.write_bytes(content[: len(content) * 6 // 10])
    assert_refused(path, "F4", rf"^half\.{kind}: only \d+ of \d+ frames decode, less than 95%; download it again")
    with Reader(path, keep=0.1) as reader:
        assert 10 < len(reader) < 50
        assert len(list(reader)) == len(reader)
        gap = next(note for note in reader.warnings if "did not decode" in note)
        assert "they are left out" in gap
        assert len(np.unique(reader.block(0, len(reader)), axis=0)) == len(reader), "no frame is repeated"


@pytest.mark.fault("F4")
def test_F04_a_short_tail_is_reported_and_kept(clean: dict[str, Path], tmp_path: Path) -> None:
    with av.open(str(clean["mp4"])) as container:
        packets = [(p.pos, p.size) for p in container.demux(video=0) if p.size]
    content = clean["mp4"].read_bytes()
    last = max(packets)
    path = tmp_path / "a.mp4"
    path.write_bytes(content[: last[0] + last[1] // 2])
    with Reader(path) as reader:
        assert 58 <= len(reader) <= 60
        assert reader.damage
        assert reader.warnings
    with refused("F5", MediaError, match=r"damaged: .* leave out --strict"):
        Reader(path, strict=True)


def broken_jpegs(clean: dict[str, Path], path: Path, bad: tuple[int, ...]) -> Path:
    """Write a file of independent JPEG frames with known frames wiped out."""
    with av.open(str(clean["jpegs"])) as container:
        spots = [(p.pos, bytes(p)) for p in container.demux(video=0) if p.size]
    data = clean["jpegs"].read_bytes()
    for number in bad:
        payload = spots[number][1]
        assert data.count(payload) == 1
        data = data.replace(payload, bytes(len(payload)))
    path.write_bytes(data)
    return path


@pytest.mark.fault("F4")
def test_F04_no_frame_decodes(clean: dict[str, Path], tmp_path: Path) -> None:
    path = broken_jpegs(clean, tmp_path / "a.mkv", tuple(range(60)))
    assert_refused(path, "F4", r"^a\.mkv: no frame decodes; download it again$")
    assert "no frame decodes near the beginning" in probe(path).warnings


@pytest.mark.fault("F5")
def test_F05_lost_frames_are_dropped_held_or_refused(clean: dict[str, Path], tmp_path: Path) -> None:
    path = broken_jpegs(clean, tmp_path / "a.mkv", (20, 21))
    expected = read(clean["jpegs"])
    good = [i for i in range(60) if i not in (20, 21)]
    with Reader(path) as reader:
        assert reader.pts.tolist() == expected.pts[good].tolist()
        assert np.array_equal(reader.block(0, 58), expected.frames[good])
        assert reader.damage == [(0.8, 0.88)]
        assert "2 of 60 frames did not decode; they are left out" in reader.warnings
    with Reader(path, on_missing="hold") as reader:
        assert reader.pts.tolist() == expected.pts.tolist()
        indices = [19 if i in (20, 21) else i for i in range(60)]
        assert np.array_equal(reader.block(0, 60), expected.frames[indices])
        assert reader.damage == [(0.8, 0.88)]
        assert "2 of 60 frames did not decode; 2 are held" in reader.warnings
    assert_refused(
        path,
        "F5",
        r"^a\.mkv: 2 of 60 frames did not decode; pass --on-missing hold to repeat the last good frame$",
        on_missing="error",
    )
    assert_refused(path, "F5", r"^a\.mkv: damaged: 2 of 60 frames did not decode, 0 are marked", strict=True)


@pytest.mark.fault("F5")
@pytest.mark.parametrize("kind", ["mp4", "mkv", "avi"])
def test_F05_bit_flips_in_the_middle(kind: str, clean: dict[str, Path], tmp_path: Path) -> None:
    with av.open(str(clean[kind])) as container:
        payload = [bytes(p) for p in container.demux(video=0) if p.size][26]
    rng = np.random.default_rng(4)
    hurt = bytearray(payload)
    for offset in rng.integers(6, len(hurt), 12):
        hurt[offset] ^= 0x5A
    path = tmp_path / f"a.{kind}"
    path.write_bytes(clean[kind].read_bytes().replace(payload, bytes(hurt)))
    expected = read(clean[kind])
    with Reader(path, keep=0.5) as reader:
        first = reader.block(0, len(reader))
        assert reader.pts[-1] == expected.pts[-1], "reading goes on after the damage"
        assert np.array_equal(first[:20], expected.frames[:20])
        assert not np.array_equal(first[-1], first[0])
        if kind != "avi":  # the MPEG-4 decoder does not report what it concealed
            assert reader.damage
            assert all(0.8 <= start < end <= 2.4 for start, end in reader.damage)
    decode._scans.clear()
    with Reader(path, keep=0.5, threads=4) as reader:
        backward = np.stack([reader.frame(i) for i in range(len(reader) - 1, -1, -1)])
        assert np.array_equal(backward[::-1], first), "damaged frames are the same every time"


@pytest.mark.fault("F5")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mp4", "mkv"])
def test_F05_detected_damage_does_not_depend_on_the_number_of_threads(
    kind: str, clean: dict[str, Path], tmp_path: Path
) -> None:
    with av.open(str(clean[kind])) as container:
        payloads = [bytes(p) for p in container.demux(video=0) if p.size]
    rng = np.random.default_rng(5)
    noticed = 0
    for number in range(60):
        payload = payloads[rng.integers(3, len(payloads) - 3)]
        hurt = bytearray(payload)
        for offset in rng.integers(6, len(hurt), 12):
            hurt[offset] ^= 0x5A
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(clean[kind].read_bytes().replace(payload, bytes(hurt)))
        results = []
        for threads in (1, 4, 4):
            decode._scans.clear()
            with Reader(path, threads=threads) as reader:
                results.append((reader.pts.tobytes(), reader.block(0, len(reader)).tobytes(), tuple(reader.damage)))
        if results[0][2]:  # flips that the decoder does not detect give another picture, not damage
            noticed += 1
            assert len(set(results)) == 1
    assert noticed > 20


@pytest.mark.fault("F6")
def test_F06_mutated_headers() -> None:
    """In processes of their own, of which tests/fuzz gives thousands more."""
    result = run(["video"], 100)
    assert result.bad == []
    assert result.counts.total() == 100
    assert min(result.counts["read"], result.counts["refused"]) > 5, "the mutations are too mild or too harsh"


@pytest.mark.fault("F8")
def test_F08_a_file_that_decodes_without_end_is_refused(
    clean: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds in any process; a decoder that does not return is ended in workers only, see test_running."""
    monkeypatch.setattr(ffmpeg_frames, "decode_packet", lambda *_: time.sleep(0.1) or [])
    assert_refused(clean["mp4"], "F10", r"^a\.mp4: not read within 0\.3 s", limits=Limits(max_open_s=0.3))


@pytest.mark.fault("F9")
def test_F09_resolution_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.avi", scene(3), encoder="ffv1", pixel_format="bgr0")
    data = bytearray(path.read_bytes())
    offset = data.index(b"strf") + 12
    data[offset : offset + 8] = struct.pack("<ii", 100_000, 100_000)
    path.write_bytes(data)
    assert_refused(
        path, "F9", r"^a\.avi: claims no frame size, or one of more than 64000000 pixels; raise JOSTLE_MAX_PIXELS"
    )
    small = make(tmp_path / "b.mp4", scene(3))
    monkeypatch.setenv("JOSTLE_MAX_PIXELS", "3000")
    with pytest.raises(MediaError, match=r"^b\.mp4: claims frames of 64x48, more than 3000 pixels"):
        probe(small)


@pytest.mark.fault("F10")
def test_F10_frame_and_time_limits(clean: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert_refused(
        clean["mp4"],
        "F10",
        r"^a\.mp4: more than 20 frames; cut it or raise the limit$",
        limits=Limits(max_frames=20),
    )
    assert_refused(clean["mkv"], "F10", r"^a\.mkv: not read within 0 s", limits=Limits(max_open_s=0))
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 30_000)
    with Reader(clean["avi"]) as reader:
        for _ in reader:
            assert reader._pictures._bytes <= 30_000, "memory stays flat"


@pytest.mark.fault("F11")
def test_F11_files_without_video_are_refused(tmp_path: Path) -> None:
    sound_only = tmp_path / "sound.mp4"
    with av.open(str(sound_only), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 48000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert_refused(sound_only, "F11", r"^sound\.mp4: holds only audio; give a file with moving pictures$")
    cover = tmp_path / "cover.mp4"
    with av.open(str(cover), "w") as container:
        sound = container.add_stream("aac", rate=48000)
        art = container.add_stream("mjpeg", rate=1)
        art.width, art.height, art.pix_fmt = 64, 48, "yuvj420p"
        art.disposition = av.stream.Disposition.attached_pic
        container.mux(art.encode(av.VideoFrame.from_ndarray(scene(1)[0])))
        container.mux(art.encode(None))
        container.mux(sound.encode(frame))
        container.mux(sound.encode(None))
    assert_refused(cover, "F11", r"^cover\.mp4: holds only cover art")


@pytest.mark.fault("F11")
def test_F11_a_file_of_data_alone(clean: dict[str, Path], tmp_path: Path) -> None:
    content = clean["mp4"].read_bytes()
    for video, data in ((b"vide\0", b"meta\0"), (b"avc1", b"text"), (b"vmhd", b"nmhd")):
        content = content.replace(video, data)
    (tmp_path / "a.mp4").write_bytes(content)
    assert_refused(tmp_path / "a.mp4", "F11", r"^a\.mp4: holds no video stream; give a file with moving pictures$")


@pytest.mark.fault("F12")
def test_F12_several_streams(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("mpeg4", rate=25) for _ in range(2)]
        for number, stream in enumerate(streams):
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.disposition = av.stream.Disposition.default if number else av.stream.Disposition(0)
        for frame in scene(5):
            container.mux(streams[0].encode(av.VideoFrame.from_ndarray(frame)))
            container.mux(streams[1].encode(av.VideoFrame.from_ndarray(frame[::-1].copy())))
        for stream in streams:
            container.mux(stream.encode(None))
    with Reader(path) as reader:
        assert len(reader) == 5
        assert "2 video streams; the default one is used" in reader.warnings
        upside_down = np.abs(reader.frame(0).astype(int) - scene(1)[0][::-1]).mean()
        assert upside_down < np.abs(reader.frame(0).astype(int) - scene(1)[0]).mean()


@pytest.mark.fault("F12")
def test_F12_size_change_mid_stream(tmp_path: Path) -> None:
    codec = Codec("libx264", "h264", {"preset": "veryfast", "bf": 0})
    small = [frame[:24, :32] for frame in scene(10)]
    path = tmp_path / "a.h264"
    with open(path, "wb") as file:
        for part in (scene(10), small):
            file.write(b"".join(payload for _, payload in encode(part, codec, fps=Fraction(25))))
    with Reader(path) as reader:
        assert len(reader) == 20
        assert reader.block(0, 20).shape == (20, *SIZE, 3)
        assert "the frame size changes on the way; frames are scaled to the first size" in reader.warnings


@pytest.mark.fault("F13")
def test_F13_duplicate_and_late_stamps(tmp_path: Path) -> None:
    def edit(packets: list[av.Packet]) -> None:
        for packet in packets:
            packet.pts = packet.dts = packet.pts + 50
        packets[10].pts = packets[10].dts = packets[9].pts

    path = make(tmp_path / "a.mkv", encoder="mjpeg", pixel_format="yuvj420p", edit=edit)
    with Reader(path) as reader:
        assert len(reader) == 60
        np.testing.assert_allclose(reader.pts, np.arange(60) / 25, atol=1e-9)
        assert reader.first_tick == 2000
        assert "the first timestamp is not zero; times count from it" in reader.warnings
        assert any(note.startswith("1 timestamps are out of order") for note in reader.warnings)
        assert np.array_equal(reader.frame(30), list(reader)[30])


@pytest.mark.fault("F13")
def test_F13_no_stamps_at_all(tmp_path: Path) -> None:
    codec = Codec("libx264", "h264", {"preset": "veryfast", "g": 10, "bf": 0})
    path = tmp_path / "a.h264"
    path.write_bytes(b"".join(payload for _, payload in encode(scene(), codec, fps=Fraction(25))))
    with Reader(path) as reader:
        assert len(reader) == 60
        np.testing.assert_allclose(reader.pts, np.arange(60) / float(reader.fps), atol=1e-6)
        forward = list(reader)
        assert all(np.array_equal(reader.frame(i), forward[i]) for i in (50, 3, 40))


@pytest.mark.fault("F13")
def test_F13_packed_b_frames_of_real_clips(media_folder: Path) -> None:
    with Reader(next(media_folder.glob("hmdb51_*.avi"))) as reader:
        np.testing.assert_allclose(reader.pts, np.arange(83) / 30)
        assert not reader.damage
        assert any("timestamps cannot be trusted" in note for note in reader.warnings)


@pytest.mark.fault("F14")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["mp4", "mkv", "avi"])
def test_F14_one_and_two_frames(count: int, kind: str, tmp_path: Path) -> None:
    path = make(tmp_path / f"a.{kind}", scene(count), encoder="mpeg4" if kind == "avi" else "libx264")
    with Reader(path) as reader:
        assert len(reader) == count
        assert reader.pts.tolist() == [0.0, 0.04][:count]
        assert reader.block(0, count).shape == (count, *SIZE, 3)
        assert reader.index_at(0.039) == 0
    assert len(read(path)) == count


FLAT = {
    "red": (200, 30, 40),
    "green": (40, 180, 60),
    "blue": (30, 50, 190),
    "grey": (128, 128, 128),
    "white": (235,) * 3,
}


@pytest.mark.fault("F15")
@pytest.mark.parametrize("colour", FLAT)
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_F15_colours_survive_a_round_trip(colour: str, name: str, tmp_path: Path) -> None:
    picture = np.full((*SIZE, 3), FLAT[colour], np.uint8)
    with Writer(tmp_path / name, size=SIZE, fps=25) as writer:
        for _ in range(3):
            writer.write(picture)
    # 8-bit YUV has coarser steps than RGB; a wrong matrix or range is off by 8 and more.
    assert np.abs(read(tmp_path / name).frames.astype(int) - picture).max() <= 4


def tagged(path: Path, colorspace: int, color_range: int, pixel_format: str = "yuv420p") -> Frame:
    """Decode a flat picture whose stored samples are 120, 90, 170, with the given tags."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, pixel_format
        stream.codec_context.colorspace, stream.codec_context.color_range = colorspace, color_range
        picture = av.VideoFrame(64, 48, pixel_format)
        for plane, value in zip(picture.planes, (120, 90, 170), strict=True):
            plane.update(bytes([value]) * plane.buffer_size)
        picture.colorspace, picture.color_range = colorspace, color_range
        container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return read(path).frames[0, 20, 20]


@pytest.mark.fault("F15")
@pytest.mark.parametrize(
    ("colorspace", "color_range", "expected"),
    [
        (2, 0, (188, 102, 44)),  # unspecified: BT.601, limited
        (6, 1, (188, 102, 44)),
        (1, 1, (196, 107, 41)),  # BT.709
        (6, 2, (179, 103, 53)),  # full range
        (1, 2, (186, 107, 49)),
        (9, 1, (192, 101, 40)),  # BT.2020
    ],
)
def test_F15_matrix_and_range(colorspace: int, color_range: int, expected: tuple[int, ...], tmp_path: Path) -> None:
    colour = tagged(tmp_path / "a.mp4", colorspace, color_range)
    # FFmpeg's fast converter works in 8-bit tables, two off at worst.
    assert np.abs(colour.astype(int) - expected).max() <= 2


@pytest.mark.fault("F15")
@pytest.mark.parametrize(
    ("encoder", "pixel_format", "depth"),
    [
        ("libx264", "yuv420p10le", 10),
        ("ffv1", "gray", 8),
        ("ffv1", "bgra", 8),
        ("ffv1", "yuva420p", 8),
        ("ffv1", "yuv444p16le", 16),
        ("libx264", "yuv444p", 8),
        ("libx264", "yuv422p", 8),
    ],
)
def test_F15_pixel_formats(encoder: str, pixel_format: str, depth: int, tmp_path: Path) -> None:
    picture = np.full((*SIZE, 3), 150 if pixel_format == "gray" else (180, 90, 60), np.uint8)
    path = make(tmp_path / "a.mkv", [picture] * 3, encoder=encoder, pixel_format=pixel_format)
    facts = probe(path)
    assert (facts.pixel_format, facts.bit_depth) == (pixel_format, depth)
    assert np.abs(read(path).frames.astype(int) - picture).max() <= 5


@pytest.mark.fault("F15")
@pytest.mark.parametrize(("degrees", "turns"), [(90, -1), (180, 2), (270, 1)])
def test_F15_rotation(degrees: int, turns: int, clean: dict[str, Path], tmp_path: Path) -> None:
    one, zero = 0x10000, 0
    matrix = {90: (zero, one, -one, zero), 180: (-one, zero, zero, -one), 270: (zero, -one, one, zero)}[degrees]
    data = bytearray(clean["mp4"].read_bytes())
    offset = data.index(b"tkhd") + 4 + 40
    data[offset : offset + 36] = struct.pack(">9i", matrix[0], matrix[1], 0, matrix[2], matrix[3], 0, 0, 0, 0x40000000)
    path = tmp_path / "a.mp4"
    path.write_bytes(data)
    facts = probe(path)
    assert facts.rotation == degrees
    assert (facts.width, facts.height) == ((64, 48) if degrees == 180 else (48, 64))
    assert np.array_equal(read(path).frames[7], np.rot90(read(clean["mp4"]).frames[7], turns))


@pytest.mark.fault("F15")
def test_F15_odd_pixels_interlacing_and_hdr_are_reported(tmp_path: Path) -> None:
    wide = make(tmp_path / "wide.mp4", sample_aspect_ratio=Fraction(4, 3))
    assert probe(wide).sample_aspect == Fraction(4, 3)
    assert "pixels are 4/3 as wide as high; frames keep their stored size" in probe(wide).warnings
    fields = make(tmp_path / "fields.ts", encoder="mpeg2video", options={"flags": "+ildct+ilme", "field_order": "tt"})
    assert probe(fields).interlaced is True
    assert "interlaced; frames are used as stored, both fields together" in probe(fields).warnings
    bright = make(tmp_path / "hdr.mp4", pixel_format="yuv420p10le", color_trc=16, color_primaries=9, colorspace=9)
    assert "HDR; converted to 8-bit RGB without tone mapping" in probe(bright).warnings
    assert read(bright).frames.shape == (60, *SIZE, 3)


@pytest.mark.fault("F16")
def test_F16_a_missing_encoder_is_reported_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "_has_encoder", lambda name: name != "libx265")
    with pytest.raises(EncoderMissing, match="the installed FFmpeg has no encoder libx265") as caught:
        Writer(tmp_path / "a.mp4", size=SIZE, fps=25, codec="h265")
    assert (caught.value.fault, caught.value.exit_code) == ("F16", 5)
    assert os.listdir(tmp_path) == []


@pytest.mark.fault("F16")
def test_F16_a_failing_encoder_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.io.video.video_file import VideoFile

    original = VideoFile._mux
    calls = iter(range(1000))

    def failing(self: VideoFile, packets: list[av.Packet]) -> None:
        if next(calls) > 50:
            raise av.error.ExternalError(542398533, "Generic error in an external library")
        original(self, packets)

    monkeypatch.setattr(VideoFile, "_mux", failing)

    def work() -> None:
        with Writer(tmp_path / "a.mp4", size=SIZE, fps=25) as writer:
            for frame in scene():
                writer.write(frame)

    with refused("F16", MediaError, match=r"^a\.mp4: writing failed \(.*Generic error.*\); nothing was kept"):
        work()
    assert os.listdir(tmp_path) == []


@pytest.mark.fault("F17")
@pytest.mark.parametrize("address", ["concat:a.mp4|b.mp4", "pipe:0", Path("http://example.org/a.mp4")])
def test_F17_addresses_of_ffmpeg_and_in_files(address: str | Path) -> None:
    assert_refused(address, "F17", "only local files are read, not addresses; download it first$")


@pytest.mark.fault("F17")
def test_F17_addresses_of_cameras() -> None:
    pytest.importorskip("fsspec")
    assert_refused("rtsp://user:secret@h/s", "F17", "^rtsp://h/s: rtsp:// is not among the addresses that videos are")


@pytest.mark.fault("F17")
def test_F17_playlists(clean: dict[str, Path], tmp_path: Path) -> None:
    target = clean["mp4"]
    lists = {
        "an HLS playlist": f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n",
        "an FFmpeg concat list": f"ffconcat version 1.0\nfile '{target}'\n",
        "a DASH manifest": '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>',
    }
    for kind, text in lists.items():
        (tmp_path / "a.mp4").write_text(text)
        assert_refused(tmp_path / "a.mp4", "F17", rf"^a\.mp4: is {kind}; give the video file itself$")


@pytest.mark.fault("F17")
def test_F17_ffmpeg_itself_opens_no_playlist(
    clean: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jostle.io.video import ffmpeg

    path = tmp_path / "a.mp4"
    path.write_text(f"ffconcat version 1.0\nfile '{clean['mp4']}'\n")
    monkeypatch.setattr(ffmpeg, "check_kind", lambda file, name: file.close())
    with pytest.raises(MediaError, match="no video that FFmpeg can open"):
        Reader(path)


@pytest.mark.fault("F18")
def test_F18_special_files_are_refused(clean: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.mp4").mkdir()
    assert_refused(tmp_path / "folder.mp4", "F4", r"^folder\.mp4: holds no images; they end in ")
    os.mkfifo(tmp_path / "pipe.mp4")
    assert_refused(tmp_path / "pipe.mp4", "F18", r"^pipe\.mp4: is a named pipe")
    assert_refused("/dev/zero", "F18", "^zero: is a device")
    (tmp_path / "dangling.mp4").symlink_to(tmp_path / "nowhere.mp4")
    assert_refused(
        tmp_path / "dangling.mp4", "F18", r"^dangling\.mp4: a symbolic link that points nowhere; fix the link$"
    )
    (tmp_path / "loop.mp4").symlink_to(tmp_path / "loop.mp4")
    assert_refused(tmp_path / "loop.mp4", "F18", r"^loop\.mp4: a loop of symbolic links")
    monkeypatch.chdir(tmp_path)  # addresses of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.mp4")
        assert_refused(tmp_path / "socket.mp4", "F18", r"^socket\.mp4: is a socket")
    (tmp_path / "link.mp4").symlink_to(clean["mp4"])
    assert len(read(tmp_path / "link.mp4")) == 60


@pytest.mark.fault("F18")
def test_F18_links_to_pipes_and_missing_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.mp4").symlink_to(tmp_path / "pipe")
    assert_refused(tmp_path / "a.mp4", "F18", r"^a\.mp4: is a named pipe")
    assert_refused(tmp_path / "none.mp4", "F21", r"^none\.mp4: no such file; check the path$")
    assert_refused("a\0.mp4", "F23", "a path cannot hold a NUL character")


@pytest.mark.fault("F19")
def test_F19_input_changes_while_being_read(clean: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(clean["mp4"].read_bytes())

    def use() -> None:
        with Reader(path) as reader:
            reader.frame(0)
            with open(path, "ab") as file:
                file.write(b"more")

    with pytest.raises(SourceChanged, match=r"^a\.mp4: changed while it was being read; run again") as caught:
        use()
    assert (caught.value.fault, caught.value.exit_code) == ("F19", 6)
    reader = Reader(path)
    reader.check_unchanged()
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceChanged, match="changed while it was being read"):
        reader.check_unchanged()
    reader.close()


@pytest.mark.fault("F22", "F23")
@pytest.mark.parametrize(
    "name",
    ["-a.mp4", "a%05d.mp4", "a b'c\"d.mp4", "line\nbreak.mp4", "é.mp4", "e\u0301.mp4", "raw\udcff.mp4", "http:a.mp4"],
)
def test_F22_F23_names_that_tools_trip_over(name: str, clean: dict[str, Path], tmp_path: Path) -> None:
    path = os.path.join(tmp_path, name)
    with open(path, "wb") as file:
        file.write(clean["mp4"].read_bytes())
    with Reader(path) as reader:
        assert len(reader) == 60
        assert repr(reader).isprintable()
    decode._scans.clear()
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        assert probe(name).width == 64
    finally:
        os.chdir(here)
