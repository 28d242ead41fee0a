"""Answers of recognisers and frame classifiers, video by video."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import small_recognition
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.results.record import RunRecord
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


def test_scores_equal_those_of_the_tables(records: dict[str, RunRecord]) -> None:
    record = records["recognition"]
    names, clean = record.table("clean")
    _, noisy = record.table(CELL)
    for i, name in enumerate(names):
        answers = answers_of(record, name, CELL)
        for score in answers.scores:
            k = record.labels.classes.index(score.label)
            assert (score.clean, score.corrupted) == (clean[i, k], noisy[i, k])
            assert score.true == (k == record.labels.label[i])
        assert answers.right_clean == (clean[i].argmax() == record.labels.label[i])
        assert answers.right_corrupted == (noisy[i].argmax() == record.labels.label[i])
        assert [score.clean for score in answers.scores] == sorted(
            (score.clean for score in answers.scores), reverse=True
        )


def test_true_class_is_always_included(records: dict[str, RunRecord]) -> None:
    for name in small_recognition.NAMES:
        answers = answers_of(records["recognition"], name, CELL, most=1)
        assert sum(score.true for score in answers.scores) == 1
        assert len(answers.scores) <= 3


def test_frames_are_compared_with_their_labels(records: dict[str, RunRecord]) -> None:
    record = records["frames"]
    names, scores = record.table("clean")
    predicted = dict(zip(names, np.argmax(scores, axis=1).tolist(), strict=True))
    (frame_set,) = frame_answers(record, "b", "gaussian_noise:2")
    assert frame_set.anchor.frame == "b/000020"
    assert [frame.frame for frame in frame_set.neighbours] == ["b/000019", "b/000022"]
    for frame in (frame_set.anchor, *frame_set.neighbours):
        assert frame.clean == predicted[frame.frame]
        assert frame.right_clean == (predicted[frame.frame] == 1)
        assert frame.to_dict()["right_clean"] == frame.right_clean


def test_unknown_videos_and_wrong_tasks_are_refused(records: dict[str, RunRecord]) -> None:
    with pytest.raises(UnknownName, match="'z'"):
        answers_of(records["recognition"], "z", CELL)
    with pytest.raises(UnknownName, match="'z'"):
        frame_answers(records["frames"], "z", "clean")
    with pytest.raises(BadValue, match="a run of frames has no scores of videos"):
        answers_of(records["frames"], "a", "clean")
    with pytest.raises(BadValue, match="a run of recognition has no sets of frames"):
        frame_answers(records["recognition"], "a", "clean")
