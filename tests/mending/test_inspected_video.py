"""One video in many states: an inspector says the same bits of a state as if that were a video of its own, for less."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jostle.core.types.clip import Frames
from jostle.mending import inspected_video
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CELLS
from jostle.mending.inspected_video import InspectedVideo
from jostle.mending.inspector import Inspector, InspectorNetworks


@pytest.fixture(scope="module")
def inspector() -> Inspector:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        return Inspector(InspectorNetworks(), {"both": 0.5, "causal": 0.5}, name="x")


def film(frames: int) -> Frames:
    rng = np.random.default_rng(frames)
    ground = rng.integers(0, 256, (36, 50, 3), np.uint8)
    return np.stack([np.roll(ground, t, axis=1) // (1 + t % 3) for t in range(frames)])


@pytest.mark.parametrize("count", [1, 5, 33, 200, 301])
def test_a_video_is_told_what_the_network_says_of_it(inspector: Inspector, count: int) -> None:
    seen = describe_frames(film(count))
    with torch.inference_mode():
        whole = inspector.network(torch.from_numpy(seen)[None]).sigmoid()[0].numpy()
    told = InspectedVideo(inspector, seen).probabilities
    assert told.dtype == np.float32
    assert np.abs(told - whole).max() < 1e-5
    assert np.ptp(told) > 0 or count == 1


def moved(came_from: np.ndarray, order: slice, to: slice) -> np.ndarray:
    out = came_from.copy()
    out[to] = came_from[order]
    return out


STRUCK = {"black": slice(100, 106), "spread": slice(3, None, 40), "last": slice(289, None), "all": slice(None)}


@pytest.mark.parametrize("state", [*STRUCK, "moved"])
def test_a_state_has_the_bits_of_a_video_of_its_own(inspector: Inspector, state: str) -> None:
    frames, count = film(290), 290
    came_from, struck = np.arange(count), np.zeros(count, bool)
    if state == "moved":
        came_from = moved(came_from, slice(99, 79, -1), slice(80, 100))
    else:
        struck[STRUCK[state]] = True
    other = frames[came_from]
    other[struck] = 255 - other[struck] // 2
    video = InspectedVideo(inspector, describe_frames(frames))
    told = video.probabilities_for(np.where(struck, -1, came_from), describe_frames(other[struck]))
    alone = InspectedVideo(inspector, describe_frames(other)).probabilities
    assert told.tobytes() == alone.tobytes()
    assert told.tobytes() != video.probabilities.tobytes()


def test_only_what_a_change_can_reach_is_looked_at_again(inspector: Inspector, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = film(600)
    video, embedded = InspectedVideo(inspector, describe_frames(frames)), []
    layers = inspected_video._Layers.__call__
    monkeypatch.setattr(
        inspected_video._Layers, "__call__", lambda self, seen: embedded.append(len(seen)) or layers(self, seen)
    )
    came_from = np.arange(600)
    assert video.probabilities_for(came_from, describe_frames(())).tobytes() == video.probabilities.tobytes()
    assert not embedded
    came_from[300:303] = -1
    told = video.probabilities_for(came_from, describe_frames(np.zeros((3, 36, 50, 3), np.uint8)))
    reach = 64 + 8 + inspector.network.reach + 3
    assert sum(embedded) < 2 * (64 + 8 + 12) + 32
    same = told.view(np.uint32) == video.probabilities.view(np.uint32)
    assert same[: 300 - reach].all()
    assert same[303 + reach :].all()
    assert not same[290:310].any()


def test_another_number_of_cells_would_be_told_of(inspector: Inspector) -> None:
    """The layers are taken apart here, by hand: cells by fours, twice."""
    assert CELLS % 4 == 0
    assert inspector.network.four.in_features == 4 * inspector.network.cell.out_features
    assert inspector.network.sixteen.in_features == 4 * inspector.network.four.out_features
