"""Concealed frames are derived from decoder errors: from the first one to the next key frame."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from helpers.damaged_streams import ENCODERS, KEY_INTERVAL, lose_transport_packets, write_stream
from helpers.moving_film import moving_film
from jostle.io.video import decode
from jostle.io.video.concealment import LONGEST_S, MOST_SUSPECTS, Concealment
from jostle.io.video.decode import Reader
from jostle.io.video.live import DecodedFile
from jostle.io.video.location import locate
from jostle.io.video.raw_picture import RgbOfPictures

COUNT, FIRST = 60, 26
NEXT_KEY = FIRST + KEY_INTERVAL - FIRST % KEY_INTERVAL


def watch_file(path: Path) -> tuple[np.ndarray, list[bool]]:
    to_rgb = RgbOfPictures()
    with closing(DecodedFile(locate(path), lambda *report: None)) as pictures:
        pairs = [(to_rgb(picture), picture.concealed) for picture in pictures]
    return np.stack([frame for frame, _ in pairs]), [concealed for _, concealed in pairs]


@pytest.mark.fault("F146")
@pytest.mark.parametrize("codec", ENCODERS)
@pytest.mark.parametrize("suffix", [".avi", ".mkv", ".ts"])
def test_frames_from_an_error_to_the_next_key_frame_are_concealed(codec: str, suffix: str, tmp_path: Path) -> None:
    film = moving_film(COUNT)
    intact, intact_flags = watch_file(write_stream(tmp_path / f"sound{suffix}", film, codec))
    path = write_stream(tmp_path / f"damaged{suffix}", film, codec, damaged=(FIRST, FIRST + 3))
    frames, concealed = watch_file(path)
    differs = [bool((frame != expected).any()) for frame, expected in zip(frames, intact, strict=True)]
    assert not any(intact_flags)
    assert concealed == differs == [FIRST <= t < NEXT_KEY for t in range(COUNT)]
    with Reader(path) as reader:
        assert reader.concealed.tolist() == concealed
    with Reader(tmp_path / f"sound{suffix}") as reader:
        assert not reader.concealed.any()


@pytest.mark.fault("F146")
def test_lost_transport_packets_conceal_few_frames(tmp_path: Path) -> None:
    film = moving_film(COUNT)
    path = write_stream(tmp_path / "film.ts", film, "mpeg2")
    intact, _ = watch_file(path)
    count = path.stat().st_size // 188
    frames, concealed = watch_file(lose_transport_packets(path, range(count // 2, count // 2 + 2)))
    differs = np.array([(frame != expected).any() for frame, expected in zip(frames, intact, strict=True)])
    assert 1 <= differs.sum() < KEY_INTERVAL
    # The container may notice a loss at the packet before the damaged one.
    assert not (differs & ~np.array(concealed)).any()
    assert sum(concealed) <= differs.sum() + 1


def picture(pts: int | None, *, corrupt: bool = False, key: bool = False) -> Any:
    return SimpleNamespace(pts=pts, time=None if pts is None else pts / 10, is_corrupt=corrupt, key_frame=key)


def test_a_refused_packet_conceals_until_the_next_key_frame() -> None:
    tracker = Concealment("vp9")
    assert not tracker.is_concealed(picture(0, key=True))
    tracker.note_refused()
    assert [tracker.is_concealed(picture(t)) for t in (2, 3)] == [True, True]
    assert not tracker.is_concealed(picture(4, key=True))
    tracker.note_refused()
    assert not tracker.is_concealed(picture(6, key=True))
    assert not tracker.is_concealed(picture(7))


def test_a_damaged_key_frame_does_not_end_concealment() -> None:
    tracker = Concealment("h264")
    assert tracker.is_concealed(picture(0, corrupt=True, key=True))
    assert tracker.is_concealed(picture(1))
    tracker.note_packet(SimpleNamespace(is_corrupt=True, pts=3))  # type: ignore[arg-type]
    assert not tracker.is_concealed(picture(2, key=True))
    assert tracker.is_concealed(picture(3, key=True))


def test_unreliable_corrupt_flags_are_ignored() -> None:
    assert not Concealment("vp8").is_concealed(picture(0, corrupt=True))


def test_concealment_expires_in_streams_without_key_frames() -> None:
    tracker = Concealment("h264")
    assert tracker.is_concealed(picture(0, corrupt=True))
    assert tracker.is_concealed(picture(int(10 * LONGEST_S)))
    assert tracker.is_concealed(picture(None))
    assert not tracker.is_concealed(picture(int(10 * LONGEST_S) + 1))
    tracker.note_refused()
    assert tracker.is_concealed(picture(300))
    assert tracker.is_concealed(picture(5)), "a clock that is set back says nothing of how long it lasts"


def test_suspect_packets_without_a_picture_are_bounded() -> None:
    tracker = Concealment("h264")
    for number in range(10 * MOST_SUSPECTS):
        tracker.note_packet(SimpleNamespace(is_corrupt=True, pts=10**9 + number))  # type: ignore[arg-type]
    assert len(tracker._suspects) <= MOST_SUSPECTS
    assert not tracker.is_concealed(picture(0))


@pytest.mark.fault("F148")
def test_concealed_pixels_do_not_depend_on_the_cache(tmp_path: Path) -> None:
    film = np.stack([cv2.resize(frame, (512, 288)) for frame in moving_film(30)])
    path = write_stream(tmp_path / "damaged.avi", film, "h264", damaged=range(20, 30), seed=1)
    with Reader(path) as reader:
        frames = np.stack(list(reader))
        assert reader.concealed[20:].all()
    decode._scans.clear()
    with Reader(path, picture_bytes=0) as reader:
        assert np.array_equal(np.stack(list(reader)), frames)
        assert np.array_equal(reader.frame(25), frames[25])
