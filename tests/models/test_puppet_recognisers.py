"""Small recognisers of puppets: output shapes, sizes and sensitivity to the order of frames."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.puppet_frames import FrameClassifier
from jostle.models.recognition.puppets import NETWORKS, SPEC, Apart, shifted

SHIPPED_BYTES = 8e6


@pytest.fixture(scope="module")
def clips() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (2, 16, 112, 112, 3), np.uint8)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_score_clips_and_return_feature_maps(name: str, clips: np.ndarray) -> None:
    model = load_recogniser(name, weights="random")
    scores = model(clips)
    assert scores.shape == (2, 16)
    assert np.allclose(scores.sum(1), 1, atol=1e-5)
    with torch.inference_mode():
        features = model.network.see(SPEC.prepare(clips[0]))
    assert features.shape[-2:] == (7, 7)
    assert SPEC.frames % features.shape[2] == 0
    assert features.shape[1] == model.network.classifier.in_features


@pytest.mark.parametrize("name", NETWORKS)
def test_features_depend_on_the_order_of_frames(name: str, clips: np.ndarray) -> None:
    network = load_recogniser(name, weights="random").network
    with torch.inference_mode():
        both = (clips[0], clips[0, ::-1].copy())
        forwards, backwards = (network.see(SPEC.prepare(clip)).mean((2, 3, 4)) for clip in both)
    assert (forwards - backwards).abs().max() > 1e-5


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_receives_a_gradient(name: str) -> None:
    torch.manual_seed(0)
    network = NETWORKS[name](3).train()
    network(torch.randn(2, 3, 16, 112, 112)).square().sum().backward()
    unused = [key for key, value in network.named_parameters() if value.grad is None or not value.grad.abs().sum() > 0]
    assert unused == []


def test_weights_of_all_treatments_fit_the_size_limit() -> None:
    weights = [sum(p.numel() for p in build(16).state_dict().values()) for build in NETWORKS.values()]
    assert 2 * 2 * sum(weights) < SHIPPED_BYTES
    assert sum(p.numel() for p in FrameClassifier(9).parameters()) < 200_000


def test_depthwise_filters_equal_a_grouped_3d_convolution() -> None:
    torch.manual_seed(0)
    for halved in (False, True):
        apart = Apart(4, 3, 3, halved=halved)
        x = torch.randn(2, 5, 4, 8, 8)
        weight = apart.weight.permute(1, 2, 0, 3, 4)  # (C, 1, T, H, W)
        stride = (1, 2, 2) if halved else 1
        expected = torch.nn.functional.conv3d(x.transpose(1, 2), weight, None, stride, 1, groups=4).transpose(1, 2)
        torch.testing.assert_close(apart(x), expected)


def test_shifted_pads_with_zeros() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]])
    assert shifted(x, 0).tolist() == [[1.0, 2.0, 3.0]]
    assert shifted(x, 1).tolist() == [[0.0, 1.0, 2.0]]
    assert shifted(x, -2).tolist() == [[3.0, 0.0, 0.0]]


def test_puppet_frames_scores_single_frames() -> None:
    model = load_recogniser("puppet_frames", weights="random")
    frames = np.random.default_rng(1).integers(0, 256, (3, 1, 112, 112, 3), np.uint8)
    assert model(frames).shape == (3, 9)


def test_frame_classifier_uses_the_attended_position() -> None:
    torch.manual_seed(0)
    network = FrameClassifier(9).eval()
    features = torch.rand(1, 64, 14, 14)
    with torch.inference_mode():
        network.where.weight.zero_()[0, 0] = 100.0
        features[:, 0], features[:, 0, 3, 5] = 0.0, 1.0
        expected = network.classifier(features[:, :, 3, 5])
        torch.testing.assert_close(network.classify(features), expected)
