"""What papers print beside runs: apart from what was measured, with what keeps the two apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.made_runs import made_run
from jostle.reporting.analysis.literature import ALWAYS, literature_on
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_diff import diff_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run that says that it is of THUMOS14-C, on another data set."""
    return RunRecord.read(made_run(tmp_path_factory.mktemp("made") / "run", benchmark="thumos14-c"))


def test_rows_have_their_source(run: RunRecord) -> None:
    found = literature_on([run])
    assert found is not None
    assert found.title == "Published on THUMOS14-C, not measured here"
    table = found.table()
    assert [column.name for column in table.columns] == [
        "published model",
        "clean",
        "corrupted, mean",
        "relative robustness",
        "source",
    ]
    assert ["AFSD, I3D", "46.05", "34.47", "74.85", "Zeng et al. 2024, tables 1, C"] in table.texts()
    assert found.to_dict()["models"][0]["source"] == "Zeng et al. 2024, tables 1, C"


def test_a_run_on_other_data_is_said_to_be(run: RunRecord) -> None:
    found = literature_on([run])
    assert found is not None
    assert found.remarks == (
        f"{run.name} is on folder, the papers on thumos14: not comparable.",
        f"{run.name} is on 12 videos, the papers on 213: not comparable.",
        ALWAYS,
    )


def test_a_recipe_on_other_data_is_shown_what_its_benchmark_is(tmp_path: Path) -> None:
    moved = RunRecord.read(made_run(tmp_path / "run", benchmark="thumos14-c", on="folder kitchen"))
    assert moved.about.benchmark == "thumos14-c on folder kitchen"
    found = literature_on([moved])
    assert found is not None
    assert found.title == "Published on THUMOS14-C, not measured here"
    assert found.remarks[0] == f"{moved.name} is on folder, the papers on thumos14: not comparable."


def test_a_partial_run_is_said_to_be(tmp_path: Path) -> None:
    record = RunRecord.read(made_run(tmp_path / "run", benchmark="thumos14-c", fails=("video_0003",)))
    found = literature_on([record])
    assert found is not None
    assert f"{record.name} is on 11 of 12 videos: not comparable." in found.remarks


def test_frame_classifiers_have_other_words(tmp_path: Path) -> None:
    run = RunRecord.read(made_run(tmp_path / "run", "frames", cells=(), benchmark="ytbb-robust"))
    found = literature_on([run])
    assert found is not None
    assert [column.name for column in found.table().columns] == [
        "published model",
        "accuracy on anchors",
        "pm-k",
        "source",
    ]


def test_nothing_is_published_on_ones_own(detection: RunRecord, firmer: RunRecord) -> None:
    assert literature_on([detection]) is None
    assert diff_runs(detection, firmer, draws=0).to_dict()["published"] is None


def test_a_diff_has_them_apart(run: RunRecord, tmp_path: Path) -> None:
    other = RunRecord.read(made_run(tmp_path / "other", benchmark="thumos14-c", weakness=0.3))
    found = diff_runs(run, other, draws=0)
    assert (found.literature, found.to_dict()["published"]) == (
        None,
        None,
    )  # on data of one's own there is nothing to read
    assert "published figures are left out: guesser (run) is on folder" in " ".join(found.remarks)
    assert not any("AFSD" in str(cell) for row in found.table().rows for cell in row)
