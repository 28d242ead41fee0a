"""Records of runs: a few kilobytes that say what the run says, and are refused when anybody was at them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.made_runs import made_run
from jostle.errors import DataError, Tampered
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import survey
from jostle.reporting.analysis.summary import _checksum, read_summary, summary_of, write_summary


@pytest.fixture
def record(detection: RunRecord, tmp_path: Path) -> Path:
    return jostle.export_run(detection.folder, tmp_path / "run.json", draws=40)


def changed(path: Path, *keys: Any, value: Any, sealed: bool) -> Path:
    """A copy with one value changed, with the old checksum or with one that fits."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    place = plain["record"]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    if sealed:
        plain["checksum"] = _checksum(plain["record"])
    copy = path.with_name("changed.json")
    copy.write_text(json.dumps(plain), encoding="utf-8")
    return copy


def test_it_says_what_the_run_says(detection: RunRecord, record: Path) -> None:
    found = read_summary(record)
    assert record.stat().st_size < 10_000
    assert found.clean.value == detection.scores.clean
    assert found.corrupted.value == pytest.approx(detection.scores.mean_corrupted, abs=1e-12)
    assert found.relative.value == pytest.approx(detection.scores.relative_robustness, abs=1e-12)
    assert found.corrupted.interval is not None
    assert (found.model, found.weights, found.truth) == ("guesser", detection.about.weights, detection.about.truth)
    assert found.coverage_text == "12 of 12 videos, 4 of 4 cells"
    black = [detection.values[f"thumos14-c/black_frame:{severity}"] for severity in (1, 3)]
    assert found.by_corruption["thumos14-c/black_frame"] == pytest.approx(math.fsum(black) / 2)
    assert str(detection.folder) not in record.read_text(encoding="utf-8")


def test_reading_and_writing_again_changes_nothing(record: Path, tmp_path: Path) -> None:
    write_summary(read_summary(record), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == record.read_bytes()
    laid_out = json.dumps(json.loads(record.read_text(encoding="utf-8")), indent=8)
    (tmp_path / "other.json").write_text(laid_out, encoding="utf-8")
    assert read_summary(tmp_path / "other.json") == read_summary(record)


@pytest.mark.fault("F118")
@pytest.mark.parametrize(
    ("keys", "value"),
    [(("clean", "value"), 0.99), (("model",), "mine"), (("cells", 0, "value"), 0.9), (("coverage", "videos"), 11)],
)
def test_F118_a_changed_record_is_refused(record: Path, keys: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(Tampered, match="was changed after it was written") as told:
        read_summary(changed(record, *keys, value=value, sealed=False))
    assert (told.value.exit_code, told.value.fault) == (6, "F118")


@pytest.mark.fault("F118")
@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("corrupted", "value"), 0.99, "corrupted is 0.99, and its cells have a mean of"),
        (("cells", 0, "value"), 0.99, "corrupted is"),
        (("relative", "value"), 1.0, "relative is 1.0, and the others give"),
        (("cells", 0, "value"), 1.5, "at most 1"),
    ],
)
def test_F118_also_with_a_new_checksum(record: Path, keys: tuple[Any, ...], value: Any, said: str) -> None:
    with pytest.raises(Tampered, match=said):
        read_summary(changed(record, *keys, value=value, sealed=True))


def test_what_is_no_record_is_refused(detection: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="kind is missing"):
        read_summary(detection.folder / "scores.json")
    (tmp_path / "cut.json").write_text('{"format": 1,', encoding="utf-8")
    with pytest.raises(DataError, match=r"cut\.json"):
        read_summary(tmp_path / "cut.json")


def test_a_partial_run_is_exported_when_that_is_asked_for(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", fails=("video_0003",))
    with pytest.raises(DataError, match=r"on 11 of 12 videos and 4 of 4 cells.*--partial"):
        jostle.export_run(folder, tmp_path / "part.json")
    found = read_summary(jostle.export_run(folder, tmp_path / "part.json", partial=True, draws=0))
    assert not found.whole
    assert found.corrupted.interval is None


def test_frame_classifiers(tmp_path: Path) -> None:
    run = RunRecord.read(made_run(tmp_path / "run", "frames", cells=()))
    found = summary_of(survey(run))
    own = run.scores.clean_more.pm_k
    assert own is not None
    assert (found.clean.value, found.corrupted.value, found.relative.value) == (own.accuracy, own.pm_k, None)
    assert found.clean.interval == own.accuracy_interval
