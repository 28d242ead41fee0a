"""Accuracy drops by group of videos: weighted by class, and refused for unknown groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.synthetic_runs import write_run
from jostle.cli.app import app
from jostle.errors import DataError, UnknownName
from jostle.evaluation.results.cell_scores import video_values
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import processed_videos
from jostle.reporting.analysis.group_drops import group_drops, read_groups


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, RunRecord]:
    root = tmp_path_factory.mktemp("shift")
    first = write_run(root / "here", "recognition", videos=30, cells=())
    second = write_run(root / "there", "recognition", videos=24, cells=(), knows=0.3, on="shifted")
    return RunRecord.read(first), RunRecord.read(second)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "eval.csv"
    rows = [f"video_{i:04d}.mp4,{'style' if i < 8 else 'light'},{'cartoon' if i % 2 else 'night'}" for i in range(20)]
    path.write_text("\n".join(["filename,category,shift", *rows]) + "\n")
    return path


def by_class(record: RunRecord) -> dict[str, list[tuple[str, bool]]]:
    videos = processed_videos(record)
    right = [video_values(record, "clean", videos)[name] > 0 for name in videos]
    labels = [record.annotations.classes[i] for i in record.annotations.of_videos(videos).label]
    answers: dict[str, list[tuple[str, bool]]] = {}
    for video, name, is_right in zip(videos, labels, right, strict=True):
        answers.setdefault(name, []).append((video, is_right))
    return answers


def test_group_is_compared_with_the_same_class_distribution(runs: tuple[RunRecord, RunRecord], table: Path) -> None:
    first, second = (by_class(record) for record in runs)
    every, light, style = group_drops(*runs, read_groups(table), draws=200)
    assert [drop.group for drop in (every, light, style)] == ["all", "light", "style"]
    assert (every.videos, light.videos, style.videos) == (24, 12, 8)
    style_answers = [
        (name, right) for name, answers in second.items() for video, right in answers if video < "video_0008"
    ]
    accuracy = {name: np.mean([right for _, right in answers]) for name, answers in first.items()}
    assert style.second == pytest.approx(np.mean([right for _, right in style_answers]))
    assert style.first == pytest.approx(np.mean([accuracy[name] for name, _ in style_answers]))
    assert style.difference == pytest.approx(style.second - style.first)
    ends = every.interval
    assert ends[0] <= (every.difference or 0) <= ends[1]


def test_groups_of_another_column(runs: tuple[RunRecord, RunRecord], table: Path) -> None:
    drops = group_drops(*runs, read_groups(f"{table}:shift"), draws=50)
    assert [one.group for one in drops] == ["all", "cartoon", "night"]


def test_unusable_groups_are_refused(runs: tuple[RunRecord, RunRecord], table: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="column"):
        read_groups(f"{table}:kind")
    plain = tmp_path / "plain.csv"
    plain.write_text("name,category\nx,style\n")
    with pytest.raises(DataError, match="which name the videos"):
        read_groups(plain)
    with pytest.raises(DataError, match="names none of its videos"):
        group_drops(*runs, {"elsewhere": "style"}, draws=10)
    detection = RunRecord.read(write_run(tmp_path / "detection", "detection", videos=3, cells=()))
    with pytest.raises(DataError, match="only accuracies of recognisers"):
        group_drops(detection, detection, {}, draws=10)


def test_command_prints_every_group(runs: tuple[RunRecord, RunRecord], table: Path) -> None:
    first, second = (str(record.folder) for record in runs)
    command = ["diff", first, second, "--any-data", "--by", str(table), "--bootstrap", "50"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "over classes" in result.output
    assert "style" in result.output
