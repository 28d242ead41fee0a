"""Reading: exact frames in any order, exact times and bounded decoding work."""

from __future__ import annotations

import shutil
import sys
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from jostle.core.types.clip import Frame, Frames
from jostle.errors import BadValue, MediaError, SourceChanged
from jostle.io.video import decode, ffmpeg_frames, picture_cache
from jostle.io.video.colour import ToRgb
from jostle.io.video.decode import Reader, read
from jostle.io.video.ffmpeg import open_input, picture_stream
from jostle.io.video.location import locate
from jostle.io.video.source import probe
from jostle.io.video.timestamps import IndexMismatch
from jostle.io.video.validation import Limits

KINDS = [
    "h264_b_frames",
    "h264_open_gop",
    "h264_long_gop",
    "h264_vfr",
    "mpeg4_avi",
    "mpeg2_ts",
    "vp9_mkv",
    "hevc_mp4",
    "mjpeg_mkv",
]
ONE_FRAME = 64 * 48 * 3 // 2
# OpenCV converts colours as FFmpeg does by default, which on some processors is up to three grey levels off. It also
# uses processor-specific inverse transforms for MPEG-4 and Motion JPEG, so that their pictures drift.
TOLERANCE = 6


@pytest.fixture(autouse=True)
def clear_scan_cache() -> None:
    decode._scans.clear()


def max_difference(frames: Frames, others: Frames) -> int:
    return int(np.abs(frames.astype(int) - others).max())


def decode_sequentially(path: Path) -> list[Frame]:
    """Decode all frames in order with FFmpeg, without an index, a seek or a second thread."""
    limits = Limits()
    with open_input(locate(path), limits) as container:
        stream = picture_stream(container, str(path), limits)
        stream.codec_context.thread_count = 1
        convert = ToRgb((stream.height, stream.width), 0)
        return [convert(frame) for frame in container.decode(stream)]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_close_to_those_of_opencv(kind: str, videos: dict[str, Path]) -> None:
    capture = cv2.VideoCapture(str(videos[kind]))
    with Reader(videos[kind]) as reader:
        for frame in reader:
            ok, picture = capture.read()
            assert ok
            assert max_difference(frame, picture[..., ::-1]) <= TOLERANCE
        assert not capture.read()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_random_access_equals_sequential_reading(
    kind: str, videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = decode_sequentially(videos[kind])
    assert len(expected) == 60
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 5 * ONE_FRAME)
    rng = np.random.default_rng(11)
    orders = [range(60), range(59, -1, -1), rng.integers(0, 60, 50), [0, 59, 1, 58, 30, 29, 31]]
    with Reader(videos[kind]) as reader:
        assert len(reader) == 60
        for order in orders:
            for number in order:
                assert np.array_equal(reader.frame(int(number)), expected[number]), number
        assert np.array_equal(reader.block(20, 33), expected[20:33])
        assert np.array_equal(np.stack(list(reader)), expected)


@pytest.mark.parametrize("kind", ["h264_b_frames", "vp9_mkv", "hevc_mp4"])
def test_pixels_do_not_depend_on_threads(kind: str, videos: dict[str, Path]) -> None:
    with Reader(videos[kind], threads=1) as single:
        expected = single.block(0, 60)
    decode._scans.clear()
    with Reader(videos[kind], threads=4) as threaded:
        assert np.array_equal(threaded.block(0, 60), expected)


def test_seeking_survives_a_log_level(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import av

    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", ONE_FRAME)
    av.logging.set_level(av.logging.PANIC)
    try:
        with Reader(videos["h264_b_frames"]) as reader:
            assert [reader.frame(i).shape for i in (50, 3, 40, 2)] == [(48, 64, 3)] * 4
    finally:
        av.logging.set_level(None)


@pytest.fixture
def decoded_count(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = {"pictures": 0, "starts": 0}
    original = ffmpeg_frames.FfmpegFrames.pictures

    def counting(self: ffmpeg_frames.FfmpegFrames, start: int):  # type: ignore[no-untyped-def]
        counts["starts"] += 1
        for item in original(self, start):
            counts["pictures"] += 1
            yield item

    monkeypatch.setattr(ffmpeg_frames.FfmpegFrames, "pictures", counting)
    return counts


def test_reading_forward_never_seeks(
    videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch, decoded_count: dict[str, int]
) -> None:
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", ONE_FRAME)
    with Reader(videos["h264_b_frames"]) as reader:
        reader._pictures.clear()
        for lo in range(0, 60, 7):
            reader.block(lo, min(60, lo + 7))
    assert decoded_count == {"pictures": 60, "starts": 1}


@pytest.mark.parametrize(("kind", "cached_frames", "limit"), [("h264_b_frames", 14, 120), ("h264_long_gop", 20, 240)])
def test_reading_backward_is_not_quadratic(
    kind: str,
    cached_frames: int,
    limit: int,
    videos: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    decoded_count: dict[str, int],
) -> None:
    with Reader(videos[kind]) as reader:
        weight = reader._source.weight(reader._pictures.picture(0))
        reader._pictures.max_bytes = cached_frames * weight
        reader._pictures.clear()
        for number in range(59, -1, -1):
            reader.frame(number)
    assert decoded_count["pictures"] <= limit


def test_a_short_clip_is_decoded_once(videos: dict[str, Path], decoded_count: dict[str, int]) -> None:
    with Reader(videos["h264_b_frames"]) as reader:
        reader.block(0, 60)
    assert decoded_count["starts"] == 0


@pytest.mark.parametrize(("cached_frames", "decodes_again"), [(60, False), (5, True)])
def test_a_larger_cache_avoids_decoding_again(
    videos: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    decoded_count: dict[str, int],
    cached_frames: int,
    decodes_again: bool,
) -> None:
    copy = shutil.copy(videos["mpeg4_avi"], tmp_path / "copy.avi")  # its scan would be cached for the next reader
    with Reader(copy) as reader:
        weight = reader._source.weight(reader._pictures.picture(0))  # the padding of rows depends on the processor
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", weight)
    decoded_count["pictures"] = 0
    with Reader(videos["mpeg4_avi"], picture_bytes=cached_frames * weight) as reader:
        for _ in range(3):
            reader.frame(30)
            reader.frame(59)
    assert (decoded_count["pictures"] > 0) == decodes_again


def test_cached_pictures_stay_within_the_budget(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 10 * ONE_FRAME)
    with Reader(videos["mpeg4_avi"]) as reader:
        for number in (*range(60), *range(59, -1, -1)):
            reader.frame(number)
            assert reader._pictures._bytes <= 10 * ONE_FRAME
            assert reader._pictures._bytes == sum(
                reader._source.weight(picture) for picture in reader._pictures._pictures.values()
            )


def test_times_are_exact(videos: dict[str, Path]) -> None:
    gaps = np.random.default_rng(5).integers(1, 90, 60)
    expected = [Fraction(int(t), 1000) for t in np.cumsum(gaps) - gaps[0]]
    with Reader(videos["h264_vfr"]) as reader:
        assert [int(tick) * reader.time_base for tick in reader.ticks] == expected
        assert reader.pts.tolist() == [float(time) for time in expected]
        assert reader.first_tick == 0
        assert not reader.warnings
        for number in (0, 7, 59):
            assert reader.index_at(float(reader.pts[number])) == number
        assert reader.index_at(float(reader.pts[7]) - 1e-4) == 6
        assert np.array_equal(reader.at(float(reader.pts[7]) + 1e-4), reader.frame(7))
        with pytest.raises(BadValue, match="nothing is displayed at -1"):
            reader.at(-1.0)
        with pytest.raises(BadValue, match="nothing is displayed at 100"):
            reader.at(100.0)


def test_frames_outside_the_video_are_refused(videos: dict[str, Path]) -> None:
    with Reader(videos["h264_b_frames"]) as reader:
        with pytest.raises(BadValue, match=r"b\.mp4: no frame 60; it has frames 0 to 59"):
            reader.frame(60)
        with pytest.raises(BadValue, match=r"no frames 10 to 61; it has 60 frames"):
            reader.block(10, 61)
        with pytest.raises(BadValue, match="on_missing must be error, drop or hold"):
            Reader(videos["h264_b_frames"], on_missing="guess")  # type: ignore[arg-type]


def test_read_by_number_and_by_time(videos: dict[str, Path]) -> None:
    clip = read(videos["h264_b_frames"])
    assert (len(clip), clip.fps, clip.size) == (60, Fraction(25), (48, 64))
    by_number = read(videos["h264_b_frames"], 10, 20)
    assert np.array_equal(by_number.frames, clip.frames[10:20])
    assert by_number.pts.tolist() == clip.pts[10:20].tolist()
    by_time = read(videos["h264_b_frames"], 0.4, 0.8)
    assert np.array_equal(by_time.frames, by_number.frames)
    assert len(read(videos["h264_b_frames"], 55, 1000)) == 5
    assert len(read(videos["h264_b_frames"], 20, 10)) == 0
    with pytest.raises(BadValue, match=r"start must not be negative, got -1; frames and seconds count from 0"):
        read(videos["h264_b_frames"], -1)
    with pytest.raises(BadValue, match="stop must be a frame number"):
        read(videos["h264_b_frames"], 0, "end")  # type: ignore[arg-type]


def test_the_second_reader_reuses_the_scan(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with Reader(videos["h264_b_frames"]) as reader:
        first = reader.block(0, 60)
    monkeypatch.setattr(ffmpeg_frames.FfmpegFrames, "scan", lambda *_: pytest.fail("scanned again"))
    with Reader(videos["h264_b_frames"]) as reader:
        assert np.array_equal(reader.block(0, 60), first)


def test_without_pyav_the_error_names_the_package(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    for reading in (Reader, probe):
        with pytest.raises(MediaError, match="reading video needs PyAV, which is not installed: pip install av"):
            reading(videos["h264_b_frames"])


def test_real_clips_are_close_to_those_of_opencv(media_folder: Path) -> None:
    clips = sorted(path for path in media_folder.iterdir() if path.suffix in (".mp4", ".avi", ".mkv"))
    assert len(clips) > 5
    for path in clips:
        capture = cv2.VideoCapture(str(path))
        with Reader(path) as reader:
            for number, frame in enumerate(reader):
                ok, picture = capture.read()
                assert ok, (path.name, number)
                if number % 10 == 0:
                    assert max_difference(frame, picture[..., ::-1]) <= TOLERANCE, (path.name, number)
            assert not capture.read()[0], path.name
            assert reader.pts[0] == 0
            assert (np.diff(reader.pts) > 0).all()


def test_a_deleted_file_is_detected(videos: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(videos["h264_b_frames"].read_bytes())
    with pytest.raises(SourceChanged, match=r"copy\.mp4: gone while it was being read"), Reader(copy):
        copy.unlink()


def test_the_first_scan_reports_progress(tmp_path: Path) -> None:
    from jostle.io.video.encode import Writer

    path = tmp_path / "progress.mp4"
    with Writer(path, size=(32, 32), fps=25) as writer:
        for level in range(100):
            writer.write(np.full((32, 32, 3), level, np.uint8))
    progress: list[tuple[int, int]] = []
    with Reader(path, progress=lambda done, total: progress.append((done, total))):
        pass
    assert progress == [(0, 100), (32, 100), (64, 100), (96, 100)]


@pytest.mark.parametrize("kind", KINDS)
def test_single_pass_reading_gives_the_same_frames(
    kind: str, videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 5 * ONE_FRAME)
    with Reader(videos[kind]) as reader:
        expected = reader.ticks.tolist(), reader.stamps, reader.fps, reader.damage, reader.warnings
        frames = np.stack(list(reader))
    decode._scans.clear()
    with Reader(videos[kind], once=True) as reader:
        facts = reader.ticks.tolist(), reader.stamps, reader.fps, reader.damage, reader.warnings
        assert facts == expected
        assert np.array_equal(np.stack(list(reader)), frames)
        assert np.array_equal(reader.frame(7), frames[7])  # back to a frame read before


def test_a_long_file_with_an_index_is_decoded_once(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 5 * ONE_FRAME)
    decoded = []
    summed = ffmpeg_frames.checksum
    monkeypatch.setattr(ffmpeg_frames, "checksum", lambda frame: decoded.append(1) or summed(frame))
    with Reader(videos["h264_b_frames"], once=True) as reader:
        assert not decoded
        assert len(list(reader)) == len(decoded) == len(reader)


def test_single_pass_reading_decodes_skipped_frames(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames not yet decoded have no checksum, so a seek to one could not be verified."""
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 5 * ONE_FRAME)
    with Reader(videos["h264_open_gop"]) as reader:
        frames = np.stack(list(reader))
    decode._scans.clear()
    with Reader(videos["h264_open_gop"], once=True) as reader:
        for number in (50, 3, 59, 20):
            assert np.array_equal(reader.frame(number), frames[number])


def test_a_file_that_differs_from_its_index_is_reported(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 5 * ONE_FRAME)
    data = bytearray(videos["h264_long_gop"].read_bytes())
    middle = data.index(b"mdat") + (data.index(b"moov") - data.index(b"mdat")) // 2
    data[middle : middle + 600] = bytes(600)  # the header of a picture among them
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    with Reader(path) as reader:
        assert reader.damage
    decode._scans.clear()
    with Reader(path, once=True) as reader, pytest.raises(IndexMismatch, match="differs from the index"):
        list(reader)
