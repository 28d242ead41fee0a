"""Corrupted video files: playable while loading, reproducible and independent of the index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.video import corrupt_video
from jostle.io.video import decode, picture_cache
from jostle.io.video.decode import read
from jostle.io.video.encode import Writer
from jostle.io.video.ffmpeg_frames import FfmpegFrames


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.mp4"
    y, x = np.mgrid[:48, :64]
    with Writer(path, size=(48, 64), fps=25) as writer:
        for t in range(30):
            writer.write(np.stack([(x * 3 + t) % 256, (y * 5 + t) % 256, (x + y) * 2], -1).astype(np.uint8))
    return path


def test_a_corrupted_file_plays_while_it_loads(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mp4"
    corrupt_video(source, [Spec.parse("brightness:2")], out)
    data = out.read_bytes()
    assert 0 < data.index(b"moov") < data.index(b"mdat")
    # A file written without faststart has the same frames; only the position of the index differs.
    lossless = tmp_path / "lossless.mkv"
    corrupt_video(source, [Spec.parse("brightness:2")], lossless, lossless=True)
    plain = tmp_path / "plain.mp4"
    with Writer(plain, size=(48, 64), fps=25) as writer:
        for frame in read(lossless).frames:
            writer.write(frame)
    assert np.array_equal(read(out).frames, read(plain).frames)
    assert plain.read_bytes().index(b"mdat") < plain.read_bytes().index(b"moov")


def test_output_files_are_reproducible(source: Path, tmp_path: Path) -> None:
    for name, jobs in (("one.mp4", 1), ("two.mp4", 2)):
        corrupt_video(source, [Spec.parse("shot_noise:3")], tmp_path / name, jobs=jobs)
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "two.mp4").read_bytes()


@pytest.mark.parametrize("damaged", [False, True])
def test_reading_by_index_does_not_change_the_output(
    source: Path, tmp_path: Path, damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_cache, "_CACHE_BYTES", 5 * 64 * 48)
    if damaged:
        data = bytearray(source.read_bytes())
        middle = (data.index(b"mdat") + data.index(b"moov")) // 2
        data[middle : middle + 40] = bytes(40)
        source.write_bytes(data)
    results = {}
    for name, passes in (("trusting", 1), ("careful", 2)):
        decode._scans.clear()
        if passes == 2:
            monkeypatch.setattr(FfmpegFrames, "predict_scan", lambda self, least_bytes: None)
        done = corrupt_video(source, [Spec.parse("frame_average:2")], tmp_path / f"{name}.mp4")
        results[name] = ((tmp_path / f"{name}.mp4").read_bytes(), done.frames, done.damage, done.warnings)
    assert results["trusting"] == results["careful"]
    assert bool(results["careful"][2]) == damaged
