"""Boards mark what differs, few videos are warned of, and no metric of one's own is replaced by another."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.striped_videos import CELLS, StripeReader, run_stripes, write_benchmark

pytest.importorskip("torch")  # runs of models need it

OWN = """
from jostle.extend import metric


@metric("constant_map", task="detection")
def constant_map(predictions, truth):
    '''A metric that has nothing to do with mAP.'''
    return 0.123


@metric("constant_pm", task="frames")
def constant_pm(scores, sets):
    '''A metric that no task of frames computes.'''
    return 0.123
"""
DETECTION = """
name = "own-c"
version = 1
dataset = "folder"
subset = ""
task = "detection"
metric = "constant_map"
protocol = "thumos14"

[[groups]]
name = "main"
cells = ["brightness:3"]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("board")
    run_stripes(write_benchmark(root, 5, CELLS[:2]), root / "run", StripeReader((), {1}))
    return root / "run"


def changed(run: Path, to: Path, **facts: Any) -> Path:
    shutil.copytree(run, to)
    about = json.loads((to / "run.json").read_text())
    (to / "run.json").write_text(json.dumps(about | facts))
    return to


def test_board_marks_conditions_and_takes_runs_that_score_the_same(run: Path, tmp_path: Path) -> None:
    half = changed(run, tmp_path / "half", precision="bfloat16", compiled=True)
    bug = changed(run, tmp_path / "bug", reproduce_bugs=["early-row"])
    index = jostle.board([run, half, bug], tmp_path / "board", draws=20)
    rows = json.loads((index.parent / "board.json").read_text())["boards"][0]["tables"][0]["rows"]
    marked = {row["origin"]: row["conditions"] for row in rows}
    assert marked == {
        "run": {},
        "half": {"precision": "bfloat16", "torch.compile": "on"},
        "bug": {"reproduced bugs": "early-row"},
    }
    pages = "".join(page.read_text() for page in index.parent.glob("*.html"))
    assert "precision: bfloat16" in pages
    assert "reproduced bugs: early-row" in pages
    jostle.export_run(half, tmp_path / "half.json", draws=20)
    assert json.loads((tmp_path / "half.json").read_text())["record"]["conditions"]["precision"] == "bfloat16"
    with pytest.raises(jostle.JostleError, match="are the same run"):
        jostle.board([run, shutil.copytree(run, tmp_path / "copy")], tmp_path / "twice", draws=20)


def test_few_videos_are_warned_of(run: Path, tmp_path: Path) -> None:
    assert any("few videos" in remark for remark in jostle.diff(run, run, draws=50).remarks)
    page = jostle.report(run, out=tmp_path / "page.html", draws=50).read_text()
    assert "too narrow, as videos are few" in page
    truth = {
        "database": {
            f"v{i}": {"subset": "test", "annotations": [{"label": "a", "segment": [1.0, 4.0]}]} for i in range(5)
        }
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    found = {f"v{i}": [{"label": "a", "score": 0.5 + i / 10, "segment": [1.0 + i % 2, 4.0]}] for i in range(5)}
    (tmp_path / "found.json").write_text(json.dumps({"version": "1", "results": found, "external_data": {}}))
    score = jostle.score(
        jostle.load_predictions(tmp_path / "found.json"), jostle.load_truth(tmp_path / "truth.json"), bootstrap=50
    )
    assert any("few videos" in remark for remark in score.remarks)


def test_own_metric_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "own_metrics.py").write_text(OWN)
    (tmp_path / "own-c.toml").write_text(DETECTION)
    database = {}
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        np_frames = rng.integers(0, 255, (12, 24, 32, 3), np.uint8)
        folder = tmp_path / "data" / f"film_{number}"
        folder.mkdir()
        import cv2

        for t, frame in enumerate(np_frames):
            cv2.imwrite(str(folder / f"{t:05d}.png"), frame)
        database[f"film_{number}"] = {
            "subset": "test",
            "duration": 1.2,
            "fps": 10,
            "annotations": [{"label": "jump", "segment": [0.2, 0.8]}],
        }
    (tmp_path / "data" / "truth.json").write_text(json.dumps({"database": database}))
    code = """
import own_metrics, json, jostle
from jostle import Segments

def model(frames, *, fps, duration):
    return Segments([0.2], [0.8], [0], [0.9], ("jump",))

jostle.run("own-c.toml", model=model, data="data", out="run", fps=10, jobs=1)
budget = {"condition": [{"metric": "clean", "at_least": 0.5}, {"metric": "mean_corrupted", "at_least": 0.1}]}
checked = jostle.check("run", budget=budget)
print(json.dumps([(one.value, one.decision, one.reason) for one in checked.conditions]))
jostle.report("run", out="page.html")
jostle.board(["run"], "board", draws=20)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    conditions = json.loads(done.stdout.splitlines()[-1])
    assert [one[:2] for one in conditions] == [[0.123, "undecided"]] * 2
    assert "no intervals" in conditions[0][2]
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert (scores["metric"], scores["clean"]) == ("constant_map", 0.123)
    for page in (tmp_path / "page.html", *(tmp_path / "board").glob("own-c*.html")):
        assert "12.3" in page.read_text()
        assert "mAP@" not in page.read_text()
    # A process that does not know the metric replaces it by nothing either.
    board = subprocess.run(
        [sys.executable, "-m", "jostle", "check", "run", "--budget", "budget.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert board.returncode == 2  # there is no such file
    (tmp_path / "budget.toml").write_text('[[condition]]\nmetric = "clean"\nat_least = 0.5\n')
    again = [sys.executable, "-m", "jostle", "check", "run", "--budget", "budget.toml"]
    assert subprocess.run(again, cwd=tmp_path, capture_output=True).returncode == 8


def test_metrics_that_a_task_would_replace_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own_metrics.py").write_text(OWN)
    frames = DETECTION.replace('task = "detection"', 'task = "frames"').replace(
        'protocol = "thumos14"', 'k = 3\nlabels_of = "own"'
    )
    (tmp_path / "frames.toml").write_text(frames.replace("constant_map", "constant_pm"))
    questions = DETECTION.replace('task = "detection"', 'task = "questions"').replace('protocol = "thumos14"\n', "")
    (tmp_path / "questions.toml").write_text(questions.replace("constant_map", "temporal_sensitivity"))
    code = """
import own_metrics
from jostle.extend import load_benchmark
for name in ("frames", "questions"):
    try:
        load_benchmark(f"{name}.toml")
    except Exception as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "cells of frames are scored by pm_k, and constant_pm would be replaced" in done.stdout
    assert "cells of questions are scored by answer_accuracy, and temporal_sensitivity would be replaced" in done.stdout


def test_few_videos_of_answers_are_warned_of(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{i}", "video": f"v{i // 2}", "question": "Q?", "options": ["up", "down"], "answer": 0}
        for i in range(6)
    ]
    (tmp_path / "answers.json").write_text(json.dumps({f"q{i}": "AB"[i % 2] for i in range(6)}))
    for name, own in (("several", rows), ("one", rows[::2])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own))
        command = [sys.executable, "-m", "jostle", "eval", "answers.json", "--truth", f"{name}.jsonl"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert ("few videos" in done.stderr) == (name == "several")  # one question a video has an exact interval
