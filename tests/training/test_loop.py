"""Training loop: learning, resuming, non-finite steps, checkpoints and distributed training."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.small_world import make_config, write_world
from helpers.stopped_work import Stop, assert_resumes, logged_rows, spoil, stop_at
from jostle.errors import BadValue, CheckpointError, DataError, ResourceError, SourceChanged
from jostle.io.files.lock import FolderLock
from jostle.models.checkpoints import read_weights, write_weights
from jostle.models.detection.detector import make_detector
from jostle.training.checkpoint import CHECKPOINT
from jostle.training.detection_config import TrainingConfig
from jostle.training.loop import Trainer, train


def test_training_reduces_the_loss_and_selects_by_held_out_videos(world: Path, tmp_path: Path) -> None:
    config = make_config(world, optimiser={"epochs": 14, "lr": 5e-3}, data={"select": 0.2}, chosen_by="map@0.5")
    result = train(config, tmp_path)
    steps = logged_rows(tmp_path, "step")
    assert len(steps) == result.steps == 15 * 4  # 10 videos, 2 held out, 2 per step
    assert np.mean([row["total"] for row in steps[-4:]]) < 0.5 * np.mean([row["total"] for row in steps[:4]])
    assert result.score == max(row["map@0.5"] for row in logged_rows(tmp_path, "score"))
    assert result.score > 0.5
    assert result.weights == tmp_path / "best.safetensors"
    settings = {"input_dim": 8, "dim": 16, "classes": 2, "max_length": 64, "levels": 4}
    detector = make_detector("temporalmaxer", weights=result.weights, **settings)
    features = np.load(world / "clean" / "video13.npy")
    assert len(detector.detect(features, fps=25.0, duration=10.0)) > 0


def anchor_config(world: Path, **changes: Any) -> TrainingConfig:
    """Return the configuration of a detector with anchors."""
    config = make_config(world, **changes)
    settings = {"input_dim": 8, "dim": 32, "classes": 2, "max_length": 64, "levels": 4, "neighbours": 4, "gap": 4}
    return replace(config, detector="vsgn", settings=settings)


def test_detector_with_anchors_learns(world: Path, tmp_path: Path) -> None:
    data = {"select": 0.2, "corrupted": str(world / "rough")}
    result = train(anchor_config(world, optimiser={"epochs": 5, "lr": 5e-3}, data=data), tmp_path)
    steps = logged_rows(tmp_path, "step")
    terms = {"classification", "regression", "adjustment", "action", "start", "end", "consistency", "total"}
    assert terms <= set(steps[0])
    assert np.mean([row["total"] for row in steps[-4:]]) < 0.7 * np.mean([row["total"] for row in steps[:4]])
    assert result.score is not None
    assert result.score > 0.1


def test_detector_with_anchors_resumes(world: Path, tmp_path: Path) -> None:
    config = anchor_config(world, data={"select": 0.2, "corrupted": str(world / "rough")}, save_every=0.0)
    assert_resumes(config, tmp_path, 5)


@pytest.mark.parametrize(
    ("detector", "robust"),
    [
        ("temporalmaxer", True),
        ("actionformer", False),
        pytest.param("temporalmaxer", False, marks=pytest.mark.slow),
        pytest.param("actionformer", True, marks=pytest.mark.slow),
    ],
)
def test_resumed_run_gives_the_same_weights(world: Path, tmp_path: Path, detector: str, robust: bool) -> None:
    changes = {"detector": detector, "save_every": 0.0, "data": {"select": 0.2}}
    if detector == "actionformer":  # drop-path draws in every step
        changes["settings"] = {"heads": 2, "window": 5, "mlp_dim": 32}
    if robust:
        changes["data"] = {"select": 0.2, "corrupted": str(world / "rough")}
    config = make_config(world, **changes)
    steps = assert_resumes(config, tmp_path, 3, 4, 9)
    assert not robust or all(row["consistency"] >= 0 for row in steps)


def test_finished_run_is_not_repeated(world: Path, tmp_path: Path) -> None:
    config = make_config(world)
    first = train(config, tmp_path)
    before = (tmp_path / CHECKPOINT).stat().st_mtime_ns
    assert train(config, tmp_path) == first
    assert (tmp_path / CHECKPOINT).stat().st_mtime_ns == before


@pytest.mark.fault("F72")
def test_F72_other_settings_or_data_are_refused(tmp_path: Path) -> None:
    world = write_world(tmp_path / "world", videos=12)
    train(make_config(world), tmp_path / "run")
    with pytest.raises(SourceChanged, match="holds a run with other settings: seed was 3, and is 4; train into"):
        train(make_config(world, seed=4), tmp_path / "run")
    path = world / "clean" / "video00.npy"
    np.save(path, np.load(path) + 1)
    with pytest.raises(SourceChanged, match="holds a run with other data or first weights; train into another folder"):
        train(make_config(world), tmp_path / "run")


@pytest.mark.fault("F95")
def test_F95_non_finite_step_is_skipped_and_counted(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(make_config(world), tmp_path)
    spoil(monkeypatch, trainer.learner, "losses_of", lambda step: step in (2, 5), torch.nan)
    result = trainer.run()
    assert result.skipped == 2
    assert len(logged_rows(tmp_path, "skipped")) == 2
    assert len(logged_rows(tmp_path, "step")) == result.steps == 15 - 2
    assert all(torch.isfinite(value).all() for value in read_weights(result.weights).values())


@pytest.mark.fault("F95")
def test_F95_too_many_bad_steps_stop_the_run_with_the_last_good_checkpoint(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(world, bad_steps=3, save_every=0.0)
    trainer = Trainer(config, tmp_path)
    spoil(monkeypatch, trainer.learner, "losses_of", lambda step: step > 3, torch.inf)
    with pytest.raises(DataError, match=r"3 steps in a row .* the last good checkpoint is in") as caught:
        trainer.run()
    assert caught.value.fault == "F95"
    assert all(torch.isfinite(value.float()).all() for value in read_weights(tmp_path / CHECKPOINT).values())


@pytest.mark.fault("F95")
def test_F95_crops_without_any_action_are_reported(world: Path, tmp_path: Path) -> None:
    config = make_config(world, data={"crop": [0.02, 0.02], "visible": 1.0})
    with pytest.raises(DataError, match="none of 200 crops of at most 64 steps shows an action"):
        train(config, tmp_path)


@pytest.mark.fault("F96")
def test_F96_interrupted_checkpoint_write_keeps_the_previous_one(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(world, save_every=0.0)
    with pytest.raises(Stop):
        train(config, tmp_path / "run", on_step=stop_at(4))
    before = (tmp_path / "run" / CHECKPOINT).read_bytes()

    def killed(source: object, target: object) -> None:
        raise Stop

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(Stop):
        train(config, tmp_path / "run")
    monkeypatch.undo()
    assert (tmp_path / "run" / CHECKPOINT).read_bytes() == before
    result = train(config, tmp_path / "run")
    assert result.weights.read_bytes() == train(config, tmp_path / "whole").weights.read_bytes()


@pytest.mark.fault("F114")
def test_F114_log_rows_without_a_checkpoint_are_discarded(world: Path, tmp_path: Path) -> None:
    """The run restarts from step 0, and a truncated line does not merge with the next one."""
    train(make_config(world), tmp_path / "whole")
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "log.jsonl").write_text('{"event": "step", "step": 1, "epoch": 9}\n{"event": "step", "st')
    train(make_config(world), tmp_path / "killed")
    logs = [(tmp_path / name / "log.jsonl").read_bytes() for name in ("whole", "killed")]
    assert logs[0] == logs[1]


@pytest.mark.fault("F114")
def test_F114_files_are_replaced_atomically(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes the run description and a log truncated to its checkpoint."""
    config = make_config(world, save_every=0.0)
    with pytest.raises(Stop):
        train(config, tmp_path / "run", on_step=stop_at(4))
    placed = []
    replace_file = os.replace

    def note(source: os.PathLike[str], target: os.PathLike[str]) -> None:
        placed.append(Path(target).name)
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", note)
    train(config, tmp_path / "run")
    train(config, tmp_path / "new")
    assert {"log.jsonl", "train.json"} <= set(placed)


@pytest.mark.fault("F115")
def test_F115_concurrent_runs_in_one_folder_are_refused(world: Path, tmp_path: Path) -> None:
    with FolderLock(tmp_path / "run"), pytest.raises(ResourceError, match="another process works in this folder"):
        train(make_config(world), tmp_path / "run")
    train(make_config(world), tmp_path / "run")


@pytest.mark.fault("F117")
def test_F117_checkpoint_without_its_position_is_refused(world: Path, tmp_path: Path) -> None:
    config = make_config(world, save_every=0.0)
    with pytest.raises(Stop):
        train(config, tmp_path, on_step=stop_at(3))
    path = tmp_path / CHECKPOINT
    write_weights(read_weights(path), path, metadata={"progress": '{"stop": 3}'})
    with pytest.raises(CheckpointError, match="does not record the progress of the run; remove it, and train again"):
        train(config, tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from helpers.small_world import make_config
from jostle.training.loop import train
print(train(make_config(Path(sys.argv[1]), save_every=0.0, optimiser={"epochs": 6}), Path(sys.argv[2])).weights)
"""


@pytest.mark.fault("F96")
@pytest.mark.slow
def test_F96_killed_process_resumes_with_the_same_weights(world: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", SCRIPT, str(world), str(tmp_path / "killed")]
    log = tmp_path / "killed" / "log.jsonl"
    for steps in (3, 8, 17):
        process = subprocess.Popen(words)
        deadline = time.monotonic() + 120
        while not log.exists() or log.read_bytes().count(b"\n") < steps:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process_result = subprocess.run(words, capture_output=True, text=True, check=True)
    uninterrupted = train(make_config(world, save_every=0.0, optimiser={"epochs": 6}), tmp_path / "whole")
    assert Path(process_result.stdout.strip()).read_bytes() == uninterrupted.weights.read_bytes()


@pytest.mark.slow
def test_two_processes_give_the_result_of_one(world: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29611", str(script)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, *words, str(world), str(tmp_path / "two")],
        check=True,
        env=environment,
        capture_output=True,
    )
    one = train(make_config(world, save_every=0.0, optimiser={"epochs": 6}), tmp_path / "one")
    alone, together = (read_weights(path) for path in (one.weights, tmp_path / "two" / "last.safetensors"))
    for name, value in alone.items():
        torch.testing.assert_close(together[name], value, rtol=1e-3, atol=1e-4)


def test_invalid_training_settings_are_refused(world: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="would choose the model on the test set"):
        make_config(world, data={"select": "Test"})
    with pytest.raises(BadValue, match="select and train are both"):
        make_config(world, data={"select": "Validation"})
    with pytest.raises(BadValue, match="training videos are fewer than one step needs"):
        train(make_config(world, optimiser={"batch": 40}), tmp_path)
    with pytest.raises(DataError, match="no features of the 10 videos") as caught:
        train(make_config(world, data={"suffix": ".npz"}), tmp_path)
    assert caught.value.fault == "F21"
    (tmp_path / "file").write_text("")
    with pytest.raises(BadValue, match="is a file; name a folder"):
        train(make_config(world), tmp_path / "file")
    with pytest.raises(BadValue, match=r"chosen_by is average_map or map@<tIoU>"):
        train(make_config(world, chosen_by="f1", data={"select": 0.2}), tmp_path)


def test_detector_with_one_class_trains_on_all_actions(world: Path, tmp_path: Path) -> None:
    config = make_config(world, settings={"classes": 1, "resize": True}, data={"select": 0.2})
    result = train(config, tmp_path)
    assert result.score is not None
