"""Timelines of videos: correct detections, missed actions and kinds of errors."""

from __future__ import annotations

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_on
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.score import score
from jostle.reporting.analysis.video_results import operating_score, timeline_of

CELL = "thumos14-c/black_frame:3"


def test_correct_detections_are_those_of_the_score(detection: RunRecord) -> None:
    for name in detection.truth.videos:
        timeline = timeline_of(detection, name, CELL)
        assert timeline.tiou == 0.5
        for cell, detections in ((CLEAN, timeline.clean), (CELL, timeline.corrupted)):
            truth = detection.truth.of_videos([name])
            scored = score(predictions_on(detection, cell, [name]), truth, protocol="thumos14", tious=[0.5])
            right = [one for one in detections if one.kind == "true_positive"]
            assert len(right) == (scored.matches.taken_by >= 0).sum()
            assert len(detections) == 4
            for correct in right:
                action = timeline.actions[correct.action or 0]
                assert correct.tiou >= 0.5
                assert correct.label == action.label
                assert action.found_clean if cell == CLEAN else action.found_corrupted


def test_actions_are_sorted_by_start_and_some_are_missed(detection: RunRecord) -> None:
    timelines = [timeline_of(detection, name, CELL) for name in detection.truth.videos]
    for timeline in timelines:
        assert [action.start for action in timeline.actions] == sorted(action.start for action in timeline.actions)
        assert timeline.end >= max(action.end for action in timeline.actions)
    assert any(action.lost for timeline in timelines for action in timeline.actions)
    assert {one.kind for timeline in timelines for one in timeline.corrupted} > {"true_positive", "background"}


def test_detections_below_a_score_can_be_left_out(detection: RunRecord) -> None:
    threshold = operating_score(detection)
    timeline = timeline_of(detection, detection.truth.videos[0], CELL, sure=threshold)
    assert all(one.score >= threshold for one in (*timeline.clean, *timeline.corrupted))
    assert (detection.predictions(CLEAN).score >= threshold).sum() == len(detection.truth)


def test_timeline_as_json(detection: RunRecord) -> None:
    payload = timeline_of(detection, detection.truth.videos[0], CELL).to_dict()
    assert payload["format"] == 1
    assert set(payload["clean"][0]) == {"start", "end", "label", "score", "tiou", "kind", "action"}


def test_unknown_videos_cells_and_tasks_are_refused(detection: RunRecord, recognition: RunRecord) -> None:
    with pytest.raises(UnknownName, match=r"no video of .* is called 'video_00'"):
        timeline_of(detection, "video_00", CELL)
    with pytest.raises(UnknownName, match=r"no cell of .* is called 'fog:9'"):
        timeline_of(detection, "video_0000", "fog:9")
    with pytest.raises(BadValue, match="a run of recognition has no detections"):
        timeline_of(recognition, "video_0000", CELL)
