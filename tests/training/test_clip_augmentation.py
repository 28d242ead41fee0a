"""Augmentation of clips: views by name and epoch, crops, noise and mixed patterns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.training.clip_augmentation import (
    ClipLoader,
    View,
    augment_copy,
    draw_patterns,
    draw_view,
    mix_patterns,
    plain_view,
    plasma,
    prepare_batch,
)
from jostle.training.clips import PixelClips, evenly_spaced
from jostle.training.recognition_config import ClipsConfig, CorruptionsConfig, NoiseConfig, PatternsConfig

SPEC = InputSpec(frames=4, stride=4, resize=(12, 16), size=8, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
CPU = torch.device("cpu")


def random_clips(count: int = 3, versions: int = 2) -> PixelClips:
    frames = np.random.default_rng(0).integers(0, 256, (count, versions, 8, 12, 16, 3), np.uint8)
    return PixelClips(tuple(f"clip{i}" for i in range(count)), np.arange(count), np.arange(count), frames)


@given(st.text(max_size=8), st.integers(0, 50), st.integers(0, 3), st.floats(0.3, 1.0), st.floats(0, 0.4))
@settings(deadline=None, max_examples=60)
def test_views_stay_within_the_clip_in_order(name: str, epoch: int, versions: int, least: float, shift: float) -> None:
    config = ClipsConfig(span=(least, 1.0), shift=shift, mirror=True)
    view = draw_view(name, (1 + versions, 8, 12, 16), 4, config, share=0.5, seed=1, epoch=epoch)
    again = draw_view(name, (1 + versions, 8, 12, 16), 4, config, share=0.5, seed=1, epoch=epoch)
    assert view == again
    assert 0 <= view.version <= versions
    assert list(view.steps) == sorted(view.steps)
    assert view.steps[0] >= 0
    assert view.steps[-1] <= 7
    assert view.steps[-1] - view.steps[0] >= least * 7 - 1
    assert abs(view.top) <= round(shift * 12)
    assert abs(view.left) <= round(shift * 16)


def test_views_differ_by_epoch_and_follow_the_settings() -> None:
    def draw_views(**changes: float) -> list[View]:
        config = ClipsConfig(mirror=bool(changes.get("mirror", 0)))
        share = changes.get("share", 0.0)
        return [draw_view("a", (3, 8, 12, 16), 4, config, share=share, seed=0, epoch=e) for e in range(300)]

    assert len(set(draw_views())) > 20
    assert {view.version for view in draw_views()} == {0}
    assert not any(view.mirrored for view in draw_views())
    assert 0.4 < np.mean([view.mirrored for view in draw_views(mirror=1)]) < 0.6
    versions = [view.version for view in draw_views(share=0.75)]
    assert {0, 1, 2} == set(versions)
    assert 0.68 < np.mean([version > 0 for version in versions]) < 0.82


def test_clip_loader_crops_views_from_the_pixels() -> None:
    clips = random_clips()
    views = ClipLoader(clips, SPEC, CPU).load(
        [2, 0], [View(1, (0, 2, 4, 6), 1, -2), View(0, (7, 7, 7, 7), -9, 0, True)]
    )
    assert views.shape == (2, 4, 8, 8, 3)
    assert np.array_equal(views[0], clips.frames[2, 1, ::2, 3:11, 2:10])
    rows = np.clip(np.arange(8) + 2 - 9, 0, 11)  # the edge is repeated beyond the border
    assert np.array_equal(views[1, 0], clips.frames[0, 0, 7][rows][:, 4:12][:, ::-1])


def test_subset_of_clips_has_the_same_pixels() -> None:
    clips = random_clips(5)
    subset = clips.of([4, 1])
    view = plain_view(8, 4)
    assert subset.names == ("clip4", "clip1")
    assert torch.equal(
        ClipLoader(subset, SPEC, CPU).load([0, 1], [view] * 2), ClipLoader(clips, SPEC, CPU).load([4, 1], [view] * 2)
    )


def test_prepared_batch_equals_the_input_spec() -> None:
    clips = random_clips(1, 1)
    spec = InputSpec(frames=4, stride=4, resize=None, size=8, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
    for layout in ("CTHW", "TCHW", "THWC"):
        for colours in ("rgb", "bgr"):
            layout_spec = InputSpec(**{**vars(spec), "layout": layout, "colours": colours})
            views = ClipLoader(clips, layout_spec, CPU).load([0], [plain_view(8, 4)])
            expected = layout_spec.prepare(clips.frames[0, 0][evenly_spaced(8, 4)])
            torch.testing.assert_close(prepare_batch(views, layout_spec), expected)


def test_noise_has_the_configured_std_and_share() -> None:
    torch.manual_seed(0)
    spec = InputSpec(frames=4, stride=4, resize=None, size=8)
    views = torch.full((400, 4, 8, 8, 3), 128, dtype=torch.uint8)
    noise = prepare_batch(views, spec, noise=NoiseConfig(0.2, 0.25)) - prepare_batch(views, spec)
    has_noise = noise.flatten(1).std(1) > 0
    assert 0.17 < has_noise.float().mean() < 0.33
    assert noise[has_noise].std().item() == pytest.approx(0.2, rel=0.03)


def test_patterns_depend_on_the_seed_and_fill_the_range() -> None:
    patterns = draw_patterns(PatternsConfig(count=8), 64, 0)
    assert torch.equal(patterns, draw_patterns(PatternsConfig(count=8), 64, 0))
    assert not torch.equal(patterns, draw_patterns(PatternsConfig(count=8), 64, 1))
    assert patterns.float().std() > 40
    pattern = plasma(0, 3, 64).astype(float)
    neighbour_difference = np.abs(np.diff(pattern, axis=0)).mean()
    assert neighbour_difference < 0.5 * np.abs(pattern[:32] - pattern[32:]).mean()  # smooth: neighbours are similar


@given(st.integers(0, 10_000), st.floats(0.2, 6.0))
@settings(deadline=None, max_examples=25)
def test_mixed_clips_stay_in_range_and_unselected_ones_unchanged(seed: int, strength: float) -> None:
    torch.manual_seed(seed)
    clips = torch.rand(6, 2, 3, 8, 8)
    patterns = draw_patterns(PatternsConfig(count=3), 8, 0)
    mixed = mix_patterns(clips, patterns, PatternsConfig(share=1.0, strength=strength))
    assert mixed.isfinite().all()
    assert mixed.min() >= 0
    assert mixed.max() <= 1
    assert torch.equal(mix_patterns(clips, patterns, PatternsConfig(share=0.0)), clips)
    assert augment_copy(clips).shape == clips.shape


def test_a_higher_strength_leaves_more_of_the_clip() -> None:
    torch.manual_seed(0)
    clips, patterns = torch.rand(200, 1, 3, 8, 8), draw_patterns(PatternsConfig(count=16), 8, 0)
    distances = [
        (mix_patterns(clips, patterns, PatternsConfig(share=1.0, rounds=1, strength=s)) - clips).abs().mean()
        for s in (1.0, 8.0)
    ]
    assert distances[1] < 0.8 * distances[0]


def test_invalid_settings_are_refused() -> None:
    for kind, changes in (
        (ClipsConfig, {"span": (0.9, 0.5)}),
        (ClipsConfig, {"shift": 0.5}),
        (ClipsConfig, {"seeds": ()}),
        (ClipsConfig, {"denser": 0}),
        (CorruptionsConfig, {"share": 1.5}),
        (CorruptionsConfig, {"specs": ("fog",), "severities": ()}),
        (NoiseConfig, {"std": -1.0}),
        (PatternsConfig, {"rounds": 0}),
    ):
        with pytest.raises(BadValue, match=r"data|corruptions|noise|patterns"):
            kind(**changes)
