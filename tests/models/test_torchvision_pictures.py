"""torchvision's image classifiers: prepared to the digit as its presets do, with weights of any of its files."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest
import torch

from jostle.errors import CheckpointError, UnknownName
from jostle.models.recognition.recogniser import find_kind, load_recogniser


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
    theirs = (published[tag] if tag else published.DEFAULT).transforms()(image.fromarray(frame))
    spec = find_kind(f"torchvision/{name}").spec
    assert spec is not None
    assert torch.equal(spec.prepare(frame[None])[0, 0], theirs)


def test_every_image_classifier_says_what_it_sees_and_where_its_weights_are(models: ModuleType) -> None:
    for name in models.list_models(module=models):
        kind = find_kind(f"torchvision/{name}")
        assert kind.place is not None
        assert kind.place.url.startswith("https://download.pytorch.org/models/")
        assert kind.place.sha256 in kind.place.url
        assert len(kind.place.sha256) >= 8
        assert kind.place.mebibytes


@pytest.mark.parametrize("name", ["alexnet", "squeezenet1_1", "googlenet", "mobilenet_v3_small"])
def test_weights_go_in_as_they_are(models: ModuleType, name: str) -> None:
    torch.manual_seed(1)
    more = {"init_weights": False, "transform_input": True} if name == "googlenet" else {}
    network = models.get_model(name, weights=None, **more).eval()
    model = load_recogniser(f"torchvision/{name}", weights=network.state_dict())
    frames = np.random.default_rng(0).integers(0, 256, (1, 1, 240, 320, 3), np.uint8)
    assert model.spec is not None
    with torch.inference_mode():
        theirs = network(model.spec.prepare(frames[0])[0]).softmax(1)
    assert np.allclose(model(frames), theirs.numpy(), atol=1e-6)


def test_what_does_not_fit_is_said(models: ModuleType) -> None:
    with pytest.raises(CheckpointError, match="belong to another network"):
        load_recogniser("torchvision/alexnet", weights=models.resnet18().state_dict())
    with pytest.raises(UnknownName, match="did you mean resnet18"):
        find_kind("torchvision/resnet19")
    with pytest.raises(UnknownName, match="IMAGENET1K_V1"):
        find_kind("torchvision/resnet18.IMAGENET1K_V9")
    with pytest.raises(UnknownName, match="no image classifier"):
        find_kind("torchvision/fasterrcnn_resnet50_fpn")
