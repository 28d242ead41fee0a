"""Runs with mending: marked as such in every file and report, and never mixed with unmended runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from helpers import small_run
from helpers.small_run import RECIPE, mended_run
from jostle.errors import BadValue, CheckpointError, SourceChanged
from jostle.evaluation.config import InferenceConfig
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run
from jostle.evaluation.run_folder.journal import VideoKept, read_events
from jostle.mending.loading import MendingOptions
from jostle.reporting.analysis.labels import run_names
from jostle.reporting.analysis.leaderboard import boards_of
from jostle.reporting.analysis.run_diff import diff_runs
from jostle.reporting.analysis.summary import read_summary, summary_of, write_summary


@pytest.fixture(scope="module")
def runs(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    small_run.run(videos, folder / "plain")
    mended_run(videos, folder / "mended")
    return folder / "plain", folder / "mended"


def test_a_mended_run_records_its_mending(runs: tuple[Path, Path]) -> None:
    files = ("run", "scores")
    plain, mended = ({name: json.loads((run / f"{name}.json").read_text()) for name in files} for run in runs)
    assert (plain["run"]["mend"], mended["run"]["mend"]) == (None, "known")
    assert "mend" not in plain["scores"]
    assert mended["scores"]["mend"] == "known"
    assert mended["scores"]["clean"] == plain["scores"]["clean"]
    assert mended["scores"]["cells"] != plain["scores"]["cells"]


def test_detected_frames_are_stored_with_their_video(runs: tuple[Path, Path]) -> None:
    events = [event for event in read_events(runs[1] / "journal.jsonl") if isinstance(event, VideoKept)]
    assert len(events) == 4
    for event in events:
        assert set(event.mended) == {cell.name for cell in RECIPE.cells if cell.counted or cell.name == "clean"}
        assert event.mended["clean"].found == ()
        lo, hi = event.mended["thumos14-c/black_frame:3"].found[0]
        assert 0 <= lo < hi <= 48
    record = RunRecord.read(runs[1])
    assert record.found_struck("a", "clean") == ()
    assert record.found_struck("a", "thumos14-c/black_frame:3") == events[0].mended["thumos14-c/black_frame:3"].found
    assert RunRecord.read(runs[0]).found_struck("a", "clean") is None


def test_earlier_detections_are_kept_when_cells_are_added(videos: dict[str, Path], tmp_path: Path) -> None:
    mended_run(videos, tmp_path / "run", ["thumos14-c/black_frame:1"])
    mended_run(videos, tmp_path / "run")
    events = [event for event in read_events(tmp_path / "run" / "journal.jsonl") if isinstance(event, VideoKept)]
    assert len(events) == 8
    assert [len(event.mended or ()) for event in events] == [2] * 4 + [4] * 4


def test_mended_and_plain_runs_do_not_share_a_folder(videos: dict[str, Path], runs: tuple[Path, Path]) -> None:
    with pytest.raises(SourceChanged, match="mend was None, now 'known'"):
        mended_run(videos, runs[0])
    with pytest.raises(SourceChanged, match="mend was 'known', now None"):
        small_run.run(videos, runs[1])


@pytest.mark.processes
def test_results_do_not_depend_on_jobs(videos: dict[str, Path], runs: tuple[Path, Path], tmp_path: Path) -> None:
    mended_run(videos, tmp_path / "two", jobs=2)
    for file in sorted((runs[1] / "predictions").iterdir()):
        assert file.read_bytes() == (tmp_path / "two" / "predictions" / file.name).read_bytes()


def test_mended_and_plain_runs_are_distinguished_in_comparisons(runs: tuple[Path, Path], tmp_path: Path) -> None:
    diff = diff_runs(*(RunRecord.read(run) for run in runs), draws=0)
    assert (diff.first.name, diff.second.name) == ("leaning", "leaning, mended (known)")
    assert (diff.first.facts.mend, diff.second.facts.mend) == (None, "known")
    assert any(
        "leaning, mended (known) was mended with the damaged frames known (oracle)" in remark for remark in diff.remarks
    )
    assert "leaning, mended (known) less leaning" in diff.tables()[0].title
    copied = Path(shutil.copytree(runs[1], tmp_path / "again"))
    three = [RunRecord.read(run) for run in (*runs, copied)]
    assert run_names(three) == ["plain", "mended", "again, mended (known)"]
    (board,) = boards_of(runs, draws=0)
    assert {entry.name for entry in board.groups[0].entries} == {
        "leaning, two_parts",
        "leaning, mended (known), two_parts",
    }


def test_records_say_how_runs_were_mended(runs: tuple[Path, Path], tmp_path: Path) -> None:
    for run, mend in zip(runs, (None, "known"), strict=True):
        summary = summary_of(analyse_run(RunRecord.read(run), draws=0))
        write_summary(summary, tmp_path / "x.record.json")
        assert read_summary(tmp_path / "x.record.json").facts.mend == mend


def test_invalid_mending_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="`known` works only with `run`"):
        MendingOptions("known").check(known=False)
    with pytest.raises(CheckpointError, match=r"none\.safetensors: no such file; mend by `jostle`"):
        InferenceConfig("b", model="x", mend=tmp_path / "none.safetensors").check()
    with pytest.raises(BadValue, match="leave one of the two out"):
        InferenceConfig("b", model=lambda: None, mend="known", reproduce_bugs=("early-row",)).check()
