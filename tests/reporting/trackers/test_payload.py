"""What trackers are told of a run."""

from __future__ import annotations

import re
from dataclasses import replace

from jostle.evaluation.run_folder.scores import CellScore
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.trackers import tracker_payload


def test_tags_are_those_of_the_conventions(run: RunRecord) -> None:
    told = tracker_payload(run)
    assert told.name == "my_run"
    assert told.scalars == {
        "robustness/mean_ap/clean/0": run.scores.clean,
        "robustness/mean_ap/black_frame/1": run.values["thumos14-c/black_frame:1"],
        "robustness/mean_ap/black_frame/3": run.values["thumos14-c/black_frame:3"],
        "robustness/mean_ap/motion_blur/1": run.values["thumos14-c/motion_blur:1"],
        "robustness/mean_ap/motion_blur/3": run.values["thumos14-c/motion_blur:3"],
    }
    assert told.summary["mPC"] == run.scores.mpc
    assert told.summary["rPC"] == run.scores.rpc
    assert told.config["fingerprint"] == run.about.fingerprint
    assert None not in told.config.values()
    assert {path.name for path in told.files} >= {"run.json", "scores.json", "diagnosis.json"}


def test_no_tag_is_one_that_a_tracker_refuses(run: RunRecord) -> None:
    strange = tuple(
        CellScore(cell, 0.5) for cell in ("fog:3+shot_noise:2", "black_frame:1@at:50%x1", "a/fog:1", "b/fog:1", "rain")
    )
    told = tracker_payload(replace(run, scores=replace(run.scores, beside=strange)))
    assert len(told.scalars) == 1 + 4 + 5
    assert all(re.fullmatch(r"[A-Za-z0-9_./-]+", tag) for tag in told.scalars)
    assert "robustness/mean_ap/a-fog/1" in told.scalars  # two profiles share the name


def test_numbers_without_meaning_are_left_out(run: RunRecord) -> None:
    told = tracker_payload(replace(run, scores=replace(run.scores, rpc=None, clean=0.0)))
    assert "rPC" not in told.summary
    assert told.cells[0][2] is None
