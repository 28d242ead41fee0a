"""Drops of classes and videos: clean minus corrupted score, largest first."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run, class_drops, video_drops


def test_class_drops_of_selected_cells(detection: RunRecord) -> None:
    analysis = analyse_run(detection)
    every, one = class_drops(analysis), class_drops(analysis, ["thumos14-c/black_frame:3"])
    assert [drop.loss for drop in every] == sorted((drop.loss for drop in every), reverse=True)
    assert len(every) == len(analysis.classes)
    for drop in one:
        assert drop.corrupted == drop.worst
        assert drop.worst_cell == "thumos14-c/black_frame:3"
    by_name = {drop.name: drop for drop in every}
    index = analysis.classes.index("jump")
    assert by_name["jump"].corrupted == pytest.approx(analysis.by_class[1:, index].mean())
    assert by_name["jump"].worst == analysis.by_class[1:, index].min()


def test_every_video_has_one_drop(recognition: RunRecord) -> None:
    analysis = analyse_run(recognition)
    drops = video_drops(analysis)
    assert sorted(drop.name for drop in drops) == sorted(analysis.videos)
    assert np.mean([drop.clean for drop in drops]) == pytest.approx(recognition.scores.clean)


def test_no_drops_without_corrupted_cells(frames: RunRecord) -> None:
    assert video_drops(analyse_run(frames), []) == []
