"""The leaderboard: grouping of comparable runs, links, and escaping of untrusted text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jostle
from helpers.synthetic_runs import HOSTILE, write_run
from jostle.errors import BadValue, DataError, Tampered
from jostle.reporting.analysis.leaderboard import boards_of
from jostle.reporting.analysis.summary import read_summary


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of one benchmark (one partial, with a hostile name), one on other data, one of frames."""
    folder = tmp_path_factory.mktemp("board")
    write_run(folder / "weak", benchmark="thumos14-c")
    write_run(folder / "firm", benchmark="thumos14-c", weakness=0.3)
    write_run(folder / "part", benchmark="thumos14-c", weakness=0.1, model=HOSTILE[0], fails=("video_0003",))
    write_run(folder / "other", benchmark="thumos14-c", videos=9, model="elsewhere")
    write_run(folder / "frames", "frames", cells=(), benchmark="ytbb-robust")
    return folder


NAMES = ("weak", "firm", "part", "other", "frames")


@pytest.fixture(scope="module")
def index(runs: Path) -> Path:
    (runs / "weak" / "report.html").write_text("<p>a report</p>", encoding="utf-8")
    jostle.export_run(runs / "firm", runs / "firm.record.json", draws=40)
    sources = [runs / "firm.record.json" if name == "firm" else runs / name for name in NAMES]
    return jostle.board(sources, runs / "out", title="A & B", draws=40)


def test_groups_hold_comparable_runs(runs: Path) -> None:
    detection, frames = boards_of([runs / name for name in NAMES], draws=0)
    assert (detection.title, frames.title) == ("THUMOS14-C", "YTBB-Robust")
    assert [len(group.entries) for group in detection.groups] == [3, 1]  # another ground truth is another table
    first = detection.groups[0]
    assert [entry.name for entry in first.entries] == ["guesser (firm)", "guesser (weak)", HOSTILE[0]]
    assert not first.entries[-1].summary.whole  # behind the others, though it scores best
    assert first.entries[-1].summary.corrupted.value > first.entries[0].summary.corrupted.value  # type: ignore[operator]
    assert "not on thumos14, so not to be held against what is published" in first.scope
    assert frames.frames
    assert len(detection.published) == 15


def test_a_recipe_on_other_data_has_a_table_of_its_own(runs: Path, tmp_path: Path) -> None:
    moved = write_run(tmp_path / "moved", benchmark="thumos14-c", on="folder kitchen")
    (board,) = boards_of([runs / "weak", moved], draws=0)
    assert (board.benchmark, len(board.published)) == ("thumos14-c", 15)
    assert [group.scope.partition(":")[0] for group in board.groups] == ["folder kitchen, test", "folder, test"]


def test_files_of_a_board(index: Path, runs: Path) -> None:
    out = index.parent
    assert {path.name for path in out.iterdir()} == {
        "board.json",
        "index.html",
        "thumos14-c.html",
        "ytbb-robust.html",
        "records",
        "reports",
    }
    page = (out / "thumos14-c.html").read_text(encoding="utf-8")
    links = [link for link in re.findall(r'href="([^"]+)"', page) if not link.startswith("#")]
    assert all((out / link).is_file() for link in links)
    records = [link for link in links if link.startswith("records/")]
    assert len(records) == 4
    assert read_summary(runs / "firm.record.json") in [read_summary(out / link) for link in records]
    (report,) = (link for link in links if link.startswith("reports/"))
    assert (out / report).read_text(encoding="utf-8") == "<p>a report</p>"
    anchors = [link[1:] for link in re.findall(r'href="(#[^"]+)"', page)]
    assert all(f'id="{anchor}"' in page for anchor in anchors)


def test_measured_and_published_rows_are_separate(index: Path) -> None:
    page = (index.parent / "thumos14-c.html").read_text(encoding="utf-8")
    measured, _, published = page.partition("Published on THUMOS14-C, not measured here")
    assert "BasicTAD" not in measured
    assert "guesser" not in published
    assert "Zeng et al. 2024, tables 1, C; mAP at tIoU 0.5" in published
    assert "part: 11 of 12 videos, 4 of 4 cells" in measured
    assert "jostle <a" not in page


def test_untrusted_text_is_escaped(index: Path) -> None:
    for path in index.parent.glob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert HOSTILE[0] not in page
        assert "http" not in re.sub(r"http-equiv", "", page)
    assert "<title>A &amp; B</title>" in index.read_text(encoding="utf-8")
    assert str(index.parent.parent) not in (index.parent / "thumos14-c.html").read_text(encoding="utf-8")


def test_board_is_reproducible(index: Path, runs: Path, tmp_path: Path) -> None:
    sources = [runs / "firm.record.json" if name == "firm" else runs / name for name in NAMES]
    again = jostle.board(sources, tmp_path / "out", title="A & B", draws=40).parent
    for path in index.parent.glob("*.html"):
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_benchmark_named_index_does_not_overwrite_the_index(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "recognition", benchmark="index")
    out = jostle.board(folder, tmp_path / "out", draws=0).parent
    assert "guesser" in (out / "benchmark-index.html").read_text(encoding="utf-8")
    assert "Leaderboard" in (out / "index.html").read_text(encoding="utf-8")


def test_invalid_runs_are_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="at least one"):
        jostle.board([], tmp_path / "out")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="is a file"):
        jostle.board([runs / "weak"], tmp_path / "file", draws=0)
    jostle.export_run(runs / "firm", tmp_path / "r.json", draws=0)
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    (tmp_path / "r.json").write_text(text.replace("guesser", "better"), encoding="utf-8")
    with pytest.raises(Tampered):
        jostle.board([tmp_path / "r.json"], tmp_path / "out", draws=0)
    assert not (tmp_path / "out").exists()
