"""A run: whatever happens to it, it ends in the same bytes, does nothing twice and mixes nothing."""

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
    """The bytes of everything that a run is for."""
    files = [file for name in FINAL for file in ([*(folder / name).rglob("*")] or [folder / name])]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def looks(folder: Path) -> list[str]:
    return [event.video for event in read_events(folder / "journal.jsonl") if isinstance(event, VideoKept)]


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_videos(tmp_path_factory.mktemp("videos"))


@pytest.fixture(scope="module")
def undisturbed(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    small_run.run(videos, out)
    return out


@pytest.fixture
def whole(undisturbed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(undisturbed, tmp_path / "whole"))


def test_a_run_fills_its_folder(undisturbed: Path) -> None:
    about = json.loads((undisturbed / "run.json").read_text())
    assert about["fingerprint"] == RECIPE.fingerprint
    assert (about["model"], about["weights"], about["seed"]) == ("leaning", "w1", 0)
    scores = json.loads((undisturbed / "scores.json").read_text())
    assert [cell["cell"] for cell in scores["cells"]] == [cell.name for cell in RECIPE.cells[1:4]]
    assert all((cell["videos"], cell["of"]) == (4, 4) for cell in scores["cells"])
    assert scores["relative_robustness"] is not None
    assert len({(undisturbed / "predictions" / f"{cell.slug}.json").read_bytes() for cell in RECIPE.cells[:4]}) == 4
    found = check_run(undisturbed)
    assert (found.altered, found.lacking, found.videos, found.of) == ((), (), 4, 4)


def test_a_second_run_does_nothing(videos: dict[str, Path], whole: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in (whole / "predictions").iterdir()}
    done = small_run.run(videos, whole)
    assert done.clean.decoded == 0
    assert before == {file: file.stat().st_mtime_ns for file in (whole / "predictions").iterdir()}


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
def test_neither_jobs_nor_order_show(videos: dict[str, Path], undisturbed: Path, tmp_path: Path) -> None:
    small_run.run(videos, tmp_path / "two", jobs=2)
    small_run.run(dict(reversed(videos.items())), tmp_path / "back")
    assert content(tmp_path / "two") == content(tmp_path / "back") == content(undisturbed)


@pytest.mark.fault("F62")
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("after", range(6))  # lines of the journal: from none to most
def test_a_killed_run_goes_on_to_the_same_bytes(
    videos: dict[str, Path], undisturbed: Path, tmp_path: Path, jobs: int, after: int
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
    before = looks(out)
    small_run.run(videos, out)
    assert content(out) == content(undisturbed)
    assert len(looks(out)) <= len(NAMES) + jobs  # what was in hand, and no more
    assert looks(out)[: len(before)] == before
    assert not list(out.rglob(".*"))
    assert check_run(out).lacking == ()


@pytest.mark.fault("F62")
@pytest.mark.parametrize("cut", [1, 40, 700])
def test_a_cut_journal_costs_what_it_stood_for(
    videos: dict[str, Path], undisturbed: Path, tmp_path: Path, cut: int
) -> None:
    out = tmp_path / "run"
    shutil.copytree(undisturbed, out)
    shutil.rmtree(out / "predictions")
    (out / "scores.json").unlink()
    lines = (out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (out / "journal.jsonl").write_bytes(b"".join(lines[:4])[:-cut])
    done = small_run.run(videos, out)
    assert content(out) == content(undisturbed)
    assert 48 <= done.clean.decoded <= 48 * 3


def test_a_damaged_line_is_named(videos: dict[str, Path], whole: Path) -> None:
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (whole / "journal.jsonl").write_bytes(b"".join([lines[0], b"{nonsense\n", *lines[2:]]))
    with pytest.raises(DataError, match="line 2"):
        small_run.run(videos, whole)


@pytest.mark.parametrize("with_results", [True, False])
def test_a_deleted_predictions_file_is_done_again_and_nothing_else(
    videos: dict[str, Path], undisturbed: Path, whole: Path, with_results: bool
) -> None:
    gone = whole / "predictions" / f"{RECIPE.cells[2].slug}.json"
    gone.unlink()
    if not with_results:
        shutil.rmtree(whole / "videos")
    assert check_run(whole).lacking
    before = {file: file.stat().st_mtime_ns for file in (whole / "predictions").iterdir()}
    done = small_run.run(videos, whole)
    assert content(whole) == content(undisturbed)
    assert done.clean.decoded == (0 if with_results else 4 * 48)
    after = {file: file.stat().st_mtime_ns for file in (whole / "predictions").iterdir() if file != gone}
    assert before == after
    again = [event.cell for event in read_events(whole / "journal.jsonl") if isinstance(event, CellWritten)][4:]
    assert again == [RECIPE.cells[2].name]


def test_more_cells_may_come_later(videos: dict[str, Path], tmp_path: Path) -> None:
    small_run.run(videos, tmp_path / "once", cells=["all"])
    small_run.run(videos, tmp_path / "bit", cells=["freeze:3"])
    scores = small_run.run(videos, tmp_path / "bit", cells=["clean"]).scores
    assert scores["counted"] == {"cells": 1, "of": 3}
    done = small_run.run(videos, tmp_path / "bit", cells=["all"])
    assert [cell["cell"] for cell in done.scores["beside"]] == ["thumos14-c/packet_loss:2"]
    assert content(tmp_path / "bit") == content(tmp_path / "once")


def renamed(recipe: Recipe) -> Recipe:
    return dataclasses.replace(recipe, version=2)


@pytest.mark.fault("F72")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": renamed(RECIPE)}, "fingerprint"),
        ({"weights": "w2"}, "weights was 'w1', now 'w2'"),
        ({"seed": 1}, "seed was 0, now 1"),
    ],
)
def test_another_run_is_refused(videos: dict[str, Path], whole: Path, change: dict, said: str) -> None:
    before = content(whole)
    with pytest.raises(SourceChanged, match=said):
        small_run.run(videos, whole, **change)
    assert content(whole) == before


@pytest.mark.fault("F72")
def test_another_copy_of_the_data_is_refused(videos: dict[str, Path], whole: Path, tmp_path: Path) -> None:
    part = {name: path for name, path in videos.items() if name != "d"}
    with pytest.raises(SourceChanged, match="missing"):
        small_run.run(part, whole, data=data_of(part, missing=("d",)))
    copied = tmp_path / "a.mkv"
    copied.write_bytes(videos["a"].read_bytes())
    small_run.run({**videos, "a": copied}, whole)  # the same bytes elsewhere
    copied.write_bytes(videos["b"].read_bytes())
    with pytest.raises(SourceChanged, match="has changed since this run processed it"):
        small_run.run({**videos, "a": copied}, whole)


@pytest.mark.fault("F73")
def test_an_edited_predictions_file_is_refused(videos: dict[str, Path], whole: Path) -> None:
    file = whole / "predictions" / "clean.json"
    file.write_bytes(file.read_bytes().replace(b"0.2", b"0.3"))
    with pytest.raises(SourceChanged, match=r"clean\.json: not what this run wrote"):
        small_run.run(videos, whole)
    assert check_run(whole).altered


def test_a_partial_copy_is_scored_on_what_is_there(videos: dict[str, Path], tmp_path: Path) -> None:
    part = {name: path for name, path in videos.items() if name != "d"}
    scores = small_run.run(part, tmp_path / "run", data=data_of(part, missing=("d",))).scores
    assert all((cell["videos"], cell["of"]) == (3, 4) for cell in scores["cells"])
    assert check_run(tmp_path / "run").lacking == ("1 annotated videos have no file: d",)


def test_a_bad_video_is_listed_and_tried_again_when_asked(
    videos: dict[str, Path], undisturbed: Path, tmp_path: Path
) -> None:
    out, broken = tmp_path / "run", tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    mixed = {**videos, "b": broken}
    done = small_run.run(mixed, out)
    assert [failure["video"] for failure in done.failures] == ["b"]
    assert json.loads((out / "failures.jsonl").read_text())["video"] == "b"
    assert done.scores["cells"][0]["videos"] == 3
    broken.write_bytes(videos["b"].read_bytes())
    assert small_run.run(mixed, out).failures == done.failures  # not asked
    again = small_run.run(mixed, out, retry_failed=True)
    assert (again.failures, again.clean.decoded) == ((), 48)
    assert content(out) == content(undisturbed)


def test_no_good_video_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    with pytest.raises(DataError, match="none of 1 videos"):
        small_run.run({"b": broken}, tmp_path / "run")
    assert (tmp_path / "run" / "failures.jsonl").read_text()


@pytest.mark.parametrize("calls", [1, 3, 6, 9, 12])
def test_a_full_disk_loses_nothing(
    videos: dict[str, Path], undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    real, left = os.fsync, [calls]

    def full(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ResourceError, match="no space left on the disk"):
            small_run.run(videos, tmp_path / "run")
    small_run.run(videos, tmp_path / "run")
    assert content(tmp_path / "run") == content(undisturbed)


def test_a_plan_writes_nothing(videos: dict[str, Path], tmp_path: Path) -> None:
    model, out = small_run.contestant(), tmp_path / "run"
    plan = partial(plan_benchmark, RECIPE, data_of(videos), model, out, cells=select_cells(RECIPE))
    told = plan().to_dict()
    assert (told["videos"], told["looks"]) == (4, 16)
    assert not (tmp_path / "run").exists()
    small_run.run(videos, tmp_path / "run")
    assert plan().to_dict()["videos"] == 0


def test_what_is_no_run_is_left_alone(videos: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(DataError, match="not a run"):
        small_run.run(videos, tmp_path)
    with pytest.raises(DataError, match=r"no run\.json"):
        check_run(tmp_path)


def test_data_for_another_task_are_refused(videos: dict[str, Path], tmp_path: Path) -> None:
    from jostle.evaluation.recipes.recipe import benchmarks

    with pytest.raises(BadValue, match="not with classes of whole videos"):
        small_run.run(videos, tmp_path / "run", recipe=benchmarks["kinetics-c"])
