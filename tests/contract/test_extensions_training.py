"""Training with extensions of examples/extensions, in processes of their own: a task, a loss and a divergence."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from helpers.small_clips import write_clips
from helpers.small_world import write_world
from jostle.models.checkpoints import read_metadata, read_weights

EXTENSIONS = Path(__file__).resolve().parents[2] / "examples" / "extensions"
LINE = """
task = "line"
seed = 5
save_every = 0.0

[optimiser]
lr = 0.1
average = 0.5
"""
CLIPS = """
task = "recognition"
recogniser = "puppet_tam"
loss = "hardest"
save_every = 0.0
input = { frames = 8, size = 32, resize = [32, 32] }

[data]
dataset = "folder"
root = "clips"
cache = "cache"
select = 0.0
jobs = 1

[optimiser]
warmup_epochs = 0
epochs = 3
batch = 4
"""
# Settings that the task has had since a later version.
LATER = """
    bias: float = 0.0
    bounds: tuple[int, ...] = (1, 2)
    folder: Path = Path("points")
"""


def start(folder: Path, *words: object) -> subprocess.Popen[str]:
    """Start `python WORDS`, which has only the extensions to import from."""
    environment = os.environ | {"PYTHONPATH": str(EXTENSIONS)}
    environment.pop("JOSTLE_IMPORT", None)
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(folder: Path, *words: object, code: int = 0) -> str:
    """Run `python WORDS`, which must end with this code; return what it said."""
    process = start(folder, *words)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return out + err


def train(folder: Path, *words: object, code: int = 0) -> str:
    return run(folder, "-m", "jostle", "train", *words, code=code)


def kill_after(rows: int, log: Path, process: subprocess.Popen[str]) -> None:
    """Kill a process once it has logged this many rows."""
    deadline = time.monotonic() + 120
    while not log.exists() or log.read_bytes().count(b"\n") < rows:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "line.toml").write_text(LINE)
    return tmp_path


def test_own_task_is_trained_killed_and_continued(folder: Path) -> None:
    words = ("line.toml", "--import", "line", "optimiser.epochs=150")
    train(folder, *words, "-o", "whole")
    rows = (folder / "whole" / "log.jsonl").read_text().splitlines()
    for steps in (5, 60):
        command = ("-m", "jostle", "train", *words, "-o", "killed")
        kill_after(steps, folder / "killed" / "log.jsonl", start(folder, *command))
    assert "steps are done" in train(folder, *words, "-o", "killed")
    for name in ("last.safetensors", "log.jsonl"):
        assert (folder / "killed" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    steps = [json.loads(row) for row in rows]
    assert len(steps) == 4 * 155
    assert steps[-1]["total"] < 0.01 * steps[0]["total"]
    weights = read_weights(folder / "whole" / "last.safetensors")
    assert float(weights["weight"]) == pytest.approx(3, abs=0.3)
    assert read_metadata(folder / "whole" / "last.safetensors")["task"] == "line"


def test_own_task_by_python_gives_the_same_bytes(folder: Path) -> None:
    script = (
        "import jostle, line\n"
        "from jostle.extend import OptimiserConfig, RunConfig\n"
        "assert issubclass(line.LineConfig, RunConfig)\n"
        "optimiser = OptimiserConfig(lr=0.1, average=0.5, epochs=5)\n"
        "config = line.LineConfig(seed=5, optimiser=optimiser, save_every=0.0)\n"
        "result = jostle.train(config, 'by-python')\n"
        "assert result.score is None and result.steps == 40, result\n"
        "print(*jostle.names('trainingtasks'))\n"
    )
    assert "detection end-to-end inspection line recognition" in run(folder, "-c", script)
    train(folder, "line.toml", "--import", "line", "optimiser.epochs=5", "-o", "by-command")
    weights = [(folder / name / "last.safetensors").read_bytes() for name in ("by-python", "by-command")]
    assert weights[0] == weights[1]


def test_a_run_goes_on_after_its_task_got_more_settings(folder: Path) -> None:
    """Changed settings are refused by name."""
    text = (EXTENSIONS / "line.py").read_text().replace('"line"', '"own"')
    (folder / "line.toml").write_text(LINE.replace('"line"', '"own"'))
    (folder / "own.py").write_text(text)
    words = ("line.toml", "--import", "own", "optimiser.epochs=300")
    train(folder, *words, "-o", "whole")
    process = start(folder, "-m", "jostle", "train", *words, "-o", "run")
    kill_after(9, folder / "run" / "log.jsonl", process)
    later = text.replace("import torch", "from pathlib import Path\nimport torch", 1)
    (folder / "own.py").write_text(later.replace("    slope: float = 3.0\n", f"    slope: float = 3.0{LATER}"))
    shutil.copytree(folder / "run", folder / "other")
    message = " ".join(train(folder, *words, "-o", "other", "bias=0.5", "seed=6", "bounds=[1, 3]", code=6).split())
    assert "other settings: seed was 5, and is 6; bias was 0.0, and is 0.5; bounds was [1, 2], and is [1, 3]" in message
    train(folder, *words, "-o", "run")
    weights = [(folder / name / "last.safetensors").read_bytes() for name in ("run", "whole")]
    assert weights[0] == weights[1]


def test_own_task_in_two_processes(folder: Path) -> None:
    words = ("-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", 29617, "-m", "jostle", "train")
    run(folder, *words, "line.toml", "--import", "line", "optimiser.epochs=5", "-o", "two")
    assert len((folder / "two" / "log.jsonl").read_text().splitlines()) == 40


@pytest.mark.parametrize("way", ["command", "python"])
def test_own_loss_is_used_killed_and_continued(folder: Path, way: str) -> None:
    write_clips(folder / "clips", clips=4)
    (folder / "clips.toml").write_text(CLIPS)
    words: tuple[object, ...] = ("-m", "jostle", "train", "clips.toml", "--import", "hardest", "-o")
    if way == "python":
        script = "import sys, hardest, jostle; jostle.train('clips.toml', sys.argv[1], overrides=['seed=0'])"
        words = ("-c", script)
    run(folder, *words, "whole")
    kill_after(3, folder / "killed" / "log.jsonl", start(folder, *words, "killed"))
    run(folder, *words, "killed")
    weights = [(folder / name / "last.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
    run(folder, "-m", "jostle", "train", "clips.toml", "loss=own", "optimiser.epochs=1", "-o", "own")
    first = [json.loads((folder / name / "log.jsonl").read_text().splitlines()[0]) for name in ("whole", "own")]
    assert first[0]["total"] > first[1]["total"]  # the largest loss of a batch, and the mean


def test_own_divergence_of_a_robust_detector(folder: Path) -> None:
    world = write_world(folder / "world")
    lines = [
        'detector = "temporalmaxer"',
        "settings = { input_dim = 8, dim = 16, classes = 2, max_length = 64, levels = 4 }",
        'consistency = { divergence = "hellinger", form = "paper" }',
        "optimiser = { epochs = 1, warmup_epochs = 0 }",
        "[data]",
        f'features = "{world / "clean"}"\ncorrupted = "{world / "rough"}"\ntruth = "{world / "truth.json"}"',
    ]
    (folder / "robust.toml").write_text("\n".join(lines))
    train(folder, "robust.toml", "--import", "hellinger", "-o", "run")
    rows = [json.loads(row) for row in (folder / "run" / "log.jsonl").read_text().splitlines()]
    assert all(0 < row["consistency"] < 20 for row in rows if row["event"] == "step")
    script = "import hellinger, jostle; print(jostle.names('divergences'), jostle.names('losses'))"
    assert "['hellinger', 'js', 'kl', 'mse'] ['all', 'own', 'worst']" in run(folder, "-c", script)
    words = ("robust.toml", "consistency.divergence=helinger", "--import", "hellinger", "-o", "x")
    assert "no divergence is called 'helinger': did you mean hellinger" in train(folder, *words, code=2)
