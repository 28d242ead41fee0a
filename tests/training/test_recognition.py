"""Training of recognisers: learning, resuming, heads, settings and imported networks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.small_clips import FRAMES, make_config, write_clips
from helpers.stopped_work import assert_resumes, logged_rows
from jostle.api import load_recogniser
from jostle.api import train as api_train
from jostle.core.settings import settings_as_dict
from jostle.errors import BadValue, DataError, ResourceError, SourceChanged, UnknownName
from jostle.models.checkpoints import read_metadata, read_weights
from jostle.models.loading.reference import ModelRef
from jostle.models.recognition.puppets import NETWORKS
from jostle.training import clips as clips_module
from jostle.training.clips import Preparation, list_videos, load_clips
from jostle.training.loop import Trainer, train
from jostle.training.recognition import fit_head, predict_logits


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clips(tmp_path_factory.mktemp("clips") / "set")


SMALL = {"frames": 8, "size": 32, "resize": [32, 32]}


@pytest.mark.parametrize("name", [pytest.param("puppet_slowfast", marks=pytest.mark.slow), "puppet_tam"])
def test_small_paper_networks_learn_from_scratch(name: str, clips: Path, tmp_path: Path) -> None:
    config = make_config(clips, recogniser=name, input=SMALL, optimiser={"epochs": 3, "lr": 3e-3}, data={"select": 0.0})
    result = train(config, tmp_path)
    losses = [row["total"] for row in logged_rows(tmp_path, "step")]
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    model = load_recogniser(name, weights=result.weights)
    assert model.classes == ("left", "right")
    assert (model.spec.frames, model.spec.size) == (8, 32)


def test_frozen_norms_keep_their_statistics(clips: Path, tmp_path: Path) -> None:
    optimiser = {"warmup_epochs": 0, "epochs": 1}
    settings: dict[str, Any] = {
        "recogniser": "puppet_tam",
        "input": SMALL,
        "data": {"select": 0.0},
        "optimiser": optimiser,
    }
    start = train(make_config(clips, **settings), tmp_path / "a")
    initial = read_weights(start.weights)
    for frozen in (True, False):
        config = make_config(clips, **settings, weights=str(start.weights), frozen_norms=frozen)
        trained = read_weights(train(config, tmp_path / str(frozen)).weights)
        change = (trained["bn1.running_mean"] - initial["bn1.running_mean"]).abs().max()
        assert change < 1e-6 if frozen else change > 1e-3  # the running average of constant values is rounded
        assert not torch.equal(trained["bn1.weight"], initial["bn1.weight"])
    with pytest.raises(BadValue, match="frozen_norms keeps what the batch norms of weights know: give weights"):
        make_config(clips, frozen_norms=True)


def test_network_settings_are_stored_with_the_weights(clips: Path, tmp_path: Path) -> None:
    input_settings = {**SMALL, "time_stride": True, "views": "kinetics-c"}
    optimiser = {"warmup_epochs": 0, "epochs": 1}
    config = make_config(
        clips, recogniser="tam_resnet18", input=input_settings, data={"select": 0.0}, optimiser=optimiser
    )
    result = train(config, tmp_path)
    model = load_recogniser("tam_resnet18", weights=result.weights)
    assert model.network.config.time_stride  # type: ignore[union-attr]
    assert (model.spec.spread, model.spec.frames, model.spec.size) == ("even", 8, 32)
    assert not load_recogniser("tam_resnet18", weights=result.weights, time_stride=False).network.config.time_stride  # type: ignore[union-attr]


def test_training_reduces_the_loss_and_stores_the_classes(clips: Path, tmp_path: Path) -> None:
    result = train(make_config(clips, optimiser={"epochs": 14}), tmp_path)
    losses = [row["total"] for row in logged_rows(tmp_path, "step")]
    assert np.mean(losses[-3:]) < 0.6 * np.mean(losses[:3])
    assert result.score == max(row["accuracy"] for row in logged_rows(tmp_path, "score"))
    assert result.score > 0.8
    model = load_recogniser("tiny_clips", weights=result.weights)
    assert model.classes == ("left", "right")
    _, videos = list_videos(make_config(clips).data, "val", seeds=(0,))
    loaded = load_clips(videos, Preparation(FRAMES), cache=tmp_path, jobs=1)
    correct = model(loaded.frames[:, 0]).argmax(1) == loaded.labels
    assert correct.mean() > 0.8
    assert read_metadata(result.weights)["recogniser"] == "tiny_clips"


AUGMENTED = {
    "corruptions": {"specs": ["ucf101-p/gaussian_noise", "kinetics-c/contrast:2"], "draws": 2},
    "noise": {"std": 0.1, "share": 0.5},
    "patterns": {"share": 0.5, "count": 4},
}


@pytest.mark.parametrize("changes", [{}, AUGMENTED], ids=["clean", "rough"])
def test_resumed_run_gives_the_same_weights(clips: Path, tmp_path: Path, changes: dict) -> None:
    config = make_config(clips, save_every=0.0, **changes)
    assert_resumes(config, tmp_path, 2, 5)
    with pytest.raises(SourceChanged, match="other settings: seed was 3, and is 4"):
        train(replace(config, seed=4), tmp_path / "whole")


def test_initial_weights_depend_on_the_seed(clips: Path, tmp_path: Path) -> None:
    one, other, same = (
        Trainer(make_config(clips, seed=seed), tmp_path).learner.model.state_dict()["seen.weight"] for seed in (0, 1, 0)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_training_starts_from_weights_with_other_classes(clips: Path, tmp_path: Path) -> None:
    first = train(make_config(clips), tmp_path / "first")
    learner = Trainer(make_config(clips, weights=str(first.weights), seed=9), tmp_path / "next").learner
    trained, tensors = read_weights(first.weights), learner.model.state_dict()
    assert torch.equal(trained["classifier.weight"], tensors["classifier.weight"].cpu())
    fit_head(learner.model, "classifier", 7)
    assert learner.model.classifier.out_features == 7


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_fit_head_replaces_only_the_classifier(name: str) -> None:
    network = NETWORKS[name](16)
    others = {key: value.clone() for key, value in network.state_dict().items() if "classifier" not in key}
    fit_head(network, "classifier", 5)
    assert network.eval()(torch.zeros(1, 3, 16, 112, 112)).shape == (1, 5)
    tensors = network.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in others.items())


def test_fit_head_of_linear_and_convolutional_networks() -> None:
    """Without a name the last linear layer is replaced; S3D has a convolution as head."""
    plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    fit_head(plain, "", 6)
    assert (plain[0].out_features, plain[2].out_features) == (4, 6)
    convolved = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Conv3d(8, 400, 1))
    fit_head(convolved, "1", 6)
    assert convolved(torch.zeros(1, 8, 2, 2, 2)).shape == (1, 6, 2, 2, 2)
    with pytest.raises(BadValue, match="has no linear layer"):
        fit_head(torch.nn.Conv2d(1, 1, 1), "", 2)


def test_share_of_the_clips_is_held_out(clips: Path, tmp_path: Path) -> None:
    learner = Trainer(make_config(clips, data={"select": 0.25}), tmp_path).learner
    assert learner.counts == {"learn": 18, "choose": 6}
    assert not set(learner.learn.clips.names) & set(learner.choose.clips.names)
    assert predict_logits(learner.model, learner.choose).shape == (6, 2)


def test_non_finite_step_is_skipped(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(make_config(clips), tmp_path)
    original, calls = trainer.learner.loss_of, []

    def nan_in_second_step(logged_rows: list[int], epoch: int) -> torch.Tensor:
        calls.append(1)
        loss = original(logged_rows, epoch)
        if len(calls) == 2:
            trainer.learner.model.norm.running_mean.data.fill_(torch.nan)
            return loss * torch.nan
        return loss

    monkeypatch.setattr(trainer.learner, "loss_of", nan_in_second_step)
    result = trainer.run()
    assert result.skipped == 1
    assert all(torch.isfinite(value).all() for value in read_weights(result.weights).values())


def test_settings_are_read_from_a_file_by_task(clips: Path, tmp_path: Path) -> None:
    plain = settings_as_dict(make_config(clips))
    lines = [f"task = {json.dumps(plain['task'])}", f"recogniser = {json.dumps(plain['recogniser'])}", 'device = "cpu"']
    for table in ("data", "optimiser"):
        lines.append(f"[{table}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in plain[table].items() if value is not None]
    (tmp_path / "run.toml").write_text("\n".join(lines))
    result = api_train(tmp_path / "run.toml", tmp_path / "run", overrides=["optimiser.epochs=0"])
    assert result.steps == 3
    (tmp_path / "odd.toml").write_text('task = "tracking"')
    with pytest.raises(UnknownName, match="no training task is called 'tracking': known: detection, end-to-end"):
        api_train(tmp_path / "odd.toml", tmp_path / "odd")
    with pytest.raises(BadValue, match="no such setting: did you mean noise"):
        api_train(tmp_path / "run.toml", tmp_path / "odd", overrides=["nois.std=1"])


def test_invalid_training_settings_are_refused(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadValue, match="would choose the model on the test set"):
        make_config(clips, data={"select": "test"})
    with pytest.raises(BadValue, match="24 training clips are fewer than one step needs"):
        train(make_config(clips, optimiser={"batch": 64}), tmp_path)
    with pytest.raises(BadValue, match="loss = 'worst' is for sets of frames"):
        train(make_config(clips, loss="worst"), tmp_path)
    with pytest.raises(UnknownName, match="did you mean gaussian_noise"):
        train(make_config(clips, corruptions={"specs": ["gausian_noise"]}), tmp_path)
    with pytest.raises(BadValue, match="has no setting"):
        train(make_config(clips, input={"colour": "bgr"}), tmp_path)
    (clips / "val" / "up").mkdir()
    try:
        source = next((clips / "val" / "left").glob("*.mp4"))
        (clips / "val" / "up" / "val_up_00.mp4").write_bytes(source.read_bytes())
        with pytest.raises(DataError, match=r"'val' has classes that are not learned: up"):
            train(make_config(clips), tmp_path)
    finally:
        (clips / "val" / "up" / "val_up_00.mp4").unlink()
        (clips / "val" / "up").rmdir()
    usage = clips_module.shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(clips_module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ResourceError, match=r"the pixels of 24 clips take .* lower corruptions.draws"):
        train(make_config(clips, data={"cache": str(tmp_path / "none")}), tmp_path)


def test_imported_network_is_trained_and_loaded(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = "nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 256, classes))"
    text = f"from torch import nn\ndef make(classes):\n    return {network}\n"
    (tmp_path / "net_of_test.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    input_settings = {"frames": 4, "size": 16, "mean": [0.5, 0.5, 0.5]}
    config = make_config(clips, model="net_of_test:make", input=input_settings, data={"classes": ["right", "left"]})
    result = train(config, tmp_path / "run")
    model = ModelRef("recogniser", "net_of_test:make", result.weights).get()
    assert model.classes == ("right", "left")
    assert (model.spec.frames, model.spec.size, model.spec.resize) == (4, 16, 16)
    assert model(np.zeros((1, 4, 20, 20, 3), np.uint8)).shape == (1, 2)
    with pytest.raises(BadValue, match=r"holds weights of net_of_test:make; give those that `jostle train` wrote"):
        ModelRef("recogniser", "net_of_test:other", result.weights).get()
    with pytest.raises(BadValue, match=r"say what it wants to see: frames and size in \[input\]"):
        train(make_config(clips, model="net_of_test:make"), tmp_path / "no spec")
    with pytest.raises(BadValue, match=r"model is package\.module:attribute"):
        make_config(clips, model="tiny_clips")


def test_unknown_classes_are_refused(clips: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.classes has up, and it knows left, right"):
        train(make_config(clips, data={"classes": ["left", "up"]}), tmp_path / "run")
