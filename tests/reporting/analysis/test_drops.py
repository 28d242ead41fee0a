"""Losses are clean less corrupted, the greatest first."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import class_drops, survey, video_drops


def test_drops_are_of_the_cells_asked_for(detection: RunRecord) -> None:
    found = survey(detection)
    every, one = class_drops(found), class_drops(found, ["thumos14-c/black_frame:3"])
    assert [drop.loss for drop in every] == sorted((drop.loss for drop in every), reverse=True)
    assert len(every) == len(found.classes)
    for drop in one:
        assert drop.corrupted == drop.worst
        assert drop.worst_cell == "thumos14-c/black_frame:3"
    by_name = {drop.name: drop for drop in every}
    at = found.classes.index("jump")
    assert by_name["jump"].corrupted == pytest.approx(found.by_class[1:, at].mean())
    assert by_name["jump"].worst == found.by_class[1:, at].min()


def test_every_video_is_there_once(recognition: RunRecord) -> None:
    found = survey(recognition)
    drops = video_drops(found)
    assert sorted(drop.name for drop in drops) == sorted(found.videos)
    assert np.mean([drop.clean for drop in drops]) == pytest.approx(recognition.scores.clean)


def test_nothing_corrupted_nothing_lost(frames: RunRecord) -> None:
    assert video_drops(survey(frames), []) == []
