"""Reading folders of images as videos."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from jostle.errors import MediaError, SourceChanged
from jostle.io.video.decode import Reader, read
from jostle.io.video.encode import Writer
from jostle.io.video.source import fingerprint_of, identity_of, probe


def write(path: Path, level: int = 90, size: tuple[int, int] = (6, 8)) -> Path:
    image = np.zeros((*size, 3), np.uint8)
    image[..., 0] = level  # red
    cv2.imwrite(str(path), image[..., ::-1])
    return path


def fill(folder: Path, names: Sequence[str]) -> Path:
    folder.mkdir(exist_ok=True)
    for level, name in enumerate(names, 1):
        write(folder / name, level)
    return folder


def levels(folder: Path, **options: object) -> list[int]:
    with Reader(folder, **options) as reader:  # type: ignore[arg-type]
        return reader.block(0, len(reader))[:, 0, 0, 0].tolist()


def assert_refused(folder: Path, message: str, fault: str = "", **options: object) -> None:
    with pytest.raises(MediaError, match=message) as caught:
        Reader(folder, **options)  # type: ignore[arg-type]
    assert not fault or caught.value.fault == fault


@pytest.mark.parametrize(
    "pattern",
    ["frame_{}.png", "img_{:05d}.png", "{:05d}.png", "frame_{:010d}.png", "v_Run_g01_c02_{}.png", "2024-a{}b.PNG"],
)
def test_images_are_ordered_by_number_in_any_common_naming(pattern: str, tmp_path: Path) -> None:
    fill(tmp_path, [pattern.format(number) for number in (9, 10, 8, 11)])
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / f"._{pattern.format(9)}").write_bytes(b"resource fork")
    with Reader(tmp_path, fps=12) as reader:
        assert reader.names == tuple(pattern.format(number) for number in (8, 9, 10, 11))
        assert reader.block(0, 4)[:, 0, 0].tolist() == [[3, 0, 0], [1, 0, 0], [2, 0, 0], [4, 0, 0]]
        assert (reader.size, reader.fps, len(reader), reader.end_s) == ((6, 8), Fraction(12), 4, pytest.approx(4 / 12))
        assert reader.number_of(pattern.format(10)) == 2
        assert (reader.coded_path, reader.warnings, reader.damage) == (None, (), [])
        with pytest.raises(MediaError, match="no such image"):
            reader.number_of("frame-3.png")


def test_missing_numbers_are_named_and_leave_gaps_in_time(tmp_path: Path) -> None:
    fill(tmp_path, [f"{number}.png" for number in (1, 2, 4, 5, 6, 9, 10)])
    with Reader(tmp_path, fps=10) as reader:
        assert reader.pts.tolist() == pytest.approx([0, 0.1, 0.3, 0.4, 0.5, 0.8, 0.9])
        assert "3 numbers are missing (3, 7 to 8); the other images keep their times" in reader.warnings
        assert reader.damage == [(pytest.approx(0.2), pytest.approx(0.3)), (pytest.approx(0.6), pytest.approx(0.8))]
    assert levels(tmp_path, on_missing="hold") == [1, 2, 2, 3, 4, 5, 5, 5, 6, 7]
    assert_refused(tmp_path, "3 images are missing or cannot be decoded; .*3, 7 to 8", "F5", on_missing="error")
    assert_refused(tmp_path, "3 images are missing", "F5", strict=True)


def test_regular_steps_and_timestamps_are_no_gaps(tmp_path: Path) -> None:
    fill(tmp_path / "steps", [f"{number:04d}.png" for number in (10, 20, 30)])
    with Reader(tmp_path / "steps", fps=10) as reader:
        assert reader.pts.tolist() == pytest.approx([0, 0.1, 0.2])
        assert reader.warnings == ("numbers go up in steps of 10; each step is one frame",)
    fill(tmp_path / "stamps", [f"{number}.png" for number in (1403636579763555584, 1403636579813555456)] + ["3.png"])
    with Reader(tmp_path / "stamps", fps=10) as reader:
        assert reader.pts.tolist() == pytest.approx([0, 0.1, 0.2])
        assert "numbers are taken for an order" in reader.warnings[0]


def test_frame_rate_precedence(tmp_path: Path) -> None:
    fill(tmp_path, ["1.png", "2.png"])
    with Reader(tmp_path) as reader:
        assert reader.fps == 30
        assert "30 frames per second are assumed; set it with --fps" in reader.warnings[0]
    assert read(tmp_path, fps=25).fps == 25
    (tmp_path / "times.json").write_text('{"fps": "24000/1001"}')
    with Reader(tmp_path, fps=25) as reader:
        assert reader.fps == Fraction(24000, 1001)
        assert reader.warnings == ("times.json says 23.976 frames per second, and takes precedence",)
    assert probe(tmp_path).fps == Fraction(24000, 1001)


def test_written_folders_are_read_with_their_times(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (4, 6, 8, 3), np.uint8)
    with Writer(tmp_path / "film", size=(6, 8), fps=12, time_base=Fraction(1, 1000)) as writer:
        for tick, frame in zip((0, 83, 250, 333), pictures, strict=True):
            writer.write(frame, tick)
    with Reader(tmp_path / "film") as reader:
        assert (reader.fps, reader.time_base, reader.ticks.tolist()) == (12, Fraction(1, 1000), [0, 83, 250, 333])
        assert (reader.block(0, 4) == pictures).all()
        assert reader.warnings == ()
    (tmp_path / "film" / "00001.png").unlink()  # the other images keep their times
    with Reader(tmp_path / "film") as reader:
        assert reader.ticks.tolist() == [0, 250, 333]
    times = tmp_path / "film" / "times.json"
    times.write_text(json.dumps(json.loads(times.read_text()) | {"ticks": [0, 1]}))
    assert_refused(tmp_path / "film", "it has the times of 2 images, and there is one of number 3", "F98")
    times.write_text(json.dumps(json.loads(times.read_text()) | {"ticks": [0, "a"]}))
    assert_refused(tmp_path / "film", "'ticks' is no list of whole numbers", "F98")


def test_optical_flow_images_are_left_out_with_a_warning(tmp_path: Path) -> None:
    names = [f"{kind}_{number:05d}.png" for number in (1, 2) for kind in ("flow_x", "flow_y", "img")]
    fill(tmp_path, [*names, "cover.png"])
    with Reader(tmp_path, fps=5) as reader:
        assert reader.names == ("img_00001.png", "img_00002.png")
        assert reader.warnings == ("the frames are img_*.png; left out: cover.png, flow_x_*.png, flow_y_*.png",)
    write(tmp_path / "mask_00001.png")
    assert_refused(tmp_path, r"more than one series of images, img_\*.png \(2\) and mask_00001.png \(1\)", "F20")


def test_one_picture_is_a_video_of_one_frame(tmp_path: Path) -> None:
    fill(tmp_path, ["cat.png"])
    assert levels(tmp_path, fps=25) == [1]


@pytest.mark.parametrize("other", ["001.png", "1.jpg"])
def test_duplicate_numbers_are_refused(other: str, tmp_path: Path) -> None:
    fill(tmp_path, ["1.png", "2.png", other])
    assert_refused(tmp_path, "two images have number 1", "F20")


@pytest.mark.fault("F119")
def test_images_of_another_size_are_refused_by_name(tmp_path: Path) -> None:
    fill(tmp_path, [f"{number}.png" for number in range(5)])
    write(tmp_path / "5.png", size=(5, 8))
    assert_refused(tmp_path, r"of one size, and 1 are not 8x6: 5\.png", "F119")


def test_files_that_do_not_decode_are_left_out(tmp_path: Path) -> None:
    assert_refused(tmp_path, "holds no images", "F4")
    fill(tmp_path, [f"{number}.png" for number in range(40)])
    (tmp_path / "3.png").write_bytes(b"not an image")
    (tmp_path / "7.png").write_bytes(b"")
    with Reader(tmp_path, fps=10) as reader:
        assert len(reader) == 38
        assert reader.pts[2:5].tolist() == pytest.approx([0.2, 0.4, 0.5])
        assert "2 are no images and left out: 3.png, 7.png" in reader.warnings
    assert_refused(tmp_path, "2 images are missing or cannot be decoded", "F5", strict=True)
    for number in range(8, 14):
        (tmp_path / f"{number}.png").write_bytes(b"")
    assert_refused(tmp_path, "only 32 of 40 frames decode", "F4")


def test_truncated_images_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, [f"{number}.jpg" for number in range(4)])
    data = (tmp_path / "2.jpg").read_bytes()
    (tmp_path / "2.jpg").write_bytes(data[:-20])
    with Reader(tmp_path, fps=10) as reader:
        assert len(reader) == 4
        assert reader.damage == [(pytest.approx(0.2), pytest.approx(0.3))]
        assert "1 are cut off at the end and used as far as they go: 2.jpg" in reader.warnings
    assert_refused(tmp_path, "1 are marked as damaged", "F5", strict=True)


def test_frames_do_not_depend_on_order_or_threads(tmp_path: Path) -> None:
    pictures = np.random.default_rng(1).integers(0, 256, (23, 16, 24, 3), np.uint8)
    for number, picture in enumerate(pictures):
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture[..., ::-1])
    for threads in (1, 3):
        with Reader(tmp_path, threads=threads, fps=10) as reader:
            assert (reader.block(0, 23) == pictures).all()
            for number in (22, 0, 7, 6, 8):
                assert (reader.frame(number) == pictures[number]).all()
            assert (np.stack(list(reader)) == pictures).all()


def test_changes_of_a_folder_are_detected_by_content(tmp_path: Path) -> None:
    fill(tmp_path, [f"{number}.png" for number in range(3)])
    state, fingerprint = identity_of(tmp_path), fingerprint_of(tmp_path)
    with pytest.raises(SourceChanged, match="changed while it was being read"), Reader(tmp_path, fps=10):
        write(tmp_path / "1.png", 200)
    assert identity_of(tmp_path) != state
    assert fingerprint_of(tmp_path) != fingerprint
    write(tmp_path / "1.png", 2)
    assert identity_of(tmp_path) != state  # another modification time
    assert fingerprint_of(tmp_path) == fingerprint
    os.rename(tmp_path / "1.png", tmp_path / "3.png")
    assert fingerprint_of(tmp_path) != fingerprint
