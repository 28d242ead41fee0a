"""Training recognisers: it learns, goes on after a stop with the same bytes, and treatments are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.small_clips import FRAMES, made_config, write_clips
from jostle.api import load_recogniser
from jostle.api import train as api_train
from jostle.core.config import settings_as_dict
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, DataError, ResourceError, SourceChanged, UnknownName
from jostle.models.checkpoints import read_metadata, read_weights
from jostle.models.loading.models import ImportedModel
from jostle.models.recognition.puppets import NETWORKS
from jostle.training import clips as clips_module
from jostle.training.clips import Preparation, list_videos, load_clips
from jostle.training.config_loading import read_training
from jostle.training.loop import Trainer, train
from jostle.training.recognition import fit_head, predict_logits


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clips(tmp_path_factory.mktemp("clips") / "set")


SMALL = {"frames": 8, "size": 32, "resize": [32, 32]}


@pytest.mark.parametrize("name", [pytest.param("puppet_slowfast", marks=pytest.mark.slow), "puppet_tam"])
def test_the_papers_networks_in_small_learn_from_scratch(name: str, clips: Path, tmp_path: Path) -> None:
    config = made_config(clips, recogniser=name, input=SMALL, optimiser={"epochs": 3, "lr": 3e-3}, data={"select": 0.0})
    done = train(config, tmp_path)
    losses = [row["total"] for row in rows(tmp_path, "step")]
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    model = load_recogniser(name, weights=done.weights)
    assert model.classes == ("left", "right")
    assert model.spec is not None
    assert (model.spec.frames, model.spec.size) == (8, 32)


def test_batch_norms_can_be_kept_as_they_are(clips: Path, tmp_path: Path) -> None:
    short = {"warmup_epochs": 0, "epochs": 1}
    asked: dict[str, Any] = {"recogniser": "puppet_tam", "input": SMALL, "data": {"select": 0.0}, "optimiser": short}
    start = train(made_config(clips, **asked), tmp_path / "a")
    begun = read_weights(start.weights)
    for frozen in (True, False):
        config = made_config(clips, **asked, weights=str(start.weights), frozen_norms=frozen)
        done = read_weights(train(config, tmp_path / str(frozen)).weights)
        moved = (done["bn1.running_mean"] - begun["bn1.running_mean"]).abs().max()
        assert moved < 1e-6 if frozen else moved > 1e-3  # the running average of what stays rounds
        assert not torch.equal(done["bn1.weight"], begun["bn1.weight"])
    with pytest.raises(BadValue, match="frozen_norms keeps what the batch norms of weights know: give weights"):
        made_config(clips, frozen_norms=True)


def test_settings_of_a_network_are_trained_and_found_again(clips: Path, tmp_path: Path) -> None:
    asked = {**SMALL, "time_stride": True, "views": "kinetics-c"}
    short = {"warmup_epochs": 0, "epochs": 1}
    config = made_config(clips, recogniser="tam_resnet18", input=asked, data={"select": 0.0}, optimiser=short)
    done = train(config, tmp_path)
    model = load_recogniser("tam_resnet18", weights=done.weights)
    assert model.network.config.time_stride  # type: ignore[union-attr]
    assert model.spec is not None
    assert (model.spec.spread, model.spec.frames, model.spec.size) == ("even", 8, 32)
    assert not load_recogniser("tam_resnet18", weights=done.weights, time_stride=False).network.config.time_stride  # type: ignore[union-attr]


class Stop(Exception):
    pass


def stop_at(wanted: int):
    def on_step(step: int, total: int) -> None:
        if step == wanted:
            raise Stop

    return on_step


def rows(folder: Path, event: str) -> list[dict]:
    return [row for row in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if row["event"] == event]


def test_it_learns_and_the_weights_know_what_they_are(clips: Path, tmp_path: Path) -> None:
    done = train(made_config(clips, optimiser={"epochs": 14}), tmp_path)
    losses = [row["total"] for row in rows(tmp_path, "step")]
    assert np.mean(losses[-3:]) < 0.6 * np.mean(losses[:3])
    assert done.score == max(row["accuracy"] for row in rows(tmp_path, "score"))
    assert done.score > 0.8
    model = load_recogniser("tiny_clips", weights=done.weights)
    assert model.classes == ("left", "right")
    _, videos = list_videos(made_config(clips).data, "val", seeds=(0,))
    shown = load_clips(videos, Preparation(FRAMES), cache=tmp_path, jobs=1)
    right = model(shown.frames[:, 0]).argmax(1) == shown.labels
    assert right.mean() > 0.8
    assert read_metadata(done.weights)["recogniser"] == "tiny_clips"


ROUGH = {
    "corruptions": {"specs": ["ucf101-p/gaussian_noise", "kinetics-c/contrast:2"], "draws": 2},
    "noise": {"std": 0.1, "share": 0.5},
    "patterns": {"share": 0.5, "count": 4},
}


@pytest.mark.parametrize("changes", [{}, ROUGH], ids=["clean", "rough"])
def test_a_stopped_run_ends_with_the_same_bytes(clips: Path, tmp_path: Path, changes: dict) -> None:
    config = made_config(clips, save_every=0.0, **changes)
    whole = train(config, tmp_path / "whole")
    for stop in (2, 5):
        with pytest.raises(Stop):
            train(config, tmp_path / "stopped", on_step=stop_at(stop))
    again = train(config, tmp_path / "stopped")
    assert whole.weights.read_bytes() == again.weights.read_bytes()
    assert rows(tmp_path / "whole", "step") == rows(tmp_path / "stopped", "step")
    with pytest.raises(SourceChanged, match="other settings or data"):
        train(replace(config, seed=4), tmp_path / "whole")


def test_another_seed_begins_with_other_weights(clips: Path, tmp_path: Path) -> None:
    one, other, same = (
        Trainer(made_config(clips, seed=seed), tmp_path).learner.model.state_dict()["seen.weight"] for seed in (0, 1, 0)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_training_goes_on_from_weights_with_other_classes_in_the_last_layer(clips: Path, tmp_path: Path) -> None:
    first = train(made_config(clips), tmp_path / "first")
    learner = Trainer(made_config(clips, weights=str(first.weights), seed=9), tmp_path / "next").learner
    kept, now = read_weights(first.weights), learner.model.state_dict()
    assert torch.equal(kept["classifier.weight"], now["classifier.weight"].cpu())
    fit_head(learner.model, "classifier", 7)
    assert learner.model.classifier.out_features == 7


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_the_layer_that_makes_scores_is_begun_anew_wherever_it_stands(name: str) -> None:
    network = NETWORKS[name](16)
    others = {key: value.clone() for key, value in network.state_dict().items() if "classifier" not in key}
    fit_head(network, "classifier", 5)
    assert network.eval()(torch.zeros(1, 3, 16, 112, 112)).shape == (1, 5)
    tensors = network.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in others.items())


def test_heads_of_other_networks() -> None:
    """The last linear layer where no name is known, and a convolution as S3D has it."""
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    fit_head(plain, "", 6)
    assert (plain[0].out_features, plain[2].out_features) == (4, 6)
    convolved = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Conv3d(8, 400, 1))
    fit_head(convolved, "1", 6)
    assert convolved(torch.zeros(1, 8, 2, 2, 2)).shape == (1, 6, 2, 2, 2)
    with pytest.raises(BadValue, match="has no linear layer"):
        fit_head(torch.nn.Conv2d(1, 1, 1), "", 2)


def test_a_share_of_the_clips_is_held_out(clips: Path, tmp_path: Path) -> None:
    learner = Trainer(made_config(clips, data={"select": 0.25}), tmp_path).learner
    assert learner.counts == {"learn": 18, "choose": 6}
    assert not set(learner.learn.clips.names) & set(learner.choose.clips.names)
    assert predict_logits(learner.model, learner.choose).shape == (6, 2)


def test_a_bad_step_leaves_no_trace(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(made_config(clips), tmp_path)
    honest, calls = trainer.learner.loss_of, []

    def sometimes(rows: list[int], epoch: int) -> torch.Tensor:
        calls.append(1)
        loss = honest(rows, epoch)
        if len(calls) == 2:
            trainer.learner.model.norm.running_mean.data.fill_(torch.nan)
            return loss * torch.nan
        return loss

    monkeypatch.setattr(trainer.learner, "loss_of", sometimes)
    done = trainer.run()
    assert done.skipped == 1
    assert all(torch.isfinite(value).all() for value in read_weights(done.weights).values())


def test_settings_come_from_a_file_whose_task_says_what_they_are(clips: Path, tmp_path: Path) -> None:
    plain = settings_as_dict(made_config(clips))
    lines = [f"task = {json.dumps(plain['task'])}", f"recogniser = {json.dumps(plain['recogniser'])}", 'device = "cpu"']
    for table in ("data", "optimiser"):
        lines.append(f"[{table}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in plain[table].items() if value is not None]
    (tmp_path / "run.toml").write_text("\n".join(lines))
    done = api_train(tmp_path / "run.toml", tmp_path / "run", overrides=["optimiser.epochs=0"])
    assert done.steps == 3
    (tmp_path / "odd.toml").write_text('task = "tracking"')
    with pytest.raises(BadValue, match="task is one of detection, end-to-end, recognition, inspection, not 'tracking'"):
        api_train(tmp_path / "odd.toml", tmp_path / "odd")
    with pytest.raises(BadValue, match="no such setting: did you mean noise"):
        api_train(tmp_path / "run.toml", tmp_path / "odd", overrides=["nois.std=1"])


def test_what_cannot_be_trained_is_refused(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadValue, match="would choose the model on the test set"):
        made_config(clips, data={"select": "test"})
    with pytest.raises(BadValue, match="24 training clips are fewer than one step needs"):
        train(made_config(clips, optimiser={"batch": 64}), tmp_path)
    with pytest.raises(BadValue, match="loss = 'worst' is for sets of frames"):
        train(made_config(clips, loss="worst"), tmp_path)
    with pytest.raises(UnknownName, match="did you mean gaussian_noise"):
        train(made_config(clips, corruptions={"specs": ["gausian_noise"]}), tmp_path)
    with pytest.raises(BadValue, match="has no setting"):
        train(made_config(clips, input={"colour": "bgr"}), tmp_path)
    (clips / "val" / "up").mkdir()
    try:
        source = next((clips / "val" / "left").glob("*.mp4"))
        (clips / "val" / "up" / "val_up_00.mp4").write_bytes(source.read_bytes())
        with pytest.raises(DataError, match=r"'val' has classes that are not learned: up"):
            train(made_config(clips), tmp_path)
    finally:
        (clips / "val" / "up" / "val_up_00.mp4").unlink()
        (clips / "val" / "up").rmdir()
    usage = clips_module.shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(clips_module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ResourceError, match=r"the pixels of 24 clips take .* lower corruptions.draws"):
        train(made_config(clips, data={"cache": str(tmp_path / "none")}), tmp_path)


def test_the_example_is_a_training_file() -> None:
    config = read_training(Path(__file__).parents[2] / "examples" / "robust-recogniser.toml")
    assert config.task == "recognition"
    for text in config.corruptions.specs:
        Spec.parse(text)


def test_a_network_of_ones_own_is_trained_and_run(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 256, classes))"
    text = f"from torch import nn\ndef make(classes):\n    return {made}\n"
    (tmp_path / "net_of_test.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = {"frames": 4, "size": 16, "mean": [0.5, 0.5, 0.5]}
    config = made_config(clips, model="net_of_test:make", input=seen, data={"classes": ["right", "left"]})
    done = train(config, tmp_path / "run")
    found = ImportedModel("net_of_test:make", done.weights).get()
    assert found.classes == ("right", "left")
    assert (found.spec.frames, found.spec.size, found.spec.resize) == (4, 16, 16)
    assert found(np.zeros((1, 4, 20, 20, 3), np.uint8)).shape == (1, 2)
    with pytest.raises(BadValue, match=r"holds weights of net_of_test:make; give those that `jostle train` wrote"):
        ImportedModel("net_of_test:other", done.weights).get()
    with pytest.raises(BadValue, match=r"say what it wants to see: frames and size in \[input\]"):
        train(made_config(clips, model="net_of_test:make"), tmp_path / "no spec")
    with pytest.raises(BadValue, match=r"model is package\.module:attribute"):
        made_config(clips, model="tiny_clips")


def test_classes_that_are_not_there_are_told(clips: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.classes has up, and it knows left, right"):
        train(made_config(clips, data={"classes": ["left", "up"]}), tmp_path / "run")
