"""FrameDrop: drawn features equal those of the corrupted video, and every epoch draws again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.stopped_work import assert_resumes, logged_rows
from jostle.core.random import key_for
from jostle.core.settings import make_settings
from jostle.corruptions.engine.placement import Timeline, parse_placement
from jostle.errors import BadValue, DataError
from jostle.features.windows import WindowGrid
from jostle.models.checkpoints import write_weights
from jostle.models.extractors.extractor import Extractor
from jostle.models.loading.extractors import load_extractor
from jostle.training.detection_config import DataConfig, TrainingConfig
from jostle.training.feature_crops import load_videos
from jostle.training.frame_drop import FrameDrop
from jostle.training.loop import Trainer, train

FPS, FRAMES = 24.0, 300
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random frame features of ten videos, clean and all black, and what a random `puppet_net` joins of them."""
    folder = tmp_path_factory.mktemp("drop")
    extractor = load_extractor("puppet_net", weights="random")
    write_weights(extractor.network.state_dict(), folder / "net.safetensors")
    database: dict[str, Any] = {}
    for i in range(10):
        rng = np.random.default_rng(i)
        name = f"video{i}"
        for variant in ("clean", "black"):
            (folder / variant / "frames").mkdir(parents=True, exist_ok=True)
            frame_features = rng.standard_normal((FRAMES, 160)).astype(np.float32)
            if variant == "black":
                frame_features[:] = frame_features[0]
            np.save(folder / variant / "frames" / f"{name}.npy", frame_features)
            np.save(folder / variant / f"{name}.npy", window_features(extractor, frame_features))
        annotations = [
            {"label": label, "label_id": k, "segment": [2.0 + 5 * k, 4.5 + 5 * k]}
            for k, label in enumerate(("bow", "wave"))
        ]
        database[name] = {
            "subset": "training",
            "fps": FPS,
            "duration": FRAMES / FPS,
            "annotations": annotations,
        }
    (folder / "truth.json").write_text(json.dumps({"version": "1", "database": database}))
    return folder


def window_features(extractor: Extractor, frame_features: np.ndarray) -> np.ndarray:
    grid = WindowGrid(16, 4)
    return extractor.join(
        frame_features[grid.frames_of(np.arange(grid.count(len(frame_features))), len(frame_features))]
    )


def make_data_config(world: Path, **drop: Any) -> DataConfig:
    content = {
        "features": str(world / "clean"),
        "truth": str(world / "truth.json"),
        "train": "training",
        "drop": {"struck": str(world / "black"), "weights": str(world / "net.safetensors"), **drop},
    }
    return make_settings(DataConfig, content)


def load_drop(data: DataConfig, seed: int = 5) -> tuple[FrameDrop, list[Any]]:
    videos, _ = load_videos(data, "training", {"bow": 0, "wave": 1}, channels=128)
    drop = FrameDrop.of(data, videos, seed, CPU)
    assert drop is not None
    return drop, videos


@pytest.mark.parametrize("placement", ["pair", "pair:released", "each:1", "random:3"])
def test_drawn_features_equal_those_of_the_corrupted_video(world: Path, placement: str) -> None:
    drop, videos = load_drop(make_data_config(world, placement=placement))
    for epoch in range(3):
        video = videos[epoch]
        actions = np.array([[2.0, 4.5], [7.0, 9.5]]) * FPS
        mask = parse_placement(placement).mask(Timeline(FRAMES, actions, key_for(5, "drop", epoch), video.name))
        assert mask.any()
        clean = np.load(world / "clean" / "frames" / f"{video.name}.npy")
        black = np.load(world / "black" / "frames" / f"{video.name}.npy")
        expected = window_features(drop.extractor, np.where(mask[:, None], black, clean))
        drawn = drop.draw([videos[7], video, videos[8]], epoch)
        assert np.array_equal(drawn[1].corrupted, expected)
        assert not np.array_equal(expected, video.features)


def test_only_fresh_draws_differ_by_epoch(world: Path) -> None:
    fresh, videos = load_drop(make_data_config(world))
    fixed, _ = load_drop(make_data_config(world, fresh=False))
    first, second = (fresh.draw(videos[:1], epoch)[0].corrupted for epoch in (0, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, fresh.draw(videos[:1], 0)[0].corrupted)
    assert np.array_equal(fixed.draw(videos[:1], 0)[0].corrupted, fixed.draw(videos[:1], 1)[0].corrupted)


def test_mismatched_frame_features_are_refused(world: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="video0"):
        load_drop(make_data_config(world, struck=str(tmp_path)))
    (tmp_path / "frames").mkdir()
    for i in range(10):
        np.save(tmp_path / "frames" / f"video{i}.npy", np.ones((FRAMES - 9, 160), np.float32))
    with pytest.raises(DataError, match=r"\(291, 160\), those of the clean video \(300, 160\)"):
        load_drop(make_data_config(world, struck=str(tmp_path)))


def test_window_extractors_are_refused(world: Path, tmp_path: Path) -> None:
    network = load_extractor("i3d_rgb", weights="random").network
    write_weights(network.state_dict(), tmp_path / "i3d.safetensors")
    with pytest.raises(BadValue, match=r"processes whole windows.*set data\.corrupted"):
        load_drop(make_data_config(world, extractor="i3d_rgb", weights=str(tmp_path / "i3d.safetensors")))


def run_config(world: Path, **data: Any) -> TrainingConfig:
    content: dict[str, Any] = {
        "detector": "temporalmaxer",
        "settings": {"input_dim": 128, "dim": 16, "classes": 2, "max_length": 96, "levels": 3, "normaliser": 10.0},
        "data": {
            "features": str(world / "clean"),
            "truth": str(world / "truth.json"),
            "train": "training",
            "drop": {"struck": str(world / "black"), "weights": str(world / "net.safetensors")},
            **data,
        },
        "optimiser": {"lr": 1e-3, "warmup_epochs": 1, "epochs": 1, "batch": 4, "average": 0.9},
        "device": "cpu",
    }
    return make_settings(TrainingConfig, content)


def test_resumed_robust_run_gives_the_same_weights(world: Path, tmp_path: Path) -> None:
    steps = assert_resumes(run_config(world), tmp_path, 3)
    assert all(row["consistency"] > 0 for row in steps)


@pytest.mark.parametrize("learn_from", ["clean", "corrupted", "both"])
def test_learn_from_clean_corrupted_or_both(world: Path, tmp_path: Path, learn_from: str) -> None:
    base = run_config(world, learn_from=learn_from)
    config_without_consistency = replace(base, consistency=replace(base.consistency, weight=0.0))
    train(config_without_consistency, tmp_path / "alone")
    steps = logged_rows(tmp_path / "alone", "step")
    assert len(steps) == 4
    assert all("consistency" not in row for row in steps)
    if learn_from == "both":  # in the first step, before any update: the mean of the other two
        losses = []
        for other in ("clean", "corrupted"):
            config = replace(
                config_without_consistency, data=replace(config_without_consistency.data, learn_from=other)
            )
            train(config, tmp_path / other)
            losses.append(logged_rows(tmp_path / other, "step")[0]["classification"])
        assert steps[0]["classification"] == pytest.approx(np.mean(losses), rel=1e-5)
        assert losses[0] != losses[1]


def test_views_are_other_crops_of_the_same_videos(world: Path, tmp_path: Path) -> None:
    trainer = Trainer(run_config(world, views=2), tmp_path / "run")
    (samples,) = trainer.learner.batches(0, 0)
    assert len(samples) == 8
    assert len({(len(sample.features), float(sample.features[0, 0])) for sample in samples}) > 5


def test_contradictory_settings_are_refused(world: Path) -> None:
    with pytest.raises(BadValue, match="from a folder or from drop"):
        run_config(world, corrupted=str(world / "black"))
    with pytest.raises(BadValue, match="needs corrupted features"):
        run_config(world, drop="none", learn_from="both")
    with pytest.raises(BadValue, match="views"):
        run_config(world, views=0)


def test_validation_videos_need_no_corrupted_features(world: Path, tmp_path: Path) -> None:
    truth = json.loads((world / "truth.json").read_text())
    for name in ("video8", "video9"):
        truth["database"][name]["subset"] = "validation"
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "some").mkdir()
    for i in range(8):
        np.save(tmp_path / "some" / f"video{i}.npy", np.load(world / "black" / f"video{i}.npy"))
    data = {"drop": "none", "truth": str(tmp_path / "truth.json"), "corrupted": str(tmp_path / "some")}
    result = train(run_config(world, **data, select="validation", train="training"), tmp_path / "run")
    assert result.score is not None


def test_weights_name_the_extractor_of_their_features(world: Path, tmp_path: Path) -> None:
    from jostle.features.store import FeatureOrigin, FeatureStore
    from jostle.models.checkpoints import read_metadata

    config = run_config(world)
    assert "extractor" not in read_metadata(train(config, tmp_path / "unknown").weights)
    features = tmp_path / "features"
    FeatureStore(features, FeatureOrigin("puppet_net", None, 16, 4, "all", 128)).save()
    for path in (world / "clean").glob("*.npy"):
        np.save(features / path.name, np.load(path))
    known = replace(config, data=replace(config.data, features=str(features), drop=None))
    assert read_metadata(train(known, tmp_path / "known").weights)["extractor"] == "puppet_net"
