"""End-to-end training of detectors on frames: learning, resuming, corrupted clips and settings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jostle
from helpers.stopped_work import assert_resumes, logged_rows
from jostle.core.settings import make_settings
from jostle.errors import BadValue, DataError
from jostle.io.video.encode import Writer
from jostle.models.checkpoints import read_metadata, read_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.training.consistency import clip_consistency
from jostle.training.detection_config import ClipDropConfig, ConsistencyConfig, FrameTrainingConfig
from jostle.training.distributed import Processes
from jostle.training.end_to_end import EndToEndLearner, corrupt_clip, enable_checkpointing
from jostle.training.frame_store import FilmClip, TrainingFilm, cut_clip
from jostle.training.loop import Trainer, train
from jostle.training.task import read_training

SLOW = pytest.mark.slow  # further combinations
SIZE, RATE = (40, 48), 10
BASIC = {"dim": 32, "classes": 2, "max_length": 32, "levels": 2, "frame_size": 36, "crop": 32, "clip_stride": 24}
BASIC |= {"backbone_width": 0.06, "neck_dim": 32, "max_segments": 50, "fps": 10.0}
AFSD = {"dim": 64, "classes": 2, "max_length": 32, "levels": 3, "frame_size": 36, "crop": 32, "clip_stride": 16}
AFSD |= {"backbone_width": 0.06, "fps": 10.0}
E2E = {"dim": 32, "classes": 2, "max_length": 32, "frame_size": 36, "crop": 32, "clip_stride": 24, "fps": 10.0}
E2E |= {"backbone": "tsm18", "backbone_width": 0.125, "encoder_layers": 1, "decoder_layers": 2, "queries": 8}
E2E |= {"mlp_dim": 32, "heads": 4, "dropout": 0.0}
SETTINGS = {
    name: {**own, "fixed_norms": False} for name, own in (("basictad", BASIC), ("afsd", AFSD), ("e2e_tad", E2E))
}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_films(tmp_path_factory.mktemp("films"), training=6)


@pytest.fixture(scope="module")
def few_videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Videos for two steps per epoch, for tests that need no learning."""
    return write_films(tmp_path_factory.mktemp("few"), training=4)


def write_films(folder: Path, training: int) -> Path:
    """Write videos of six seconds with a red or green action each, and two more for validation."""
    database = {}
    for number in range(training + 2):
        rng = np.random.default_rng(number)
        frames = rng.integers(0, 90, (60, *SIZE, 3)).astype(np.uint8)
        first, colour = int(rng.integers(5, 30)), number % 2
        frames[first : first + 20, :, :, colour] = 220
        name, subset = f"film{number}", "training" if number < training else "validation"
        with Writer(folder / f"{name}.mkv", size=SIZE, fps=RATE, codec="ffv1") as writer:
            for frame in frames:
                writer.write(frame)
        actions = [{"label": ("red", "green")[colour], "segment": [first / RATE, (first + 20) / RATE]}]
        database[name] = {"subset": subset, "duration": 6.0, "fps": float(RATE), "annotations": actions}
    (folder / "truth.json").write_text(json.dumps({"database": database}))
    return folder


def make_config(videos: Path, name: str = "basictad", data: dict[str, Any] | None = None, **changes: Any) -> Any:
    data_settings = {"dataset": "folder", "root": str(videos), "jobs": 1, "cache": str(videos / "cache")}
    optimiser = {"lr": 1e-3, "epochs": 2, "warmup_epochs": 0, "batch": 2, **changes.pop("optimiser", {})}
    settings = {"detector": name, "settings": SETTINGS[name], "device": "cpu", "optimiser": optimiser, **changes}
    return make_settings(FrameTrainingConfig, {**settings, "data": data_settings | (data or {})})


@pytest.mark.parametrize(
    ("name", "epochs"), [("basictad", 9), pytest.param("afsd", 5, marks=SLOW), pytest.param("e2e_tad", 7, marks=SLOW)]
)
def test_training_reduces_the_loss_and_writes_a_detector(videos: Path, tmp_path: Path, name: str, epochs: int) -> None:
    optimiser = {"epochs": epochs, "lr": 3e-3}
    config = make_config(videos, name, optimiser=optimiser, data={"select": "validation"}, score_every=epochs)
    result = train(config, tmp_path)
    losses = [row["total"] for row in logged_rows(tmp_path, "step")]
    assert np.mean(losses[-6:]) < 0.8 * np.mean(losses[:6])
    assert result.score is not None
    detector = jostle.load_detector(name, weights=result.weights)
    assert detector.config.class_names == ("green", "red")
    assert read_metadata(result.weights)["detector"] == name
    detections = jostle.detect(videos / "film7.mkv", detector)
    assert detections.videos == ("film7",)


SGD = {"method": "sgd", "schedule": "restarts", "period": 1, "warmup_steps": 3, "average": 0.0}
ADAM = {"method": "adam", "schedule": "drops", "drop_at": [1], "decays": "all"}


@pytest.mark.parametrize(
    ("name", "optimiser", "more"),
    [
        pytest.param("basictad", {}, {}, marks=SLOW),
        ("basictad", SGD, {"data": {"recolour": 0.5, "rotate": 45.0, "mirror": True}}),
        pytest.param("afsd", ADAM, {"lesson": 0.1}, marks=SLOW),
        ("e2e_tad", {}, {"rates": {"sampling_offsets": 0.1}}),
    ],
)
def test_resumed_run_gives_the_same_weights(
    few_videos: Path, tmp_path: Path, name: str, optimiser: dict[str, Any], more: dict[str, Any]
) -> None:
    data = {"drop": {"specs": ["black_frame", "gaussian_noise:2"]}, "learn_from": "both", **more.pop("data", {})}
    assert_resumes(make_config(few_videos, name, data=data, optimiser=optimiser, save_every=0.0, **more), tmp_path, 3)


@pytest.mark.parametrize("name", sorted(SETTINGS))
@pytest.mark.parametrize("form", ["released", "paper"])
def test_consistency_is_zero_for_equal_outputs_and_has_a_gradient(name: str, form: str) -> None:
    torch.manual_seed(0)
    detector: Any = jostle.load_detector(name, **SETTINGS[name])
    for parameter in detector.parameters():
        if parameter.ndim > 1 and parameter.std() < 0.03:
            torch.nn.init.normal_(parameter, std=0.5 if name == "e2e_tad" else 0.1)
    actions = Actions.of([([[4.0, 20.0]], [1]), ([[2.0, 9.0], [12.0, 30.0]], [0, 1])])
    config = ConsistencyConfig(form=form)  # type: ignore[arg-type]
    clips = torch.randn(2, 3, 32, 32, 32)
    outputs = detector(clips)
    assert float(clip_consistency(detector, outputs, outputs, actions, config).detach()) == pytest.approx(0, abs=1e-6)
    other = torch.randn(2, 3, 32, 32, 32) * 3 + 1  # large enough differences that rounding does not decide the sign
    apart = clip_consistency(detector, outputs, detector(other), actions, config)
    assert float(apart.detach()) > 0
    apart.backward()
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in detector.backbone.parameters())


def test_robust_run_compares_clean_and_corrupted_clips(few_videos: Path, tmp_path: Path) -> None:
    config = make_config(few_videos, data={"drop": {}, "learn_from": "corrupted"}, optimiser={"epochs": 1})
    train(config, tmp_path / "both")
    assert all(row["consistency"] >= 0 for row in logged_rows(tmp_path / "both", "step"))
    plain = make_config(
        few_videos, data={"drop": {}, "learn_from": "both"}, consistency={"weight": 0.0}, optimiser={"epochs": 1}
    )
    train(plain, tmp_path / "plain")
    assert "consistency" not in logged_rows(tmp_path / "plain", "step")[0]


def test_corrupted_frames_depend_on_the_key() -> None:
    frames = np.random.default_rng(0).integers(1, 256, (24, 16, 16, 3)).astype(np.uint8)
    clip = FilmClip(frames, np.array([[4.0, 16.0]], np.float32), np.array([0]))
    config = ClipDropConfig(placement="each:1")
    corrupted = corrupt_clip(clip, 10.0, config, (0, "drop", "film", 0, 0))
    black = np.flatnonzero((corrupted == 0).all((1, 2, 3)))
    assert len(black) == 1
    assert 4 <= black[0] < 16
    np.testing.assert_array_equal(corrupted, corrupt_clip(clip, 10.0, config, (0, "drop", "film", 0, 0)))
    frame_indices = {
        int(np.flatnonzero((corrupt_clip(clip, 10.0, config, (0, "drop", "film", e, 0)) == 0).all((1, 2, 3)))[0])
        for e in range(12)
    }
    assert len(frame_indices) > 3
    kinds = ClipDropConfig(("gaussian_noise", "thumos14-c/overexposure:3", "jumble:1"), (2, 4), "everywhere")
    results = {corrupt_clip(clip, 10.0, kinds, (0, e)).tobytes() for e in range(12)}
    assert len(results) > 5
    assert frames.min() > 0  # the input is not modified


def test_clips_contain_an_action() -> None:
    frames = np.zeros((100, 4, 4, 3), np.uint8)
    film = TrainingFilm("a", frames, np.array([[80.0, 90.0], [10.0, 12.0]], np.float32), np.array([1, 0]), 10.0, 10.0)
    for key in range(20):
        clip = cut_clip(film, 30, visible=0.75, key=(0, key))
        assert len(clip.frames) == 30
        assert len(clip.labels) >= 1
        assert (clip.segments >= 0).all()
        assert (clip.segments <= 30).all()
    with pytest.raises(DataError, match="none of 200 clips of 30 frames shows an action"):
        cut_clip(
            TrainingFilm("b", frames, np.zeros((0, 2), np.float32), np.zeros(0, np.int64), 10.0, 10.0),
            30,
            visible=1,
            key=(0,),
        )


def test_backbone_rate_scales_or_freezes_the_backbone(few_videos: Path, tmp_path: Path) -> None:
    learner = EndToEndLearner(make_config(few_videos, backbone_rate=0.0), Processes.join("cpu"))
    initial = {key: value.clone() for key, value in learner.model.state_dict().items()}
    result = train(make_config(few_videos, backbone_rate=0.0, optimiser={"average": 0.0}), tmp_path / "none")
    after = read_weights(result.weights)
    assert all(torch.equal(initial[key], after[key]) for key in initial if key.startswith("backbone."))
    assert any(not torch.equal(initial[key], after[key]) for key in initial if key.startswith("head."))
    trainer = Trainer(make_config(few_videos, backbone_rate=0.1), tmp_path / "less")
    assert [group["share"] for group in trainer.optimiser.param_groups] == [1.0, 1.0, 0.1, 0.1]
    count = sum(len(group["params"]) for group in trainer.optimiser.param_groups)
    assert count == sum(p.requires_grad for p in trainer.learner.model.parameters())


def test_afsd_lesson_uses_rearranged_clips(few_videos: Path) -> None:
    """This needs an action more than twice as long as the shortest, so a second, short one is added."""
    config = make_config(few_videos, "afsd", lesson=0.5, optimiser={"batch": 2})
    learner = EndToEndLearner(config, Processes.join("cpu"))
    film = learner.films[0]
    short = np.concatenate([film.segments, [[0.0, 4.0]]]).astype(np.float32)
    film = dataclasses.replace(film, segments=short, labels=np.append(film.labels, 0))
    samples = [learner._sample(film, epoch, 0) for epoch in range(12)]
    assert {sample.moved is None for sample in samples} == {True, False}
    sample = next(sample for sample in samples if sample.moved is not None)
    frames, _ = sample.moved
    assert frames.shape == sample.clean.shape
    assert not np.array_equal(frames, sample.clean)
    assert sorted(frame.tobytes() for frame in frames) == sorted(frame.tobytes() for frame in sample.clean)
    learner.ready()
    losses = learner.losses_of([sample, dataclasses.replace(sample, moved=None)])
    losses_without_lesson = learner.losses_of([dataclasses.replace(sample, moved=None)] * 2)
    assert "lesson" not in losses_without_lesson
    torch.testing.assert_close(
        losses["total"], losses_without_lesson["total"] + 0.5 * losses["lesson"], rtol=1e-4, atol=1e-4
    )
    losses["lesson"].backward()
    assert sum(p.grad.abs().sum() for p in learner.model.parameters() if p.grad is not None) > 0


def test_clean_and_corrupted_clips_are_augmented_alike(few_videos: Path) -> None:
    settings = {"recolour": 1.0, "rotate": 45.0, "drop": {"placement": "frames:3-4"}}
    plain = EndToEndLearner(make_config(few_videos, data={"drop": settings["drop"]}), Processes.join("cpu"))
    changed = EndToEndLearner(make_config(few_videos, data=settings), Processes.join("cpu"))
    one, other = (learner._sample(learner.films[0], 0, 0) for learner in (plain, changed))
    assert not np.array_equal(one.clean, other.clean)
    same = (other.clean == other.corrupted).all((1, 2, 3))
    assert same.tolist() == (one.clean == one.corrupted).all((1, 2, 3)).tolist()
    assert not same.all()


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_checkpointing_changes_no_gradients_or_buffers(name: str) -> None:
    clips, gradients, buffers = torch.randn(1, 3, 32, 32, 32), [], []
    for checkpointed in (False, True):
        torch.manual_seed(0)
        detector: Any = jostle.load_detector(name, **SETTINGS[name])
        if checkpointed:
            enable_checkpointing(detector.backbone)
        outputs = detector.train()(clips)
        detector.loss(outputs, Actions.of([([[4.0, 20.0]], [1])])).total.backward()
        gradients.append({key: p.grad for key, p in detector.named_parameters() if p.grad is not None})
        buffers.append(dict(detector.named_buffers()))
    assert gradients[0].keys() == gradients[1].keys()
    for key, value in gradients[0].items():
        torch.testing.assert_close(value, gradients[1][key])
    for key, value in buffers[0].items():  # the norms count every batch once
        torch.testing.assert_close(value, buffers[1][key])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"learn_from": "both"}}, "needs corrupted clips: set drop"),
        ({"data": {"select": "test"}}, "would choose the model on the test set"),
        ({"data": {"recolour": 2.0}}, "recolour is a share up to 1"),
        ({"lesson": 0.1}, "lesson works with AFSD only, not with basictad"),
        ({"lesson": -1.0}, "lesson must not be below 0"),
        ({"rates": {"reference_points": 0.1}}, "basictad has no parameter with 'reference_points' in its name"),
        ({"rates": {"head": 0.0}}, "rates are shares above 0"),
        ({"weights": "a.st", "backbone_weights": "b.st"}, "weights have a backbone already"),
    ],
)
def test_invalid_settings_are_refused(few_videos: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        EndToEndLearner(make_config(few_videos, **changes), Processes.join("cpu"))


def test_settings_are_for_detectors_of_frames(tmp_path: Path) -> None:
    features = make_settings(FrameTrainingConfig, {"detector": "temporalmaxer_puppets", "device": "cpu"})
    with pytest.raises(BadValue, match='write task = "detection"'):
        EndToEndLearner(features, Processes.join("cpu"))
    text = 'task = "end-to-end"\ndetector = "afsd_puppets"\n[data.drop]\nplacement = "pair"\n'
    (tmp_path / "a.toml").write_text(text)
    config = read_training(tmp_path / "a.toml", ["data.mirror=true"])
    assert isinstance(config, FrameTrainingConfig)
    assert (config.compares, config.data.mirror) == (True, True)
