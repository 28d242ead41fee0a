"""Published results beside runs: kept apart from measured ones, with remarks on comparability."""

from __future__ import annotations

from pathlib import Path

from helpers.synthetic_runs import record_of, write_run
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.literature import ALWAYS, Literature, literature_on
from jostle.reporting.analysis.run_diff import diff_runs

BENCHMARK = "thumos14-c"
run = record_of(benchmark=BENCHMARK)  # on another data set


def columns_of(literature: Literature) -> list[str]:
    return [column.name for column in literature.tables()[0].columns]


def test_rows_have_sources(run: RunRecord, tmp_path: Path) -> None:
    literature = literature_on([run])
    assert literature.title == "Published on THUMOS14-C, not measured here"
    assert columns_of(literature) == ["published model", "clean", "corrupted, mean", "relative robustness", "source"]
    source = "Zeng et al. 2024, tables 1, C"
    assert ["AFSD, I3D", "46.05", "34.47", "74.85", source] in literature.tables()[0].texts()
    assert literature.to_dict()["models"][0]["source"] == source
    frames = RunRecord.read(write_run(tmp_path / "run", "frames", cells=(), benchmark="ytbb-robust"))
    assert columns_of(literature_on([frames])) == ["published model", "accuracy on anchors", "pm-k", "source"]


def test_runs_on_other_or_fewer_videos_have_remarks(run: RunRecord, tmp_path: Path) -> None:
    elsewhere = f"{run.name} is on folder, the papers on thumos14: not comparable."
    videos = f"{run.name} is on 12 videos, the papers on 213: not comparable."
    assert literature_on([run]).remarks == (elsewhere, videos, ALWAYS)
    moved = RunRecord.read(write_run(tmp_path / "run", benchmark=BENCHMARK, on="folder kitchen"))
    assert moved.about.benchmark == "thumos14-c on folder kitchen"
    assert literature_on([moved]).title == literature_on([run]).title
    assert literature_on([moved]).remarks[0] == elsewhere
    part = RunRecord.read(write_run(tmp_path / "part", benchmark=BENCHMARK, fails=("video_0003",)))
    assert f"{part.name} is on 11 of 12 videos: not comparable." in literature_on([part]).remarks


def test_own_benchmark_has_no_published_results(detection: RunRecord, robust_detection: RunRecord) -> None:
    assert literature_on([detection]) is None
    assert diff_runs(detection, robust_detection, draws=0).to_dict()["published"] is None


def test_diff_leaves_out_published_results(run: RunRecord, tmp_path: Path) -> None:
    other = RunRecord.read(write_run(tmp_path / "other", benchmark=BENCHMARK, weakness=0.3))
    diff = diff_runs(run, other, draws=0)
    assert diff.literature is diff.to_dict()["published"] is None  # the papers do not cover one's own data
    assert "published figures are left out: guesser (run) is on folder" in " ".join(diff.remarks)
    assert not any("AFSD" in str(cell) for row in diff.tables()[0].rows for cell in row)
