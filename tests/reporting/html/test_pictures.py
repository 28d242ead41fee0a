"""Strips show what is struck beside what was there, and a page takes only so many."""

from __future__ import annotations

import base64
from pathlib import Path

import cv2
import numpy as np
import pytest

from helpers.made_runs import made_run
from helpers.numpy_extractor import write_video
from jostle.errors import DataError
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import survey, video_drops
from jostle.reporting.html.pictures import SHOTS, strip_of
from jostle.reporting.html.report import write_report
from jostle.reporting.html.worst_videos import Album

CELL = "thumos14-c/black_frame:1"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("pictures")
    return RunRecord.read(made_run(folder / "run", source=write_video(folder / "film.mkv", 580)))


def picture(address: str) -> np.ndarray:
    kind, _, data = address.partition(",")
    assert kind == "data:image/jpeg;base64"
    made = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert made is not None
    return made


def test_struck_frames_are_among_the_shots_and_are_struck(record: RunRecord) -> None:
    strip = strip_of(record, "video_0003", CELL, (9.0, 17.0))
    assert len(strip.shots) == SHOTS
    assert [shot.time_s for shot in strip.shots] == sorted(shot.time_s for shot in strip.shots)
    hit = [shot for shot in strip.shots if shot.affected]
    assert hit  # one or two of 192 frames, which an even choice would miss
    for shot in strip.shots:
        clean, corrupted = picture(shot.clean), picture(shot.corrupted)
        assert clean.shape == corrupted.shape == (*strip.size, 3)
        assert clean.mean() > 20
        assert (corrupted.mean() < 3) == shot.affected
        assert any(a <= shot.time_s < b for a, b in strip.affected) == shot.affected
    assert strip.clip.startswith("data:video/mp4;base64,")
    assert strip.without_clip().weight < strip.weight


def test_a_strip_shows_frames_that_the_model_wexact_input(tmp_path: Path) -> None:
    film, seen = write_video(tmp_path / "film.mkv", 100), (3, 9, 30, 49, 50, 51, 60, 72, 81, 90, 99)
    run = made_run(tmp_path / "run", "recognition", videos=3, source=film, shown=seen)
    strip = strip_of(RunRecord.read(run), "video_0001", CELL)
    assert strip.exact_input
    fps = 99 / strip.shots[-1].time_s
    assert {round(shot.time_s * fps) for shot in strip.shots} <= set(seen)
    assert len(strip.shots) == SHOTS
    assert any(shot.affected for shot in strip.shots)
    assert (
        "Strips consist of frames that the model received."
        in write_report([run], tmp_path / "r.html", draws=0).read_text()
    )


def test_frames_shown_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", "recognition", videos=3, shown=(1, 2))
    journal = run / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"shown": "1 2"', '"shown": "1 two"'))
    with pytest.raises(DataError, match="input frames of video_0001 are no numbers"):
        RunRecord.read(run).input_frames("video_0001")


def test_an_album_stops_when_it_is_full(record: RunRecord) -> None:
    found = survey(record)
    drop = video_drops(found)[0]
    full = strip_of(record, drop.name, drop.worst_cell)
    album = Album(full.without_clip().weight + 10)
    first, _ = album.strip(found, drop, None)
    assert first is not None
    assert not first.clip
    assert album.left_out == 1
    album.strip(found, drop, None)
    nothing, why = album.strip(found, drop, None)
    assert nothing is None
    assert "as many as it can carry" in why


def test_a_clip_of_recognition_is_struck_where_its_run_struck_it(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mkv", 100)
    strip = strip_of(
        RunRecord.read(made_run(tmp_path / "run", "recognition", videos=3, source=film)), "video_0001", CELL
    )
    assert [picture(shot.corrupted).mean() < 3 for shot in strip.shots] == [shot.affected for shot in strip.shots]
    ((start, end),) = strip.affected
    assert start <= strip.end_s / 2 < end  # nobody said where the action is, so the middle is that of the clip
