"""Accuracy lost by group of videos: paired by class, and refused where groups mean nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.made_runs import made_run
from jostle.cli.app import app
from jostle.errors import DataError, UnknownName
from jostle.reporting.analysis.cell_scores import right_answers
from jostle.reporting.analysis.group_drops import group_drops, read_groups
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import processed_videos


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, RunRecord]:
    root = tmp_path_factory.mktemp("shift")
    here = made_run(root / "here", "recognition", videos=30, cells=())
    there = made_run(root / "there", "recognition", videos=24, cells=(), knows=0.3, on="shifted")
    return RunRecord.read(here), RunRecord.read(there)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "eval.csv"
    rows = [f"video_{i:04d}.mp4,{'style' if i < 8 else 'light'},{'cartoon' if i % 2 else 'night'}" for i in range(20)]
    path.write_text("\n".join(["filename,category,shift", *rows]) + "\n")
    return path


def by_class(record: RunRecord) -> dict[str, list[tuple[str, bool]]]:
    videos = processed_videos(record)
    right = right_answers(record, "clean", videos).tolist()
    labels = [record.labels.classes[i] for i in record.labels.of_videos(videos).label]
    found: dict[str, list[tuple[str, bool]]] = {}
    for video, name, one in zip(videos, labels, right, strict=True):
        found.setdefault(name, []).append((video, one))
    return found


def test_a_group_is_held_against_the_same_classes_as_often(runs: tuple[RunRecord, RunRecord], table: Path) -> None:
    here, there = (by_class(record) for record in runs)
    whole, light, style = group_drops(*runs, read_groups(table), draws=200)
    assert [one.group for one in (whole, light, style)] == ["all", "light", "style"]
    assert (whole.videos, light.videos, style.videos) == (24, 12, 8)
    own = [(name, right) for name, answers in there.items() for video, right in answers if video < "video_0008"]
    accuracy = {name: np.mean([right for _, right in answers]) for name, answers in here.items()}
    assert style.second == pytest.approx(np.mean([right for _, right in own]))
    assert style.first == pytest.approx(np.mean([accuracy[name] for name, _ in own]))
    assert style.difference.value == pytest.approx(style.second - style.first)
    ends = whole.difference.interval
    assert ends is not None
    assert ends[0] <= (whole.difference.value or 0) <= ends[1]


def test_another_column_makes_other_groups(runs: tuple[RunRecord, RunRecord], table: Path) -> None:
    drops = group_drops(*runs, read_groups(f"{table}:shift"), draws=50)
    assert [one.group for one in drops] == ["all", "cartoon", "night"]


def test_what_names_no_group_is_refused(runs: tuple[RunRecord, RunRecord], table: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="column"):
        read_groups(f"{table}:kind")
    plain = tmp_path / "plain.csv"
    plain.write_text("name,category\nx,style\n")
    with pytest.raises(DataError, match="which name the videos"):
        read_groups(plain)
    with pytest.raises(DataError, match="names none of its videos"):
        group_drops(*runs, {"elsewhere": "style"}, draws=10)
    detection = RunRecord.read(made_run(tmp_path / "detection", "detection", videos=3, cells=()))
    with pytest.raises(DataError, match="only accuracies of recognisers"):
        group_drops(detection, detection, {}, draws=10)


def test_the_command_shows_every_group(runs: tuple[RunRecord, RunRecord], table: Path) -> None:
    here, there = (str(record.folder) for record in runs)
    command = ["diff", here, there, "--any-data", "--by", str(table), "--bootstrap", "50"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "over classes" in shown.output
    assert "style" in shown.output
    for form, sign in (("--markdown", "| style"), ("--latex", "style &"), ("--json", '"groups"')):
        assert sign in CliRunner().invoke(app, [*command, form]).output
