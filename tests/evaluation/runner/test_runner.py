"""Benchmark runs: resumable to the same bytes, without repeated work and without mixing different runs."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from helpers import small_run
from helpers.small_run import NAMES, RECIPE, data_of, write_videos
from jostle.errors import BadValue, DataError, ResourceError, SourceChanged
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.run_folder.journal import CellWritten, VideoKept, read_events
from jostle.evaluation.runner.runner import plan_benchmark
from jostle.evaluation.runner.state import order_for_workers
from jostle.evaluation.runner.verification import check_run

FINAL = ("run.json", "scores.json", "failures.jsonl", "predictions")


def content(folder: Path) -> dict[str, bytes]:
    """Read the bytes of every final file of a run."""
    files = [file for name in FINAL for file in ([*(folder / name).rglob("*")] or [folder / name])]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def predicted_videos(folder: Path) -> list[str]:
    return [event.video for event in read_events(folder / "journal.jsonl") if isinstance(event, VideoKept)]


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_videos(tmp_path_factory.mktemp("videos"))


@pytest.fixture(scope="module")
def finished_run(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    small_run.run(videos, out)
    return out


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
    assert len({(finished_run / "predictions" / f"{cell.slug}.json").read_bytes() for cell in RECIPE.cells[:4]}) == 4
    check = check_run(finished_run)
    assert (check.altered, check.lacking, check.videos, check.of) == ((), (), 4, 4)


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


@pytest.mark.fault("F76")
def test_results_do_not_depend_on_jobs_or_order(videos: dict[str, Path], finished_run: Path, tmp_path: Path) -> None:
    small_run.run(videos, tmp_path / "two", jobs=2)
    small_run.run(dict(reversed(videos.items())), tmp_path / "back")
    assert content(tmp_path / "two") == content(tmp_path / "back") == content(finished_run)


@pytest.mark.fault("F62")
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("after", range(6))  # lines of the journal: from none to most
def test_a_killed_run_resumes_to_the_same_bytes(
    videos: dict[str, Path], finished_run: Path, tmp_path: Path, jobs: int, after: int
) -> None:
    out = tmp_path / "run"
    program = [sys.executable, small_run.__file__, str(videos["a"].parent), str(out), str(jobs)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(program, env=environment)
    journal = out / "journal.jsonl"
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") >= after:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = predicted_videos(out)
    small_run.run(videos, out)
    assert content(out) == content(finished_run)
    assert len(predicted_videos(out)) <= len(NAMES) + jobs  # at most the videos in progress
    assert predicted_videos(out)[: len(before)] == before
    assert not list(out.rglob(".*"))
    assert check_run(out).lacking == ()


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


@pytest.mark.parametrize("with_results", [True, False])
def test_only_a_deleted_predictions_file_is_written_again(
    videos: dict[str, Path], finished_run: Path, complete_run: Path, with_results: bool
) -> None:
    deleted = complete_run / "predictions" / f"{RECIPE.cells[2].slug}.json"
    deleted.unlink()
    if not with_results:
        shutil.rmtree(complete_run / "videos")
    assert check_run(complete_run).lacking
    before = {file: file.stat().st_mtime_ns for file in (complete_run / "predictions").iterdir()}
    done = small_run.run(videos, complete_run)
    assert content(complete_run) == content(finished_run)
    assert done.clean.decoded == (0 if with_results else 4 * 48)
    after = {file: file.stat().st_mtime_ns for file in (complete_run / "predictions").iterdir() if file != deleted}
    assert before == after
    rewritten = [event.cell for event in read_events(complete_run / "journal.jsonl") if isinstance(event, CellWritten)][
        4:
    ]
    assert rewritten == [RECIPE.cells[2].name]


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


@pytest.mark.fault("F73")
def test_an_edited_predictions_file_is_refused(videos: dict[str, Path], complete_run: Path) -> None:
    file = complete_run / "predictions" / "clean.json"
    file.write_bytes(file.read_bytes().replace(b"0.2", b"0.3"))
    with pytest.raises(SourceChanged, match=r"clean\.json: not what this run wrote"):
        small_run.run(videos, complete_run)
    assert check_run(complete_run).altered


def test_a_partial_copy_is_scored_on_the_available_videos(videos: dict[str, Path], tmp_path: Path) -> None:
    present = {name: path for name, path in videos.items() if name != "d"}
    scores = small_run.run(present, tmp_path / "run", data=data_of(present, missing=("d",))).scores
    assert all((cell["videos"], cell["of"]) == (3, 4) for cell in scores["cells"])
    assert check_run(tmp_path / "run").lacking == ("1 annotated videos have no file: d",)


def test_a_bad_video_is_listed_and_retried_on_request(
    videos: dict[str, Path], finished_run: Path, tmp_path: Path
) -> None:
    out, broken = tmp_path / "run", tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    mixed = {**videos, "b": broken}
    done = small_run.run(mixed, out)
    assert [failure["video"] for failure in done.failures] == ["b"]
    assert json.loads((out / "failures.jsonl").read_text())["video"] == "b"
    assert done.scores["cells"][0]["videos"] == 3
    broken.write_bytes(videos["b"].read_bytes())
    assert small_run.run(mixed, out).failures == done.failures  # no retry requested
    again = small_run.run(mixed, out, retry_failed=True)
    assert (again.failures, again.clean.decoded) == ((), 48)
    assert content(out) == content(finished_run)


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
