"""Recognition and frame runs: reproducible bytes after any interruption, and scores that match the predictions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers import small_recognition
from helpers.numpy_extractor import write_video
from helpers.small_recognition import CELLS, CLASSES, FRAMES, LABELS, NAMES, RECIPE, SAMPLING, data_of
from helpers.small_tasks import content
from jostle.errors import SourceChanged
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.verification import check_run
from jostle.io.formats.frame_scores import read_frame_scores
from jostle.metrics.accuracy import top_k_accuracy


def test_a_recognition_run_fills_its_folder(finished_runs: dict[str, Run]) -> None:
    folder = finished_runs["recognition"].folder
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["metric"] == "top-1 accuracy"
    assert [cell["cell"] for cell in scores["cells"]] == list(CELLS[:5])
    assert sorted(scores["by_group"]) == ["coded", "main"]
    assert {"blur", "noise", "transmission"} <= {*scores["by_family"]}  # not the names of the recipe's groups
    assert scores["coverage"] == {"videos": 4, "of": 4, "classes": 3, "of_classes": 3}
    for cell in [{"cell": "clean", "value": scores["clean"], **scores["clean_more"]}, *scores["cells"]]:
        name = "clean" if cell["cell"] == "clean" else RECIPE[cell["cell"]].slug
        with np.load(folder / "predictions" / f"{name}.npz") as archive:
            assert archive["videos"].tolist() == list(NAMES)
            assert archive["classes"].tolist() == list(CLASSES)
            table = archive["scores"]
        expected = top_k_accuracy(table, LABELS.label)
        assert (cell["value"], tuple(cell["interval"])) == (expected.accuracy, expected.interval)
    metadata = json.loads((folder / "run.json").read_text())
    assert (metadata["weights"], metadata["weights_from"], metadata["extractor"]) == (None, "nothing", None)


def test_scores_of_a_frame_run_equal_pm_k(finished_runs: dict[str, Run]) -> None:
    folder = finished_runs["frames"].folder
    scores = json.loads((folder / "scores.json").read_text())
    file = folder / "predictions" / "clean.npz"
    assert list(read_frame_scores(file)) == list(FRAMES.frames)
    expected = jostle.pm_k(file, FRAMES.sets, FRAMES.labels, 2)
    assert scores["clean_more"]["pm_k"] == json.loads(json.dumps(expected.to_dict()))
    assert (scores["metric"], scores["clean"], scores["cells"]) == ("pm-2", expected.pm_k, [])
    assert scores["mean_corrupted"] is None


def test_frames_can_be_corrupted_too(videos: dict[str, Path], tmp_path: Path) -> None:
    done = small_recognition.run(videos, tmp_path / "run", task="frames", cells=["all"])
    assert [cell["cell"] for cell in done.scores["beside"]] == ["gaussian_noise:2"]
    assert done.clean.joined == done.cells.joined == 12


@pytest.mark.parametrize("task", ["recognition", "frames"])
def test_the_journal_records_the_input_frames(finished_runs: dict[str, Run], task: str) -> None:
    frames = RunRecord.read(finished_runs[task].folder).input_frames("c")
    assert frames.tolist() == [19, 20, 22] if task == "frames" else len(frames) == 6 * SAMPLING.clips


@pytest.fixture
def portions_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store results of frames in portions of two; every video here has three frames."""
    monkeypatch.setattr("jostle.evaluation.tasks.similar_frames.PORTION", 2)


@pytest.mark.usefixtures("portions_of_two")
def test_a_portion_that_fails_excludes_its_video(
    videos: dict[str, Path], finished_runs: dict[str, Run], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    short = write_video(tmp_path / "b.mkv", 22, seed=1)  # the last frame of b lies beyond its end
    done = small_recognition.run({**videos, "b": short}, out, task="frames")
    assert [(failure["video"], "no frame 22" in failure["message"]) for failure in done.failures] == [("b", True)]
    assert done.scores["coverage"] == {"videos": 3, "of": 4}
    again = small_recognition.run({**videos, "b": short}, out, task="frames")
    assert (len(again.failures), again.clean.joined) == (1, 0)
    (out / "videos" / "b.portion0").unlink()
    short.write_bytes(videos["b"].read_bytes())
    with pytest.raises(SourceChanged, match="has changed since this run processed it"):
        small_recognition.run({**videos, "b": short}, out, task="frames", retry_failed=True)


@pytest.mark.usefixtures("portions_of_two")
def test_an_altered_portion_is_predicted_again(
    videos: dict[str, Path], finished_runs: dict[str, Run], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_recognition.run(videos, out, task="frames")
    (out / "predictions" / "clean.npz").unlink()
    (out / "videos" / "c.portion1").write_bytes(b"no longer")
    assert small_recognition.run(videos, out, task="frames").clean.joined == 1
    assert content(out) == content(finished_runs["frames"].folder)


def test_missing_frames_are_left_out_of_their_sets(videos: dict[str, Path], tmp_path: Path) -> None:
    present = {name: path for name, path in videos.items() if name != "d"}
    missing = ("a/000019", "b/000020", "d/000019", "d/000020", "d/000022")
    data = data_of(present, "frames", missing=missing)
    done = small_recognition.run(present, tmp_path / "run", task="frames", data=data)
    assert done.scores["clean_more"]["pm_k"]["anchors"] == 2
    assert list(read_frame_scores(tmp_path / "run" / "predictions" / "clean.npz")) == [
        "a/000020",
        "a/000022",
        *(f"c/0000{n}" for n in (20, 19, 22)),
    ]
    assert check_run(tmp_path / "run").lacking == (
        "5 annotated frames have no file: a/000019, b/000020, d/000019 and 2 more",
    )


def test_progress_events_carry_the_current_values(videos: dict[str, Path], tmp_path: Path) -> None:
    counts = []
    done = small_recognition.run(videos, tmp_path / "run", watch=lambda tick: counts.append((tick.done, tick.total)))
    assert counts == [(1, 4), (2, 4), (3, 4), (4, 4)]
    ticks = []
    shutil.rmtree(tmp_path / "run" / "predictions")
    lines = (tmp_path / "run" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"".join(lines[:3]))
    small_recognition.run(videos, tmp_path / "run", watch=ticks.append)
    assert len(ticks) == 1  # one video was left
    cells = ticks[0].cells
    assert {cells[name].videos for name in ("clean", *CELLS[:5])} == {4}
    assert cells["clean"].value == done.scores["clean"]
    assert cells[CELLS[5]].value is None  # not requested
