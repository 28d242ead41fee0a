"""Video recognisers of torchvision: input specs and preprocessing equal its presets; missing or broken installs."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest
import torch

from jostle.errors import ResourceError
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.recogniser import recognisers

PRESETS = {
    "r3d_18": "R3D_18_Weights",
    "mc3_18": "MC3_18_Weights",
    "r2plus1d_18": "R2Plus1D_18_Weights",
    "s3d": "S3D_Weights",
    "mvit_v2_s": "MViT_V2_S_Weights",
    "swin3d_t": "Swin3D_T_Weights",
}


def test_torchvision_incompatible_with_torch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ResourceError, match="does not load beside torch"):
        recognisers["s3d"].load("random", {})


@pytest.mark.parametrize("name", PRESETS)
def test_input_specs_equal_the_published_presets(name: str, torchvision_video: ModuleType) -> None:
    weights = getattr(torchvision_video, PRESETS[name]).KINETICS400_V1
    preset, spec = weights.transforms(), recognisers[name].spec
    assert spec is not None
    assert preset.crop_size == [spec.size] * len(preset.crop_size)
    assert preset.resize_size == (list(spec.resize) if isinstance(spec.resize, tuple) else [spec.resize])
    assert tuple(preset.mean) == pytest.approx(spec.mean)
    assert tuple(preset.std) == pytest.approx(spec.std)
    assert preset.interpolation.value == spec.interpolation
    # The clip length and frame rate of the published accuracy.
    documentation = weights.meta.get("_docs", "")
    assert f"clip_len={spec.frames}" in documentation.replace("`", "").replace(" ", "")
    assert f"frame_rate={spec.fps:g}" in documentation.replace("`", "").replace(" ", "")


@pytest.mark.parametrize("name", PRESETS)
def test_frames_are_prepared_as_torchvision_does(name: str, torchvision_video: ModuleType) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (2, 240, 320, 3), np.uint8)
    preset, spec = getattr(torchvision_video, PRESETS[name]).KINETICS400_V1.transforms(), recognisers[name].spec
    assert spec is not None
    expected = preset(torch.tensor(frames).permute(0, 3, 1, 2))
    prepared = spec.prepare(frames)[0]
    # torchvision rounds to integer grey levels after resizing.
    assert (expected - prepared).abs().max() < 0.51 / 255 / min(spec.std)


@pytest.mark.parametrize("name", ["r3d_18", "mc3_18", "r2plus1d_18"])
def test_number_of_classes_is_read_from_the_weights(name: str, torchvision_video: ModuleType) -> None:
    network = getattr(torchvision_video, name)(weights=None, num_classes=3)
    model = load_recogniser(name, weights=network.state_dict(), size=48, resize=48)
    scores = model(np.random.default_rng(0).integers(0, 256, (1, 4, 50, 60, 3), np.uint8))
    assert scores.shape == (1, 3)
    assert np.allclose(scores.sum(), 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s3d", "mvit_v2_s", "swin3d_t"])
def test_number_of_classes_is_read_from_the_weights_of_large_models(name: str, torchvision_video: ModuleType) -> None:
    network = getattr(torchvision_video, name)(weights=None, num_classes=3)
    model = load_recogniser(name, weights=network.state_dict(), frames=16)
    clip = np.random.default_rng(0).integers(0, 256, (1, 16, 256, 256, 3), np.uint8)
    assert torch.tensor(model(clip)).shape == (1, 3)
