"""Verdict on a run: one sentence per case, equal for an analysis and for the stored scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.synthetic_runs import write_run
from jostle.evaluation.results.comparison import analyse_runs, chance_of, compared
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis, analyse_run
from jostle.metrics.metric import Chance
from jostle.reporting.analysis.cell_tables import cells_table
from jostle.reporting.analysis.leaderboard import boards_of
from jostle.reporting.analysis.paper_tables import paper_layouts
from jostle.reporting.analysis.run_diff import diff_runs
from jostle.reporting.analysis.verdict import (
    WORDS,
    comparison_verdict,
    describe_windows,
    frames_verdict,
    percent,
    verdict_of,
)
from jostle.reporting.cards import write_cards
from jostle.reporting.html.leaderboard import Files, rankings_of
from jostle.reporting.sections.verdict import headline_numbers


def with_values(analysis: RunAnalysis, clean: float, corrupted: float) -> RunAnalysis:
    value = np.array([clean, *[corrupted] * (len(analysis.cells) - 1)])
    return replace(analysis, value=value, drawn=np.repeat(value[None], 20, 0))


def with_scores(record: RunRecord, **scores: Any) -> RunRecord:
    return replace(record, scores=replace(record.scores, **scores))


@pytest.mark.parametrize("task", ["detection", "recognition", "frames"])
def test_verdict_of_scores_equals_that_of_an_analysis(task: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(task)
    verdict = verdict_of(record, "guesser")
    assert verdict == verdict_of(analyse_run(record), "guesser")
    assert "under corruption it keeps" in verdict
    assert "Hardest is black frame at severity 3, where" in verdict


@pytest.mark.parametrize(("retained", "words"), [(1.2, WORDS[0][1]), *WORDS])
def test_every_loss_has_its_word(detection: RunRecord, retained: float, words: str) -> None:
    verdict = verdict_of(with_values(analyse_run(detection), 0.5, retained / 2), "model <x>")
    end = f"{100 * retained:.1f}"
    assert verdict.startswith(
        f"model <x> {words} (relative robustness [{end}, {end}]): under corruption it keeps {end} % of its clean "
    )
    assert f"{percent(retained / 2)} of 50.0. Hardest is" in verdict


@pytest.mark.fault("F127")
@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.902, 0.95), "m is fairly robust (relative robustness [90.2, 95.0]): under corruption it keeps"),
        ((0.85, 0.93), "Whether m is clearly affected or fairly robust is open (relative robustness [85.0, 93.0]):"),
        ((0.45, 0.98), "Whether m fails or is robust is open (relative robustness [45.0, 98.0]):"),
        (None, "No verdict on m without an interval: under corruption it keeps 89.8 % of its clean"),
    ],
)
def test_F127_verdict_follows_the_interval(
    detection: RunRecord, monkeypatch: pytest.MonkeyPatch, ends: tuple[float, float] | None, expected: str
) -> None:
    monkeypatch.setattr(RunAnalysis, "relative", lambda *_: Estimate(0.898, ends))
    verdict = verdict_of(analyse_run(detection), "m")
    assert verdict.startswith(expected)
    assert "keeps 89.8 %" in verdict  # never rounded to a limit between two words


@pytest.mark.fault("F127")
def test_F127_relative_values_of_unequal_clean_scores_are_not_compared(recognition: RunRecord, tmp_path: Path) -> None:
    """A weaker model has less to lose: its higher relative robustness is no reason to choose it."""
    weak = RunRecord.read(write_run(tmp_path / "poor", "recognition", videos=40, knows=0.3, weakness=0.2, model="poor"))
    diff = diff_runs(recognition, weak, draws=200)
    assert diff.comparison.clean.clear
    assert diff.comparison.relative.difference.value > 0  # type: ignore[operator]
    phrase = "relative values do not compare"
    assert phrase in comparison_verdict(diff.comparison, "one", "poor")
    assert "keeps" not in comparison_verdict(diff.comparison, "one", "poor")
    assert any(phrase in remark for remark in diff.remarks)
    assert not diff.to_dict()["relative_comparable"]
    assert diff.tables()[0].rows[-1][-1] is False  # no star
    same = diff_runs(recognition, recognition, draws=50)
    assert same.to_dict()["relative_comparable"]
    assert not any(phrase in remark for remark in same.remarks)


@pytest.mark.fault("F127")
def test_F127_chance_level_is_on_every_table_of_recognition(recognition: RunRecord, tmp_path: Path) -> None:
    analysis = analyse_run(recognition, draws=50)
    assert "(chance 33.3)" in verdict_of(analysis, "m")
    assert cells_table([analysis]).title == "Cells (chance 33.3)"
    assert all("chance 33.3" in one.caption for one in paper_layouts([analysis]))
    assert headline_numbers(analysis).numbers[0].label == "clean top-1 accuracy, chance 33.3"
    assert "chance level is 33.3 %" in diff_runs(recognition, recognition, draws=2).remarks
    (board,) = boards_of([recognition.folder], draws=10)
    assert "chance level 33.3 %" in rankings_of(board, Files({}, {}))[0][0].title
    model, _ = write_cards(recognition, tmp_path, None)
    assert "chance 33.3" in model.read_text(encoding="utf-8")


def test_verdict_with_a_clean_score_of_zero(detection: RunRecord) -> None:
    expected = "m scores 0.0 (mAP@0.3:0.7) on clean video, so its relative robustness is undefined; on "
    assert (
        verdict_of(with_values(analyse_run(detection), 0.0, 0.125), "m") == f"{expected}corrupted video it scores 12.5."
    )
    record = with_scores(detection, clean=0.0, relative_robustness=None, mean_corrupted=0.125)
    assert verdict_of(record, "m") == f"{expected}corrupted video it scores 12.5."


def test_verdict_without_corruptions(tmp_path: Path, detection: RunRecord) -> None:
    clean = RunRecord.read(write_run(tmp_path / "run", cells=()))
    for source in (clean, analyse_run(clean)):
        assert verdict_of(source, "m").endswith("on clean video; no corruption was tried.")
    beside = with_scores(
        detection, cells=(), beside=detection.scores.cells, mean_corrupted=None, relative_robustness=None
    )
    for source in (beside, analyse_run(beside)):
        assert verdict_of(source, "m").endswith("on clean video; no corruption that counts was tried.")


def test_models_at_chance_level_are_recognised(tmp_path: Path, recognition: RunRecord, detection: RunRecord) -> None:
    assert chance_of(recognition) == Chance(1 / 3, 40)
    assert chance_of(detection) == Chance(0.0, None)
    blind = RunRecord.read(write_run(tmp_path / "run", "recognition", videos=30, knows=0.0))
    for source in (blind, analyse_run(blind, draws=100)):
        assert "m is not significantly better than chance on clean video" in verdict_of(source, "m")
    for source in (recognition, analyse_run(recognition, draws=100)):
        assert "better than chance" not in verdict_of(source, "m")


def test_verdict_of_a_clean_frame_run(tmp_path: Path) -> None:
    record = RunRecord.read(write_run(tmp_path / "run", "frames", cells=()))
    expected = frames_verdict(offset_errors(record)[0], "m")
    assert verdict_of(record, "m") == verdict_of(analyse_run(record), "m") == expected
    assert "similar frame within 3" in expected


def test_windows_are_described_only_if_not_default(detection: RunRecord) -> None:
    assert describe_windows(replace(detection.about, rule=None)) is None
    assert describe_windows(replace(detection.about, rule="all")) is None
    assert describe_windows(replace(detection.about, rule="released")) == "released"
    faulty = replace(detection.about, rule="all", reproduce_bugs=("early-row", "skipped-window"))
    assert describe_windows(faulty) == "all, with the faults early-row and skipped-window"


def test_chance_level_of_frame_classifiers(frames: RunRecord) -> None:
    """A pm-10 of 25 % over 1000 classes is far above chance, even if few anchors give an interval from 0."""
    assert chance_of(frames) == Chance(1 / 3, 20)
    assert not Chance(1 / 1000, 8).explains(0.25, (0.0, 0.5))
    assert Chance(1 / 4, 8).explains(0.25, (0.2, 0.5))
    assert Chance(1 / 1000, 1).explains(0.0, None)
    assert not Chance(0.0, None).explains(None, None)
    assert Chance(0.0, None).explains(0.1, (0.0, 0.3))


def test_model_at_chance_level_is_never_best(tmp_path: Path, recognition: RunRecord) -> None:
    """Robustness of a model no better than chance is neither reported nor set in bold."""
    guessing = RunRecord.read(write_run(tmp_path / "blind", "recognition", videos=40, knows=0.0, model="blind"))
    analyses = analyse_runs([recognition, guessing], draws=50)
    comparison = compared(*analyses)
    assert comparison.guesses == (False, True)
    assert comparison.relative.other is not None
    assert comparison.relative.other > comparison.relative.one  # type: ignore[operator]
    assert (comparison.relative.difference.value, comparison.relative.clear) == (None, False)
    verdict = comparison_verdict(comparison, "knows", "blind")
    assert "keeps" not in verdict
    assert verdict.endswith("blind is not significantly better than chance on clean video.")
    diff = diff_runs(recognition, guessing, draws=50)
    assert "blind is not significantly better than chance on clean video" in " ".join(diff.remarks)
    table = next(one for one in paper_layouts(analyses) if one.file == "thumos14-c-table-1")
    assert table.numbers[-1].barred == (1,)
    line = next(line for line in table.latex().splitlines() if line.startswith("blind"))
    assert "textbf" not in line


def test_zero_has_no_minus_sign() -> None:
    assert percent(-1e-6) == "0.0"
