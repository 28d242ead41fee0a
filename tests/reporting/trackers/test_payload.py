"""Payload of experiment trackers: tags, summary, config and files of a run."""

from __future__ import annotations

import re
from dataclasses import replace

from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.scores import CellScore
from jostle.reporting.trackers import tracker_payload


def test_tags_follow_the_convention(run: RunRecord) -> None:
    payload = tracker_payload(run)
    assert payload.name == "my_run"
    assert payload.scalars == {
        "robustness/mean_ap/clean/0": run.scores.clean,
        "robustness/mean_ap/black_frame/1": run.values["thumos14-c/black_frame:1"],
        "robustness/mean_ap/black_frame/3": run.values["thumos14-c/black_frame:3"],
        "robustness/mean_ap/motion_blur/1": run.values["thumos14-c/motion_blur:1"],
        "robustness/mean_ap/motion_blur/3": run.values["thumos14-c/motion_blur:3"],
    }
    assert payload.summary["mPC"] == run.scores.mpc
    assert payload.summary["rPC"] == run.scores.rpc
    assert payload.config["fingerprint"] == run.about.fingerprint
    assert None not in payload.config.values()
    assert {path.name for path in payload.files} >= {"run.json", "scores.json", "diagnosis.json"}


def test_tags_are_accepted_by_every_tracker(run: RunRecord) -> None:
    strange = tuple(
        CellScore(cell, 0.5) for cell in ("fog:3+shot_noise:2", "black_frame:1@at:50%x1", "a/fog:1", "b/fog:1", "rain")
    )
    payload = tracker_payload(replace(run, scores=replace(run.scores, beside=strange)))
    assert len(payload.scalars) == 1 + 4 + 5
    assert all(re.fullmatch(r"[A-Za-z0-9_./-]+", tag) for tag in payload.scalars)
    assert "robustness/mean_ap/a-fog/1" in payload.scalars  # two profiles share the name


def test_undefined_numbers_are_left_out(run: RunRecord) -> None:
    payload = tracker_payload(replace(run, scores=replace(run.scores, rpc=None, clean=0.0)))
    assert "rPC" not in payload.summary
    assert payload.cells[0][2] is None
