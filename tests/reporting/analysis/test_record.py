"""Run records: everything that reports need, without the data set and the model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import jostle
from helpers import small_run
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError, UnknownName
from jostle.evaluation.results.record import RunRecord


@pytest.fixture(scope="module")
def detection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Detection run whose videos were deleted."""
    folder = tmp_path_factory.mktemp("detection")
    (folder / "videos").mkdir()
    small_run.run(small_run.write_videos(folder / "videos"), folder / "run")
    shutil.rmtree(folder / "videos")
    return folder / "run"


def test_record_of_a_detection_run(detection: Path) -> None:
    record = RunRecord.read(detection)
    assert record.task.name == "detection"
    assert record.cells == ("clean", "thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "freeze:3")
    assert record.counted == record.cells[1:]
    assert record.annotations.fingerprint == small_run.TRUTH.fingerprint == record.about.truth
    assert len(record.predictions("freeze:3")) == 8
    assert set(record.sources) == set(small_run.NAMES)
    assert not record.failures
    diagnosis = record.diagnosis
    expected = jostle.diagnose(record.predictions("clean"), record.annotations, style="thumos14").to_dict()
    assert list(diagnosis.false_positives.profile) == expected["false_positives"]["profile"]
    assert set(diagnosis.cells) == set(record.cells[1:])


def test_classes_without_actions_are_kept(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    videos = small_run.write_videos(tmp_path / "videos")
    truth = small_run.TRUTH.with_classes(("never", "action"))
    small_run.run(videos, tmp_path / "run", data=Dataset("folder", "test", Path("data"), (truth,), videos))
    stored = RunRecord.read(tmp_path / "run").annotations
    assert stored.classes == ("never", "action")
    assert stored.fingerprint == truth.fingerprint


def test_missing_files_are_reported(detection: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no run\.json"):
        RunRecord.read(tmp_path)
    record = RunRecord.read(detection)
    with pytest.raises(UnknownName, match="fog:1"):
        record.predictions("fog:1")
    copy = tmp_path / "copy"
    shutil.copytree(detection, copy)
    (copy / "scores.json").unlink()
    with pytest.raises(DataError, match="resumes and writes it"):
        RunRecord.read(copy)
    shutil.copy(detection / "scores.json", copy)
    (copy / "truth.json").unlink()
    with pytest.raises(DataError, match="run again into this folder"):
        _ = RunRecord.read(copy).annotations


def test_run_is_read_by_any_of_its_files(detection: RunRecord, tmp_path: Path) -> None:
    for name in ("scores.json", "run.json", "predictions/clean.json"):
        assert RunRecord.read(detection / name).folder == detection
    (tmp_path / "scores.json").write_text("{}", encoding="utf-8")
    with pytest.raises(jostle.JostleError, match=r"no run\.json there"):
        RunRecord.read(tmp_path / "scores.json")
