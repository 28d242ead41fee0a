"""A timeline says what was found, what was lost, and what is wrong with the rest."""

from __future__ import annotations

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.score import score
from jostle.reporting.analysis.cell_scores import predictions_on
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.video_results import operating_score, timeline_of

CELL = "thumos14-c/black_frame:3"


def test_what_is_right_is_what_the_score_takes_for_right(detection: RunRecord) -> None:
    for name in detection.truth.videos:
        found = timeline_of(detection, name, CELL)
        assert found.tiou == 0.5
        for which, told in ((CLEAN, found.clean), (CELL, found.corrupted)):
            truth = detection.truth.of_videos([name])
            scored = score(predictions_on(detection, which, [name]), truth, protocol="thumos14", tious=[0.5])
            right = [one for one in told if one.kind == "true_positive"]
            assert len(right) == (scored.matches.taken_by >= 0).sum()
            assert len(told) == 4
            for one in right:
                action = found.actions[one.action or 0]
                assert one.tiou >= 0.5
                assert one.label == action.label
                assert action.found_clean if which == CLEAN else action.found_corrupted


def test_actions_come_by_their_beginning_and_some_are_lost(detection: RunRecord) -> None:
    every = [timeline_of(detection, name, CELL) for name in detection.truth.videos]
    for found in every:
        assert [action.start for action in found.actions] == sorted(action.start for action in found.actions)
        assert found.end >= max(action.end for action in found.actions)
    assert any(action.lost for found in every for action in found.actions)
    assert {one.kind for found in every for one in found.corrupted} > {"true_positive", "background"}


def test_the_unsure_can_be_left_away(detection: RunRecord) -> None:
    cut = operating_score(detection)
    found = timeline_of(detection, detection.truth.videos[0], CELL, sure=cut)
    assert all(one.score >= cut for one in (*found.clean, *found.corrupted))
    assert (detection.predictions(CLEAN).score >= cut).sum() == len(detection.truth)


def test_it_becomes_json(detection: RunRecord) -> None:
    told = timeline_of(detection, detection.truth.videos[0], CELL).to_dict()
    assert told["format"] == 1
    assert set(told["clean"][0]) == {"start", "end", "label", "score", "tiou", "kind", "action"}


def test_what_is_not_there(detection: RunRecord, recognition: RunRecord) -> None:
    with pytest.raises(UnknownName, match=r"no video of .* is called 'video_00'"):
        timeline_of(detection, "video_00", CELL)
    with pytest.raises(UnknownName, match=r"no cell of .* is called 'fog:9'"):
        timeline_of(detection, "video_0000", "fog:9")
    with pytest.raises(BadValue, match="a run of recognition has no detections"):
        timeline_of(recognition, "video_0000", CELL)
