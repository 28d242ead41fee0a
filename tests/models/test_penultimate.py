"""A recogniser as an extractor: what its last layer makes scores of, from the frames that it looks at."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from helpers.tiny_transformers import config_of
from jostle.errors import BadValue
from jostle.models.extractors.extractor import as_extractor
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.puppets import NETWORKS
from jostle.models.recognition.recogniser import Recogniser, load_recogniser
from jostle.models.recognition.transformers import FAMILIES, from_config

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
SPEC = InputSpec(frames=2, stride=3, resize=None, size=4, step=3)


class Small(nn.Module):
    """Means of colours over time, and scores of them."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 4))

    def forward(self, clips: Tensor) -> Tensor:
        made: Tensor = self.head(clips.mean((3, 4)).flatten(1))
        return made


class Everywhere(nn.Module):
    """Scores at every place, of which the mean is taken, as S3D does."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, 5, (1, 3, 3))
        self.head = nn.Conv3d(5, 4, 1)

    def forward(self, clips: Tensor) -> Tensor:
        made: Tensor = self.head(self.conv(clips)).mean((2, 3, 4))
        return made


def clips_of(recogniser: Recogniser, count: int = 2, height: int = 48, width: int = 64) -> np.ndarray:
    assert recogniser.spec is not None
    span = recogniser.spec.frames * recogniser.spec.step
    return np.random.default_rng(0).integers(0, 256, (count, span, height, width, 3), np.uint8)


def check(recogniser: Recogniser, *, tolerance: float = 1e-5) -> None:
    """The last layer makes of the features what the recogniser makes of the frames it looks at."""
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


@pytest.mark.parametrize("name", NETWORKS)
def test_our_own(name: str) -> None:
    check(load_recogniser(name, weights="random", frames=16, step=2))


@needs_transformers
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_those_of_transformers(kind: str) -> None:
    check(from_config(config_of(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r3d_18", "mc3_18", "r2plus1d_18", "s3d", "mvit_v2_s", "swin3d_t"])
@pytest.mark.usefixtures("torchvision_video")
def test_those_of_torchvision(name: str) -> None:
    check(load_recogniser(name, weights="random"))


def test_anybodys_module_that_names_its_head() -> None:
    check(Recogniser(Small(), SPEC, head="head.1"))
    check(Recogniser(Everywhere(), SPEC, head="head"))


def test_of_a_window_only_the_frames_of_a_clip_count() -> None:
    extractor = as_extractor(Recogniser(Small(), SPEC, head="head.1"))
    clips = np.random.default_rng(0).integers(0, 256, (1, 6, 8, 8, 3), np.uint8)
    other = clips.copy()
    other[:, [1, 2, 4, 5]] = 0
    assert np.array_equal(extractor(clips), extractor(other))
    other[:, 3] = 0
    assert not np.array_equal(extractor(clips), extractor(other))
    expected = clips[0, [0, 3], 2:6, 2:6].mean((1, 2)) / 255  # (frames, colours)
    assert extractor(clips)[0] == pytest.approx(expected.T.ravel(), abs=1e-6)
    with pytest.raises(BadValue, match="Small: a clip must have 6 frames, not 7"):
        extractor(np.zeros((1, 7, 8, 8, 3), np.uint8))


def test_it_travels() -> None:
    extractor = as_extractor(Recogniser(Small(), SPEC, head="head.1"))
    clips = np.random.default_rng(0).integers(0, 256, (1, 6, 8, 8, 3), np.uint8)
    assert np.array_equal(pickle.loads(pickle.dumps(extractor))(clips), extractor(clips))


@pytest.mark.parametrize(
    ("recogniser", "message"),
    [
        (lambda: Recogniser(lambda clips: clips[:, 0, 0, 0]), "cannot make features"),
        (lambda: Recogniser(Small(), SPEC), "Small cannot make features.*head=..."),
        (lambda: Recogniser(Small(), SPEC, head="fc"), "Small: its network has no layer 'fc'"),
        (lambda: Recogniser(Small(), SPEC, head="head.0"), "'head.0' is a Dropout, not a linear layer"),
        (lambda: Recogniser(Everywhere(), SPEC, head="conv"), "'conv' is a Conv3d, not a linear layer or 1x1x1"),
    ],
)
def test_what_has_no_features_says_so(recogniser: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        as_extractor(recogniser())


def test_a_head_that_is_not_asked_is_noticed() -> None:
    class Idle(Small):
        def forward(self, clips: Tensor) -> Tensor:
            return clips.mean((3, 4)).flatten(1)

    extractor = as_extractor(Recogniser(Idle(), SPEC, head="head.1"))
    with pytest.raises(BadValue, match=r"Idle: head.1 was given nothing, not \(1, 6\) features"):
        extractor(np.zeros((1, 6, 8, 8, 3), np.uint8))
