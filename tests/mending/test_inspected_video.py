"""Inspection of one video in many states: bit-identical to inspecting each state separately, at a lower cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from helpers.moving_film import textured_film
from jostle.mending import folded
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CELLS
from jostle.mending.inspection import InspectedVideo, Inspector


@pytest.mark.parametrize("count", [1, 5, 33, 200, 301])
def test_probabilities_equal_those_of_the_network(inspector: Inspector, count: int) -> None:
    descriptors = describe_frames(textured_film(count))
    with torch.inference_mode():
        expected = inspector.network(torch.from_numpy(descriptors)[None]).sigmoid()[0].numpy()
    probabilities = InspectedVideo(inspector, descriptors).probabilities
    assert probabilities.dtype == np.float32
    assert np.abs(probabilities - expected).max() < 1e-5
    assert np.ptp(probabilities) > 0 or count == 1


def move_frames(came_from: np.ndarray, order: slice, to: slice) -> np.ndarray:
    out = came_from.copy()
    out[to] = came_from[order]
    return out


DAMAGED = {"black": slice(100, 106), "spread": slice(3, None, 40), "last": slice(289, None), "all": slice(None)}


@pytest.mark.parametrize("state", [*DAMAGED, "moved"])
def test_a_state_equals_a_separate_video_bit_for_bit(inspector: Inspector, state: str) -> None:
    frames, count = textured_film(290), 290
    came_from, damaged = np.arange(count), np.zeros(count, bool)
    if state == "moved":
        came_from = move_frames(came_from, slice(99, 79, -1), slice(80, 100))
    else:
        damaged[DAMAGED[state]] = True
    corrupted = frames[came_from]
    corrupted[damaged] = 255 - corrupted[damaged] // 2
    video = InspectedVideo(inspector, describe_frames(frames))
    probabilities = video.probabilities_for(np.where(damaged, -1, came_from), describe_frames(corrupted[damaged]))
    expected = InspectedVideo(inspector, describe_frames(corrupted)).probabilities
    assert probabilities.tobytes() == expected.tobytes()
    assert probabilities.tobytes() != video.probabilities.tobytes()


def test_only_frames_within_reach_of_a_change_are_processed_again(
    inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = textured_film(600)
    video, batch_sizes = InspectedVideo(inspector, describe_frames(frames)), []
    layers = folded.FoldedEmbedding.__call__
    monkeypatch.setattr(
        folded.FoldedEmbedding, "__call__", lambda self, rows: batch_sizes.append(len(rows)) or layers(self, rows)
    )
    came_from = np.arange(600)
    assert video.probabilities_for(came_from, describe_frames(())).tobytes() == video.probabilities.tobytes()
    assert not batch_sizes
    came_from[300:303] = -1
    probabilities = video.probabilities_for(came_from, describe_frames(np.zeros((3, 36, 50, 3), np.uint8)))
    reach = 64 + 8 + inspector.network.reach + 3
    assert sum(batch_sizes) < 2 * (64 + 8 + 12) + 32
    unchanged = probabilities.view(np.uint32) == video.probabilities.view(np.uint32)
    assert unchanged[: 300 - reach].all()
    assert unchanged[303 + reach :].all()
    assert not unchanged[290:310].any()


def test_the_number_of_cells_fits_the_layers(inspector: Inspector) -> None:
    """The incremental computation splits the layers by hand: cells in groups of four, twice."""
    assert CELLS % 4 == 0
    assert inspector.network.four.in_features == 4 * inspector.network.cell.out_features
    assert inspector.network.sixteen.in_features == 4 * inspector.network.four.out_features
