"""Accuracy of the shipped recognisers on unseen puppets; `robust` weights withstand noise better than `clean`."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle.core.types.clip import Clip, Frames
from jostle.datasets.puppets.film import CLASSES, trimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.datasets.puppets.similar_frames import LABELS
from jostle.training.clips import evenly_spaced

SLOW = pytest.mark.slow
NAMES = (
    "puppet_c3d",
    "puppet_divided",
    *(pytest.param(name, marks=SLOW) for name in ("puppet_r2plus1d", "puppet_x3d")),
)


@pytest.fixture(scope="module")
def clips() -> Frames:
    """Clips (16, 16, H, W, 3), one per class, with puppets of the test cast in films of no subset."""
    films = [trimmed(7, f"shipped_{label}", label=label, puppet=CASTS["test"][i]) for i, label in enumerate(CLASSES)]
    return np.stack([[film.draw(int(t), int(t) + 1)[0] for t in evenly_spaced(film.frames, 16)] for film in films])


@pytest.fixture(scope="module")
def noisy_clips(clips: Frames) -> Frames:
    """Every second clip, with Gaussian noise."""
    times = np.arange(16) / 24
    noise = "ucf101-p/gaussian_noise:2"
    return np.stack([jostle.corrupt(Clip(clip, times, 24.0), noise, seed=0).frames for clip in clips[1::2]])


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_recognised_and_robust_weights_withstand_noise(
    name: str, clips: Frames, noisy_clips: Frames
) -> None:
    noisy = []
    for weights in ("clean", "robust"):
        model = jostle.load_recogniser(name, weights=weights)
        assert model.classes == CLASSES
        assert (model(clips).argmax(1) == np.arange(16)).sum() >= 14
        noisy.append((model(noisy_clips).argmax(1) == np.arange(1, 16, 2)).sum())
    assert noisy[1] > noisy[0]


@pytest.mark.parametrize("weights", ["clean", "robust"])
def test_frame_classifier_recognises_the_held_prop(weights: str) -> None:
    frames, labels = [], []
    for i in range(16):
        film = trimmed(7, f"held_{i}", label=("raise", "put_down")[i % 2], puppet=CASTS["test"][i])
        held = film.held()
        t = int(held.area.argmax())
        frames.append(film.draw(t, t + 1))
        labels.append(LABELS.index(held.names[t]))
    model = jostle.load_recogniser("puppet_frames", weights=weights)
    assert len(set(labels)) > 4
    assert (model(np.stack(frames)).argmax(1) == labels).sum() >= 13
