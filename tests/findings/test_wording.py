"""The verdict on a run: one sentence for every case, by a survey and by the run's own scores alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import made_run

from jostle.findings.offsets import offset_errors
from jostle.findings.record import RunRecord
from jostle.findings.survey import Survey, survey
from jostle.findings.wording import WORDS, frames_verdict, guessing, percent, verdict_of, windows_said


def with_values(found: Survey, clean: float, corrupted: float) -> Survey:
    value = np.array([clean, *[corrupted] * (len(found.cells) - 1)])
    return replace(found, value=value, drawn=np.repeat(value[None], 20, 0))


def with_scores(record: RunRecord, **scores: Any) -> RunRecord:
    return replace(record, scores=replace(record.scores, **scores))


@pytest.mark.parametrize("task", ["detection", "recognition", "frames"])
def test_scores_alone_say_what_a_survey_says(task: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(task)
    said = verdict_of(record, "guesser")
    assert said == verdict_of(survey(record), "guesser")
    assert "under corruption it keeps" in said
    assert "Hardest is black frame at severity 3, where" in said


@pytest.mark.parametrize(("left", "words"), [(1.2, WORDS[0][1]), *WORDS])
def test_a_word_for_every_loss(detection: RunRecord, left: float, words: str) -> None:
    said = verdict_of(with_values(survey(detection), 0.5, left / 2), "model <x>")
    assert said.startswith(
        f"model <x> {words}: under corruption it keeps {100 * left:.0f} % of its clean mAP@0.3:0.7, "
    )
    assert f"{percent(left / 2)} of 50.0. Hardest is" in said


def test_a_clean_score_of_nothing(detection: RunRecord) -> None:
    said = "m scores 0.0 (mAP@0.3:0.7) on clean video, so what is left of that under corruption cannot be said; "
    assert verdict_of(with_values(survey(detection), 0.0, 0.125), "m") == f"{said}corrupted it scores 12.5."
    nothing = with_scores(detection, clean=0.0, relative_robustness=None, mean_corrupted=0.125)
    assert verdict_of(nothing, "m") == f"{said}corrupted it scores 12.5."


def test_without_corruptions(tmp_path: Path, detection: RunRecord) -> None:
    clean = RunRecord.read(made_run(tmp_path / "run", cells=()))
    for found in (clean, survey(clean)):
        assert verdict_of(found, "m").endswith("on clean video; no corruption was tried.")
    beside = with_scores(
        detection, cells=(), beside=detection.scores.cells, mean_corrupted=None, relative_robustness=None
    )
    for found in (beside, survey(beside)):
        assert verdict_of(found, "m").endswith("on clean video; no corruption that counts was tried.")


def test_guessing_is_told_from_knowing(tmp_path: Path, recognition: RunRecord, detection: RunRecord) -> None:
    assert guessing(recognition) == pytest.approx(1 / 3)
    assert guessing(detection) == 0.0
    blind = RunRecord.read(made_run(tmp_path / "run", "recognition", videos=30, knows=0.0))
    for found in (blind, survey(blind, draws=100)):
        assert "m cannot be told from guessing on clean video" in verdict_of(found, "m")
    for found in (recognition, survey(recognition, draws=100)):
        assert "guessing" not in verdict_of(found, "m")


def test_frames_by_themselves(tmp_path: Path) -> None:
    record = RunRecord.read(made_run(tmp_path / "run", "frames", cells=()))
    told = frames_verdict(offset_errors(record)[0], "m")
    assert verdict_of(record, "m") == verdict_of(survey(record), "m") == told
    assert "similar frame within 3" in told


def test_windows_are_told_of_only_where_they_are_unusual(detection: RunRecord) -> None:
    assert windows_said(replace(detection.about, rule=None)) is None
    assert windows_said(replace(detection.about, rule="all")) is None
    assert windows_said(replace(detection.about, rule="released")) == "released"
    faulty = replace(detection.about, rule="all", released_faults=("early-row", "skipped-window"))
    assert windows_said(faulty) == "all, with the faults early-row and skipped-window"
