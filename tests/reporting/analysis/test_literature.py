"""Published results beside runs: kept apart from measured ones, with remarks on comparability."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.synthetic_runs import write_run
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.literature import ALWAYS, literature_on
from jostle.reporting.analysis.run_diff import diff_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Run of THUMOS14-C on another data set."""
    return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "run", benchmark="thumos14-c"))


def test_rows_have_sources(run: RunRecord) -> None:
    literature = literature_on([run])
    assert literature.title == "Published on THUMOS14-C, not measured here"
    table = literature.tables()[0]
    assert [column.name for column in table.columns] == [
        "published model",
        "clean",
        "corrupted, mean",
        "relative robustness",
        "source",
    ]
    assert ["AFSD, I3D", "46.05", "34.47", "74.85", "Zeng et al. 2024, tables 1, C"] in table.texts()
    assert literature.to_dict()["models"][0]["source"] == "Zeng et al. 2024, tables 1, C"


def test_run_on_other_data_has_a_remark(run: RunRecord) -> None:
    literature = literature_on([run])
    assert literature.remarks == (
        f"{run.name} is on folder, the papers on thumos14: not comparable.",
        f"{run.name} is on 12 videos, the papers on 213: not comparable.",
        ALWAYS,
    )


def test_recipe_on_other_data_gets_the_results_of_its_benchmark(tmp_path: Path) -> None:
    moved = RunRecord.read(write_run(tmp_path / "run", benchmark="thumos14-c", on="folder kitchen"))
    assert moved.about.benchmark == "thumos14-c on folder kitchen"
    literature = literature_on([moved])
    assert literature.title == "Published on THUMOS14-C, not measured here"
    assert literature.remarks[0] == f"{moved.name} is on folder, the papers on thumos14: not comparable."


def test_partial_run_has_a_remark(tmp_path: Path) -> None:
    record = RunRecord.read(write_run(tmp_path / "run", benchmark="thumos14-c", fails=("video_0003",)))
    literature = literature_on([record])
    assert f"{record.name} is on 11 of 12 videos: not comparable." in literature.remarks


def test_columns_of_frame_classifiers(tmp_path: Path) -> None:
    run = RunRecord.read(write_run(tmp_path / "run", "frames", cells=(), benchmark="ytbb-robust"))
    literature = literature_on([run])
    assert [column.name for column in literature.tables()[0].columns] == [
        "published model",
        "accuracy on anchors",
        "pm-k",
        "source",
    ]


def test_own_benchmark_has_no_published_results(detection: RunRecord, robust_detection: RunRecord) -> None:
    assert literature_on([detection]) is None
    assert diff_runs(detection, robust_detection, draws=0).to_dict()["published"] is None


def test_diff_leaves_out_published_results(run: RunRecord, tmp_path: Path) -> None:
    other = RunRecord.read(write_run(tmp_path / "other", benchmark="thumos14-c", weakness=0.3))
    diff = diff_runs(run, other, draws=0)
    assert (diff.literature, diff.to_dict()["published"]) == (
        None,
        None,
    )  # the papers do not cover one's own data
    assert "published figures are left out: guesser (run) is on folder" in " ".join(diff.remarks)
    assert not any("AFSD" in str(cell) for row in diff.tables()[0].rows for cell in row)
