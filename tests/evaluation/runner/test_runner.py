"""Benchmark runs: resumable to the same bytes, without repeated work and without mixing different runs."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from helpers import small_run
from helpers.small_run import RECIPE, data_of
from helpers.small_tasks import content
from jostle.errors import BadValue, DataError, ResourceError, SourceChanged
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import plan_benchmark
from jostle.evaluation.runner.state import order_for_workers
from jostle.evaluation.runner.verification import check_run


@pytest.fixture
def finished_run(finished_runs: dict[str, Run]) -> Path:
    return finished_runs["detection"].folder


@pytest.fixture
def complete_run(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "whole"))


def test_a_run_fills_its_folder(finished_run: Path) -> None:
    metadata = json.loads((finished_run / "run.json").read_text())
    assert metadata["fingerprint"] == RECIPE.fingerprint
    assert (metadata["model"], metadata["weights"], metadata["seed"]) == ("leaning", "w1", 0)
    scores = json.loads((finished_run / "scores.json").read_text())
    assert [cell["cell"] for cell in scores["cells"]] == [cell.name for cell in RECIPE.cells[1:4]]
    assert all((cell["videos"], cell["of"]) == (4, 4) for cell in scores["cells"])
    assert scores["relative_robustness"] is not None


def test_a_second_run_does_nothing(videos: dict[str, Path], complete_run: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in (complete_run / "predictions").iterdir()}
    done = small_run.run(videos, complete_run)
    assert done.clean.decoded == 0
    assert before == {file: file.stat().st_mtime_ns for file in (complete_run / "predictions").iterdir()}


def test_workers_get_the_largest_videos_first(tmp_path: Path) -> None:
    sizes = {"small": 10, "large": 30, "middle": 20}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    (tmp_path / "images").mkdir()
    jobs = [
        VideoJob(name, tmp_path / name, (), 0, portion=part) for name in ("images", *sizes, "lost") for part in (0, 1)
    ]
    order = [(job.name, job.portion) for job in order_for_workers(jobs)]
    assert order == [(name, part) for name in ("large", "middle", "small", "images", "lost") for part in (0, 1)]


@pytest.mark.fault("F62")
@pytest.mark.parametrize("cut", [1, 40, 700])
def test_a_truncated_journal_costs_only_the_lost_events(
    videos: dict[str, Path], finished_run: Path, tmp_path: Path, cut: int
) -> None:
    out = tmp_path / "run"
    shutil.copytree(finished_run, out)
    shutil.rmtree(out / "predictions")
    (out / "scores.json").unlink()
    lines = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "journal.jsonl").write_bytes(b"".join(lines[:4])[:-cut])
    done = small_run.run(videos, out)
    assert content(out) == content(finished_run)
    assert 48 <= done.clean.decoded <= 48 * 3


def test_a_damaged_line_is_named(videos: dict[str, Path], complete_run: Path) -> None:
    lines = (complete_run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (complete_run / "journal.jsonl").write_bytes(b"".join([lines[0], b"{nonsense\n", *lines[2:]]))
    with pytest.raises(DataError, match="line 2"):
        small_run.run(videos, complete_run)


def test_cells_can_be_added_later(videos: dict[str, Path], tmp_path: Path) -> None:
    small_run.run(videos, tmp_path / "once", cells=["all"])
    small_run.run(videos, tmp_path / "bit", cells=["freeze:3"])
    scores = small_run.run(videos, tmp_path / "bit", cells=["clean"]).scores
    assert scores["counted"] == {"cells": 1, "of": 3}
    done = small_run.run(videos, tmp_path / "bit", cells=["all"])
    assert [cell["cell"] for cell in done.scores["beside"]] == ["thumos14-c/packet_loss:2"]
    assert content(tmp_path / "bit") == content(tmp_path / "once")


def bump_version(recipe: Recipe) -> Recipe:
    return dataclasses.replace(recipe, version=2)


@pytest.mark.fault("F72")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": bump_version(RECIPE)}, "fingerprint"),
        ({"weights": "w2"}, "weights was 'w1', now 'w2'"),
        ({"seed": 1}, "seed was 0, now 1"),
    ],
)
def test_another_run_is_refused(videos: dict[str, Path], complete_run: Path, change: dict, message: str) -> None:
    before = content(complete_run)
    with pytest.raises(SourceChanged, match=message):
        small_run.run(videos, complete_run, **change)
    assert content(complete_run) == before


@pytest.mark.fault("F72")
def test_another_copy_of_the_data_is_refused(videos: dict[str, Path], complete_run: Path, tmp_path: Path) -> None:
    present = {name: path for name, path in videos.items() if name != "d"}
    with pytest.raises(SourceChanged, match="missing"):
        small_run.run(present, complete_run, data=data_of(present, missing=("d",)))
    copied = tmp_path / "a.mkv"
    copied.write_bytes(videos["a"].read_bytes())
    small_run.run({**videos, "a": copied}, complete_run)  # the same bytes elsewhere
    copied.write_bytes(videos["b"].read_bytes())
    with pytest.raises(SourceChanged, match="has changed since this run processed it"):
        small_run.run({**videos, "a": copied}, complete_run)


def test_a_partial_copy_is_scored_on_the_available_videos(videos: dict[str, Path], tmp_path: Path) -> None:
    present = {name: path for name, path in videos.items() if name != "d"}
    scores = small_run.run(present, tmp_path / "run", data=data_of(present, missing=("d",))).scores
    assert all((cell["videos"], cell["of"]) == (3, 4) for cell in scores["cells"])
    assert check_run(tmp_path / "run").lacking == ("1 annotated videos have no file: d",)


def test_no_good_video_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    with pytest.raises(DataError, match="none of 1 videos"):
        small_run.run({"b": broken}, tmp_path / "run")
    assert (tmp_path / "run" / "failures.jsonl").read_text()


@pytest.mark.parametrize("calls", [1, 3, 6, 9, 12])
def test_a_full_disk_loses_nothing(
    videos: dict[str, Path], finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    real, remaining = os.fsync, [calls]

    def failing_fsync(handle: int) -> None:
        remaining[0] -= 1
        if remaining[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing_fsync)
        with pytest.raises(ResourceError, match="no space left on the disk"):
            small_run.run(videos, tmp_path / "run")
    small_run.run(videos, tmp_path / "run")
    assert content(tmp_path / "run") == content(finished_run)


def test_a_plan_writes_nothing(videos: dict[str, Path], tmp_path: Path) -> None:
    model, out = small_run.benchmark_model(), tmp_path / "run"
    plan = partial(plan_benchmark, RECIPE, data_of(videos), model, out, cells=select_cells(RECIPE))
    work = plan()
    assert (work.videos, work.looks) == (4, 16)
    assert not (tmp_path / "run").exists()
    small_run.run(videos, tmp_path / "run")
    assert plan().videos == 0


def test_a_folder_that_is_no_run_is_left_alone(videos: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(DataError, match="not a run"):
        small_run.run(videos, tmp_path)
    with pytest.raises(DataError, match=r"no run\.json"):
        check_run(tmp_path)


def test_data_for_another_task_are_refused(videos: dict[str, Path], tmp_path: Path) -> None:
    from jostle.evaluation.recipes.recipe import benchmarks

    with pytest.raises(BadValue, match="not with classes of whole videos"):
        small_run.run(videos, tmp_path / "run", recipe=benchmarks["kinetics-c"])
