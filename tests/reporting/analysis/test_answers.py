"""What a recogniser and a frame classifier answered, video by video."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import small_recognition
from jostle.errors import BadValue, UnknownName
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.video_results import answers_of, frame_answers

CELL = "ucf101-p/gaussian_noise:2"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunRecord]:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "films").mkdir()
    films = small_recognition.write_videos(folder / "films")
    small_recognition.run(films, folder / "recognition", cells=["clean", CELL])
    small_recognition.run(films, folder / "frames", task="frames", cells=["clean", "gaussian_noise:2"])
    return {name: RunRecord.read(folder / name) for name in ("recognition", "frames")}


def test_scores_are_those_of_the_tables(records: dict[str, RunRecord]) -> None:
    record = records["recognition"]
    names, clean = record.table("clean")
    _, noisy = record.table(CELL)
    for i, name in enumerate(names):
        found = answers_of(record, name, CELL)
        for one in found.scores:
            k = record.labels.classes.index(one.label)
            assert (one.clean, one.corrupted) == (clean[i, k], noisy[i, k])
            assert one.true == (k == record.labels.label[i])
        assert found.right_clean == (clean[i].argmax() == record.labels.label[i])
        assert found.right_corrupted == (noisy[i].argmax() == record.labels.label[i])
        assert [one.clean for one in found.scores] == sorted((one.clean for one in found.scores), reverse=True)


def test_the_true_class_is_there_however_low(records: dict[str, RunRecord]) -> None:
    for name in small_recognition.NAMES:
        found = answers_of(records["recognition"], name, CELL, most=1)
        assert sum(one.true for one in found.scores) == 1
        assert len(found.scores) <= 3


def test_frames_are_held_to_their_labels(records: dict[str, RunRecord]) -> None:
    record = records["frames"]
    names, scores = record.table("clean")
    taken = dict(zip(names, np.argmax(scores, axis=1).tolist(), strict=True))
    (found,) = frame_answers(record, "b", "gaussian_noise:2")
    assert found.anchor.frame == "b/000020"
    assert [one.frame for one in found.neighbours] == ["b/000019", "b/000022"]
    for one in (found.anchor, *found.neighbours):
        assert one.clean == taken[one.frame]
        assert one.right_clean == (taken[one.frame] == 1)
        assert one.to_dict()["right_clean"] == one.right_clean


def test_what_there_is_not(records: dict[str, RunRecord]) -> None:
    with pytest.raises(UnknownName, match="'z'"):
        answers_of(records["recognition"], "z", CELL)
    with pytest.raises(UnknownName, match="'z'"):
        frame_answers(records["frames"], "z", "clean")
    with pytest.raises(BadValue, match="a run of frames has no scores of videos"):
        answers_of(records["frames"], "a", "clean")
    with pytest.raises(BadValue, match="a run of recognition has no sets of frames"):
        frame_answers(records["recognition"], "a", "clean")
