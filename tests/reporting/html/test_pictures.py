"""Picture strips: corrupted frames beside clean ones, within the size limit of a page."""

from __future__ import annotations

import base64
from pathlib import Path

import cv2
import numpy as np
import pytest

import jostle
from helpers.numpy_extractor import write_video
from helpers.synthetic_runs import write_run
from jostle.errors import DataError
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run, video_drops
from jostle.reporting.html.pictures import SHOTS, strip_of
from jostle.reporting.sections.videos import Album

CELL = "thumos14-c/black_frame:1"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("pictures")
    return RunRecord.read(write_run(folder / "run", source=write_video(folder / "film.mkv", 580)))


def decode_picture(address: str) -> np.ndarray:
    kind, _, data = address.partition(",")
    assert kind == "data:image/jpeg;base64"
    image = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return image


def test_corrupted_frames_are_among_the_shots(record: RunRecord) -> None:
    strip = strip_of(record, "video_0003", CELL, (9.0, 17.0))
    assert len(strip.shots) == SHOTS
    assert [shot.time_s for shot in strip.shots] == sorted(shot.time_s for shot in strip.shots)
    affected = [shot for shot in strip.shots if shot.affected]
    assert affected  # one or two of 192 frames, which an even sampling would miss
    for shot in strip.shots:
        clean, corrupted = decode_picture(shot.clean), decode_picture(shot.corrupted)
        assert clean.shape == corrupted.shape == (*strip.size, 3)
        assert clean.mean() > 20
        assert (corrupted.mean() < 3) == shot.affected
        assert any(a <= shot.time_s < b for a, b in strip.affected) == shot.affected
    assert strip.clip.startswith("data:video/mp4;base64,")
    assert strip.without_clip().weight < strip.weight


def test_strip_has_only_frames_of_the_model_input(tmp_path: Path) -> None:
    film, input_frames = write_video(tmp_path / "film.mkv", 100), (3, 9, 30, 49, 50, 51, 60, 72, 81, 90, 99)
    run = write_run(tmp_path / "run", "recognition", videos=3, source=film, shown=input_frames)
    strip = strip_of(RunRecord.read(run), "video_0001", CELL)
    assert strip.exact_input
    fps = 99 / strip.shots[-1].time_s
    assert {round(shot.time_s * fps) for shot in strip.shots} <= set(input_frames)
    assert len(strip.shots) == SHOTS
    assert any(shot.affected for shot in strip.shots)
    assert (
        "Strips consist of frames that the model received."
        in jostle.report([run], tmp_path / "r.html", draws=0).read_text()
    )


def test_invalid_input_frame_numbers_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "recognition", videos=3, shown=(1, 2))
    journal = run / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"shown": "1 2"', '"shown": "1 two"'))
    with pytest.raises(DataError, match="input frames of video_0001 are no numbers"):
        RunRecord.read(run).input_frames("video_0001")


def test_album_stops_at_its_size_limit(record: RunRecord) -> None:
    analysis = analyse_run(record)
    drop = video_drops(analysis)[0]
    full = strip_of(record, drop.name, drop.worst_cell)
    album = Album(full.without_clip().weight + 10)
    first, _ = album.strip(analysis, drop, None)
    assert not first.clip
    assert album.left_out == 1
    album.strip(analysis, drop, None)
    nothing, why = album.strip(analysis, drop, None)
    assert nothing is None
    assert "as many as it can carry" in why


def test_recognition_strip_is_corrupted_where_the_run_was(tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mkv", 100)
    strip = strip_of(
        RunRecord.read(write_run(tmp_path / "run", "recognition", videos=3, source=film)), "video_0001", CELL
    )
    assert [decode_picture(shot.corrupted).mean() < 3 for shot in strip.shots] == [
        shot.affected for shot in strip.shots
    ]
    ((start, end),) = strip.affected
    assert start <= strip.end_s / 2 < end  # the action is not annotated, so the middle of the clip is corrupted
