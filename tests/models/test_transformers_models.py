"""Recognisers of transformers, tiny and with random weights; skipped if the library is not installed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.tiny_transformers import config_of
from jostle.errors import BadValue, CheckpointError
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.transformers import FAMILIES, HALF, from_config
from jostle.models.transformers_folder import scale_of

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@pytest.fixture
def clips() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (2, 4, 40, 48, 3), np.uint8)


@needs_transformers
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_saved_folder_is_loaded_unchanged(kind: str, tmp_path: Path, clips: np.ndarray) -> None:
    model = from_config(config_of(kind))
    assert isinstance(model.network, torch.nn.Module)
    assert model.spec is not None
    assert (model.spec.frames, model.spec.size, model.spec.layout) == (4, 32, "TCHW")
    model.network.network.save_pretrained(tmp_path)  # type: ignore[operator, union-attr]
    loaded = load_recogniser(kind, weights=tmp_path)
    assert loaded.spec == model.spec
    assert loaded.classes == ("LABEL_0", "LABEL_1", "LABEL_2")
    scores = loaded(clips)
    assert scores.shape == (2, 3)
    assert np.array_equal(scores, model(clips))
    assert not np.array_equal(scores[0], scores[1])
    other = next(name for name in FAMILIES if name != kind)
    with pytest.raises(CheckpointError, match=f"holds a '{kind}', not a '{other}'; load it as '{kind}'"):
        load_recogniser(other, weights=tmp_path)


@needs_transformers
def test_preprocessor_config_of_the_folder_is_used(tmp_path: Path) -> None:
    model = from_config(config_of("videomae"))
    model.network.network.save_pretrained(tmp_path)  # type: ignore[union-attr, operator]
    settings = {
        "size": {"shortest_edge": 36},
        "image_mean": [0.1, 0.2, 0.3],
        "image_std": [0.4, 0.5, 0.6],
        "resample": 3,
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    spec = load_recogniser("videomae", weights=str(tmp_path), step=2).spec
    assert spec is not None
    assert (spec.resize, spec.step, spec.interpolation) == (36, 2, "bicubic")
    assert spec.mean == pytest.approx((0.1, 0.2, 0.3))
    assert spec.std == pytest.approx((0.4, 0.5, 0.6))


@needs_transformers
def test_checkpoint_without_a_classifier_is_refused(tmp_path: Path) -> None:
    model = from_config(config_of("videomae"))
    model.network.network.videomae.save_pretrained(tmp_path)  # type: ignore[union-attr, operator]
    with pytest.raises(CheckpointError, match="no classifier"):
        load_recogniser("videomae", weights=tmp_path)


def test_scale_equals_the_library() -> None:
    settings = {
        "rescale_factor": 1 / 127.5,
        "offset": True,
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.5, 0.25, 0.2],
    }
    mean, std = scale_of(settings, HALF, HALF)
    for value in (0.0, 100.0, 255.0):
        expected = (value / 127.5 - 1 - np.array(settings["image_mean"])) / np.array(settings["image_std"])
        assert (value / 255 - np.array(mean)) / np.array(std) == pytest.approx(expected)
    mean, std = scale_of({"do_normalize": False, "do_rescale": False}, HALF, HALF)
    assert (200 / 255 - mean[0]) / std[0] == pytest.approx(200)
    assert scale_of({}, HALF, HALF)[0] == pytest.approx((0.5, 0.5, 0.5))


def test_invalid_folder_is_reported_before_the_library_is_imported(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json: cannot be read"):
        load_recogniser("vivit", weights=tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="is not JSON"):
        load_recogniser("vivit", weights=tmp_path)
    with pytest.raises(BadValue, match="weights are a folder"):
        load_recogniser("vivit", weights={"a": torch.zeros(1)})
