"""Recognisers as extractors: features are the inputs of the last layer."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from helpers.paper_networks import SMALL
from helpers.tiny_transformers import config_of
from jostle.errors import BadValue
from jostle.models.extractors.extractor import as_extractor
from jostle.models.input_spec import InputSpec
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.puppets import NETWORKS
from jostle.models.recognition.recogniser import Recogniser
from jostle.models.recognition.transformers import FAMILIES, from_config

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
SPEC = InputSpec(frames=2, stride=3, resize=None, size=4, step=3)


class MeanColour(nn.Module):
    """Linear classifier of the mean colours of all frames."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 4))

    def forward(self, clips: Tensor) -> Tensor:
        scores: Tensor = self.head(clips.mean((3, 4)).flatten(1))
        return scores


class DenseClassifier(nn.Module):
    """Classifier that averages the scores of all positions, as S3D does."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, 5, (1, 3, 3))
        self.head = nn.Conv3d(5, 4, 1)

    def forward(self, clips: Tensor) -> Tensor:
        scores: Tensor = self.head(self.conv(clips)).mean((2, 3, 4))
        return scores


def clips_of(recogniser: Recogniser, count: int = 2, height: int = 48, width: int = 64) -> np.ndarray:
    assert recogniser.spec is not None
    span = recogniser.spec.frames * recogniser.spec.step
    return np.random.default_rng(0).integers(0, 256, (count, span, height, width, 3), np.uint8)


def check(recogniser: Recogniser, *, tolerance: float = 1e-5) -> None:
    """Check that the last layer maps the features to the scores of the recogniser."""
    extractor = as_extractor(recogniser)
    clips = clips_of(recogniser)
    assert recogniser.spec is not None
    assert extractor.spec.frames == clips.shape[1]
    assert extractor.spec.stride == recogniser.spec.stride
    assert isinstance(recogniser.network, nn.Module)
    features = extractor(clips)
    assert features.shape == (2, extractor.dim)
    assert features.tobytes() == np.concatenate([extractor(clips[:1]), extractor(clips[1:])]).tobytes()
    head: Any = recogniser.network.get_submodule(recogniser.head)
    logits = torch.from_numpy(features) @ head.weight.flatten(1).T.detach() + head.bias.detach()
    scores = recogniser(clips[:, list(recogniser.spec.picks)])
    assert np.abs(logits.softmax(1).numpy() - scores).max() < tolerance


@pytest.mark.parametrize(("name", "input"), [*((name, {"frames": 16}) for name in NETWORKS), *SMALL.items()])
def test_features_of_named_recognisers(name: str, input: dict[str, int]) -> None:
    check(load_recogniser(name, weights="random", **input, step=2))


@needs_transformers
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_features_of_transformers_recognisers(kind: str) -> None:
    check(from_config(config_of(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r3d_18", "mc3_18", "r2plus1d_18", "s3d", "mvit_v2_s", "swin3d_t"])
@pytest.mark.usefixtures("torchvision_video")
def test_features_of_torchvision_recognisers(name: str) -> None:
    check(load_recogniser(name, weights="random"))


def test_features_of_a_module_with_a_named_head() -> None:
    check(Recogniser(MeanColour(), SPEC, head="head.1"))
    check(Recogniser(DenseClassifier(), SPEC, head="head"))


def test_only_sampled_frames_of_a_window_affect_features() -> None:
    extractor = as_extractor(Recogniser(MeanColour(), SPEC, head="head.1"))
    clips = np.random.default_rng(0).integers(0, 256, (1, 6, 8, 8, 3), np.uint8)
    other = clips.copy()
    other[:, [1, 2, 4, 5]] = 0
    assert np.array_equal(extractor(clips), extractor(other))
    other[:, 3] = 0
    assert not np.array_equal(extractor(clips), extractor(other))
    expected = clips[0, [0, 3], 2:6, 2:6].mean((1, 2)) / 255  # (frames, colours)
    assert extractor(clips)[0] == pytest.approx(expected.T.ravel(), abs=1e-6)
    with pytest.raises(BadValue, match="MeanColour: a clip must have 6 frames, not 7"):
        extractor(np.zeros((1, 7, 8, 8, 3), np.uint8))


def test_extractor_can_be_pickled() -> None:
    extractor = as_extractor(Recogniser(MeanColour(), SPEC, head="head.1"))
    clips = np.random.default_rng(0).integers(0, 256, (1, 6, 8, 8, 3), np.uint8)
    assert np.array_equal(pickle.loads(pickle.dumps(extractor))(clips), extractor(clips))


@pytest.mark.parametrize(
    ("recogniser", "message"),
    [
        (lambda: Recogniser(lambda clips: clips[:, 0, 0, 0]), "cannot make features"),
        (lambda: Recogniser(MeanColour(), SPEC), "MeanColour cannot make features.*head=..."),
        (
            lambda: Recogniser(MeanColour(), SPEC, head="fc"),
            "MeanColour: its network has no layer 'fc'",
        ),
        (lambda: Recogniser(MeanColour(), SPEC, head="head.0"), "'head.0' is a Dropout, not a linear layer"),
        (lambda: Recogniser(DenseClassifier(), SPEC, head="conv"), "'conv' is a Conv3d, not a linear layer or 1x1x1"),
    ],
)
def test_recognisers_without_features_are_refused(recogniser: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        as_extractor(recogniser())


def test_head_that_is_never_called_raises() -> None:
    class Idle(MeanColour):
        def forward(self, clips: Tensor) -> Tensor:
            return clips.mean((3, 4)).flatten(1)

    extractor = as_extractor(Recogniser(Idle(), SPEC, head="head.1"))
    with pytest.raises(BadValue, match=r"Idle: head.1 was given nothing, not \(1, 6\) features"):
        extractor(np.zeros((1, 6, 8, 8, 3), np.uint8))
