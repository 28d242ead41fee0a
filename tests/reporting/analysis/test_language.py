"""Analysis of question and moment runs: agreement with their scores, chance levels and baselines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from helpers.synthetic_runs import write_run
from jostle.errors import DataError
from jostle.evaluation.results.comparison import chance_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run, class_drops
from jostle.metrics.answers import score_answers
from jostle.reporting.analysis.cell_tables import cells_table
from jostle.reporting.analysis.language import (
    answers_table,
    baselines_of,
    changes_table,
    describe_baselines,
    types_table,
    windows_table,
)
from jostle.reporting.analysis.run_diff import diff_runs

REVERSED = "ucf101-p/reverse_sampling:3"


def test_questions_are_broken_down_by_type(questions: RunRecord) -> None:
    analysis = analyse_run(questions)
    assert analysis.classes == ("what", "order")
    by_type = questions.scores.clean_more.by_type
    assert analysis.by_class[0].tolist() == pytest.approx([by_type[name].accuracy for name in analysis.classes])
    assert class_drops(analysis)[0].loss > 0


def test_moments_are_broken_down_by_length(moments: RunRecord) -> None:
    analysis = analyse_run(moments)
    assert analysis.classes == ("short", "middle")
    assert analysis.by_class[0].mean() == pytest.approx(analysis.value[0])  # as many of each
    assert chance_of(analysis).score == 0.0


def test_moments_scored_by_average_precision(tmp_path: Path) -> None:
    record = RunRecord.read(
        write_run(tmp_path / "run", "moments", videos=6, cells=(), benchmark="by-map", metric="moment_map")
    )
    analysis = analyse_run(record, draws=50)
    assert (
        analysis.value[0] == pytest.approx(record.scores.clean) == pytest.approx(record.scores.clean_more.average_map)
    )
    assert analysis.answers is None


def test_every_table_of_questions_has_chance_and_baselines(questions: RunRecord) -> None:
    blind = score_answers(questions.predictions("clean"), questions.annotations)  # the model does use the video
    assert blind.overall.accuracy > 1 / 3
    for table in (answers_table(questions, "m"), changes_table(questions, "m")):
        assert "chance 33.3, without video 33.3, with one frame 33.3" in table.title
    kinds = types_table(questions, "m")
    assert [column.name for column in kinds.columns][2:5] == ["chance", "without video", "one frame"]
    assert [row[0] for row in kinds.rows] == ["what", "order", "needs order"]
    cells = cells_table([analyse_run(questions)])
    assert [row[1] for row in cells.rows][-2:] == ["without video", "with one frame"]


def test_answers_are_right_wrong_unreadable_or_missing(questions: RunRecord) -> None:
    table = answers_table(questions, "m")
    for row in table.rows:
        right, wrong, unreadable, missing = (float(row[i] or 0) for i in (1, 3, 4, 5))  # type: ignore[arg-type]
        assert right + wrong + unreadable + missing == pytest.approx(1)
    damaged = next(row for row in table.rows if row[0] == "thumos14-c/motion_blur:3")
    assert isinstance(damaged[4], float)
    assert damaged[4] > 0
    assert "<b>" not in table.markdown()


def test_only_cells_that_destroy_order_have_temporal_sensitivity(questions: RunRecord) -> None:
    table = changes_table(questions, "m")
    column = [one.name for one in table.columns].index("temporal sensitivity")
    values = {row[0]: row[column] for row in table.rows}
    assert isinstance(values[REVERSED], float)
    assert [values[cell] for cell in values if cell != REVERSED] == ["", ""]


def test_windows_have_three_overlaps_and_their_baselines(moments: RunRecord) -> None:
    table = windows_table(moments, "m")
    assert [one.name for one in table.columns if one.name.startswith("R@1")] == [
        f"R@1, IoU {t}" for t in (0.3, 0.5, 0.7)
    ]
    clean = table.rows[0]
    assert clean[3] == moments.scores.clean
    assert [row[0] for row in table.rows[-3:]] == ["whole video as window", "without video", "with one frame"]
    assert "without video no score (no frames)" in describe_baselines(moments)
    assert answers_table(moments, "m") is None


def test_model_that_may_not_use_the_video_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "questions", videos=8, cells=(), knows=0.0)
    assert "that the model uses the video is not certain" in describe_baselines(RunRecord.read(run))


def test_other_tasks_have_no_language_tables(recognition: RunRecord) -> None:
    assert baselines_of(recognition) == []
    assert describe_baselines(recognition) == ""
    assert all(make(recognition, "m") is None for make in (answers_table, changes_table, types_table, windows_table))


def test_differences_are_paired_by_video(questions: RunRecord, tmp_path: Path) -> None:
    other = RunRecord.read(write_run(tmp_path / "run", "questions", videos=20, cells=questions.cells[1:], weakness=0.3))
    diff = diff_runs(questions, other, draws=300)
    assert diff.paired
    assert diff.comparison.clean.difference.value == 0
    assert diff.comparison.corrupted.difference.interval is not None
    assert diff.to_dict()["second"]["baselines"] == pytest.approx({"blind": 1 / 3, "one_frame": 1 / 3})
    assert any("with less than the video: without video 33.3" in remark for remark in diff.remarks)


@pytest.mark.fault("F101", "F110")
def test_damaged_answers_and_questions_are_named(questions: RunRecord, tmp_path: Path) -> None:
    wrong = {"choice": 7, "probabilities": None, "text": None}
    for name, damage, fault, message in (
        (
            "predictions/clean.json",
            lambda rows: rows.update({"video_0000/0": wrong}),
            "F101",
            "and the cell is run again",
        ),
        ("truth.json", lambda rows: rows["questions"][0].update(answer=9), "F110", "the right option is 9"),
    ):
        run = shutil.copytree(questions.folder, tmp_path / fault)
        content = json.loads((run / name).read_text())
        damage(content)
        (run / name).write_text(json.dumps(content))
        with pytest.raises(DataError, match=message) as caught:
            analyse_run(RunRecord.read(run))
        assert caught.value.fault == fault
