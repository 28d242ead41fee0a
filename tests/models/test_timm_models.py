"""Image classifiers of timm: preprocessing and weight loading equal timm exactly."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch

from helpers.refusals import refused
from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models.extractors.extractor import as_extractor
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.recogniser import find_kind, recognisers
from jostle.models.recognition.timm import _load, settings_of, spec_of

# They cover centre crops, squashing, a separate test size, other means, crops larger than the frame and bilinear.
MODELS = (
    "resnet50.a1_in1k",
    "resnet50.tv_in1k",
    "vit_base_patch16_224.augreg_in1k",
    "convnext_tiny.fb_in1k",
    "volo_d4_448.sail_in1k",
    "inception_v3.tf_in1k",
    "efficientnet_b0.ra_in1k",
)


@pytest.fixture(scope="session")
def timm(torchvision_video: ModuleType) -> ModuleType:
    return pytest.importorskip("timm")


def test_a_network_must_be_named() -> None:
    with pytest.raises(BadValue, match="name a network, as timm/resnet50"):
        recognisers["timm/NAME"].load("random", {})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [(240, 427), (500, 375), (97, 131)])
def test_frames_are_prepared_as_timm_does(timm: ModuleType, name: str, size: tuple[int, int]) -> None:
    _compare(timm, dict(timm.models.get_pretrained_cfg(name).to_dict()), size)


@pytest.mark.parametrize("mode", ["center", "squash", "border"])
@pytest.mark.parametrize("crop_fraction", [0.875, 1.0, 1.15])
def test_every_crop_mode_equals_timm(timm: ModuleType, mode: str, crop_fraction: float) -> None:
    settings = {"input_size": (3, 224, 224), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.25)}
    for interpolation in ("bilinear", "bicubic"):
        overrides = {"crop_mode": mode, "crop_pct": crop_fraction, "interpolation": interpolation}
        _compare(timm, {**settings, **overrides}, (301, 200))


def _compare(timm: ModuleType, settings: dict, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    if settings.get("crop_mode") == "squash" and int(pytest.importorskip("PIL").__version__.split(".")[0]) < 13:
        pytest.skip("this Pillow begins with the width, always")
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    config = timm.data.resolve_data_config(pretrained_cfg=settings, use_test_size=True)
    expected = timm.data.create_transform(**config, is_training=False)(image.fromarray(frame))
    prepared = spec_of("timm/x", settings).prepare(frame[None])[0, 0]
    assert prepared.shape == expected.shape
    assert torch.equal(prepared, expected)


def test_every_square_classifier_of_timm_has_an_input_spec(timm: ModuleType) -> None:
    unsupported = []
    for name in timm.list_models(pretrained=True):
        try:
            spec = find_kind(f"timm/{name}").spec
            assert spec is not None
            assert spec.frames == 1
        except BadValue:
            unsupported.append(name)
    assert all("sapiens" in name for name in unsupported)


def test_scores_and_features_equal_timm(timm: ModuleType) -> None:
    torch.manual_seed(1)
    network = timm.create_model("resnet18", num_classes=1000).eval()
    model = load_recogniser("timm/resnet18.a1_in1k", weights=network.state_dict())
    frames = np.random.default_rng(0).integers(0, 256, (2, 1, 240, 320, 3), np.uint8)
    scores = model(frames)
    assert model.spec is not None
    prepared = torch.stack([model.spec.prepare(clip)[0, 0] for clip in frames])
    with torch.inference_mode():
        assert np.allclose(scores, network(prepared).softmax(1).numpy(), atol=1e-6)
    assert scores.shape == (2, 1000)
    assert as_extractor(model)(frames).shape == (2, 512)


def test_number_of_classes_is_read_from_the_weights(timm: ModuleType) -> None:
    network = timm.create_model("resnet18", num_classes=7)
    model = load_recogniser("timm/resnet18", weights=network.state_dict(), size=64)
    assert model(np.zeros((1, 1, 80, 80, 3), np.uint8)).shape == (1, 7)
    assert torch.equal(model.network.network.fc.bias, network.fc.bias)


def test_background_class_is_dropped_as_in_timm(timm: ModuleType) -> None:
    torch.manual_seed(2)
    network = timm.create_model("inception_v3", num_classes=1001)
    settings = {**settings_of("inception_v3.tf_in1k"), "label_offset": 1}  # as timm's data has it in some versions
    model = _load("inception_v3.tf_in1k", settings, network.state_dict(), {})
    assert torch.equal(model.network.network.fc.bias, network.fc.bias[1:])


def test_weights_of_another_network_are_refused(timm: ModuleType) -> None:
    other = timm.create_model("resnet34", num_classes=1000).state_dict()
    with refused("F54", CheckpointError, match=r"belong to another network: .* unexpected: layer1"):
        load_recogniser("timm/resnet18", weights=other)


def test_unknown_timm_names_suggest_similar_ones(timm: ModuleType) -> None:
    with pytest.raises(UnknownName, match=r"did you mean .*resnet18"):
        find_kind("timm/resnet181")
    with pytest.raises(UnknownName, match="no tag of timm's resnet18 is called 'a9': "):
        find_kind("timm/resnet18.a9")


def test_public_weights_are_those_of_the_timm_hub(timm: ModuleType) -> None:
    source = find_kind("timm/resnet50.a1_in1k").place
    assert source is not None
    assert source.url == "hf:timm/resnet50.a1_in1k/model.safetensors"
