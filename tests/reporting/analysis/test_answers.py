"""Answers of recognisers and frame classifiers, video by video."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import small_recognition
from jostle.errors import UnknownName
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.tasks.views import ClassScoresView, FrameSetsView

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
    names, clean = record.predictions("clean").names, record.predictions("clean").scores
    noisy = record.predictions(CELL).scores
    for i, name in enumerate(names):
        answers = record.view(name, CELL)
        assert isinstance(answers, ClassScoresView)
        for score in answers.scores:
            k = record.annotations.classes.index(score.label)
            assert (score.clean, score.corrupted) == (clean[i, k], noisy[i, k])
            assert score.true == (k == record.annotations.label[i])
        assert answers.right_clean == (clean[i].argmax() == record.annotations.label[i])
        assert answers.right_corrupted == (noisy[i].argmax() == record.annotations.label[i])
        assert [score.clean for score in answers.scores] == sorted(
            (score.clean for score in answers.scores), reverse=True
        )


def test_true_class_is_always_included(records: dict[str, RunRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.evaluation.tasks.recognition.view.MOST", 1)
    for name in small_recognition.NAMES:
        answers = records["recognition"].view(name, CELL)
        assert isinstance(answers, ClassScoresView)
        assert sum(score.true for score in answers.scores) == 1
        assert len(answers.scores) <= 3


def test_frames_are_compared_with_their_labels(records: dict[str, RunRecord]) -> None:
    record = records["frames"]
    table = record.predictions("clean")
    predicted = dict(zip(table.names, np.argmax(table.scores, axis=1).tolist(), strict=True))
    view = record.view("b", "gaussian_noise:2")
    assert isinstance(view, FrameSetsView)
    (frame_set,) = view.sets
    assert frame_set.anchor.frame == "b/000020"
    assert [frame.frame for frame in frame_set.neighbours] == ["b/000019", "b/000022"]
    for frame in (frame_set.anchor, *frame_set.neighbours):
        assert frame.clean == predicted[frame.frame]
        assert frame.right_clean == (predicted[frame.frame] == 1)


def test_unknown_videos_are_refused(records: dict[str, RunRecord]) -> None:
    with pytest.raises(UnknownName, match="'z'"):
        records["recognition"].view("z", CELL)
    with pytest.raises(UnknownName, match="'z'"):
        records["frames"].view("z", "clean")
