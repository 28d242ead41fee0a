"""Image classifiers of torchvision: preprocessing equals its presets exactly, and its weights are loaded."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest
import torch

from jostle.errors import CheckpointError, UnknownName
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.recogniser import find_kind


@pytest.fixture(scope="session")
def models(torchvision_video: ModuleType) -> ModuleType:
    return importlib.import_module("torchvision.models")


@pytest.mark.parametrize("name", ["resnet50", "resnet50.IMAGENET1K_V1", "alexnet", "inception_v3", "efficientnet_b0"])
@pytest.mark.parametrize("size", [(240, 427), (500, 375), (97, 131)])
def test_frames_are_prepared_as_torchvision_does(models: ModuleType, name: str, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    architecture, _, tag = name.partition(".")
    published = models.get_model_weights(architecture)
    expected = (published[tag] if tag else published.DEFAULT).transforms()(image.fromarray(frame))
    spec = find_kind(f"torchvision/{name}").spec
    assert spec is not None
    assert torch.equal(spec.prepare(frame[None])[0, 0], expected)


def test_every_image_classifier_has_a_spec_and_a_weight_source(models: ModuleType) -> None:
    for name in models.list_models(module=models):
        kind = find_kind(f"torchvision/{name}")
        assert kind.place is not None
        assert kind.place.url.startswith("https://download.pytorch.org/models/")
        assert kind.place.sha256 in kind.place.url
        assert len(kind.place.sha256) >= 8
        assert kind.place.mebibytes


@pytest.mark.parametrize("name", ["alexnet", "squeezenet1_1", "googlenet", "mobilenet_v3_small"])
def test_weights_are_loaded_unchanged(models: ModuleType, name: str) -> None:
    torch.manual_seed(1)
    more = {"init_weights": False, "transform_input": True} if name == "googlenet" else {}
    network = models.get_model(name, weights=None, **more).eval()
    model = load_recogniser(f"torchvision/{name}", weights=network.state_dict())
    frames = np.random.default_rng(0).integers(0, 256, (1, 1, 240, 320, 3), np.uint8)
    assert model.spec is not None
    with torch.inference_mode():
        expected = network(model.spec.prepare(frames[0])[0]).softmax(1)
    assert np.allclose(model(frames), expected.numpy(), atol=1e-6)


def test_mismatched_weights_are_refused(models: ModuleType) -> None:
    with pytest.raises(CheckpointError, match="belong to another network"):
        load_recogniser("torchvision/alexnet", weights=models.resnet18().state_dict())
    with pytest.raises(UnknownName, match="did you mean resnet18"):
        find_kind("torchvision/resnet19")
    with pytest.raises(UnknownName, match="IMAGENET1K_V1"):
        find_kind("torchvision/resnet18.IMAGENET1K_V9")
    with pytest.raises(UnknownName, match="no image classifier"):
        find_kind("torchvision/fasterrcnn_resnet50_fpn")
