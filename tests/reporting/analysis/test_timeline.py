"""Timelines of videos: correct detections, missed actions and kinds of errors."""

from __future__ import annotations

import pytest

from jostle.errors import UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.tasks.views import TimelineView
from jostle.metrics.score import score

CELL = "thumos14-c/black_frame:3"


def timeline_of(record: RunRecord, video: str, *, brief: bool = False) -> TimelineView:
    view = record.view(video, CELL, brief=brief)
    assert isinstance(view, TimelineView)
    return view


def test_correct_detections_are_those_of_the_score(detection: RunRecord) -> None:
    for name in detection.annotations.videos:
        timeline = timeline_of(detection, name)
        assert timeline.tiou == 0.5
        for cell, detections in ((CLEAN, timeline.clean), (CELL, timeline.corrupted)):
            truth = detection.annotations.of_videos([name])
            scored = score(predictions_of(detection, cell, [name]), truth, protocol="thumos14", tious=[0.5])
            right = [one for one in detections if one.kind == "true_positive"]
            assert len(right) == (scored.matches.taken_by >= 0).sum()
            assert len(detections) == 4
            for correct in right:
                action = timeline.actions[correct.action or 0]
                assert correct.tiou >= 0.5
                assert correct.label == action.label
                assert action.found_clean if cell == CLEAN else action.found_corrupted


def test_actions_are_sorted_by_start_and_some_are_missed(detection: RunRecord) -> None:
    timelines = [timeline_of(detection, name) for name in detection.annotations.videos]
    for timeline in timelines:
        assert [action.start for action in timeline.actions] == sorted(action.start for action in timeline.actions)
        assert timeline.end >= max(action.end for action in timeline.actions)
    assert any(action.lost for timeline in timelines for action in timeline.actions)
    assert {one.kind for timeline in timelines for one in timeline.corrupted} > {"true_positive", "background"}


def test_a_brief_view_has_as_many_detections_on_clean_video_as_actions(detection: RunRecord) -> None:
    timeline = timeline_of(detection, detection.annotations.videos[0], brief=True)
    threshold = timeline.threshold
    assert all(one.score >= threshold for one in (*timeline.clean, *timeline.corrupted))
    assert (detection.predictions(CLEAN).score >= threshold).sum() == len(detection.annotations)


def test_unknown_videos_and_cells_are_refused(detection: RunRecord) -> None:
    with pytest.raises(UnknownName, match="no video is called 'video_00'"):
        detection.view("video_00", CELL)
    with pytest.raises(UnknownName, match=r"no cell of .* is called 'fog:9'"):
        detection.view("video_0000", "fog:9")
