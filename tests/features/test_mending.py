"""Features of mended videos equal, bit for bit, a direct interpolation between undamaged features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jostle
from helpers.flow_extractor import Moving, extract_windows, make_features
from helpers.numpy_extractor import TwoParts, WindowsWhole, moving
from jostle import Clip
from jostle.core.types.video import ClipSource, VideoSource
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue
from jostle.features.interpolation import interpolate_rows, nearest_undamaged
from jostle.features.video import VideoFeatures
from jostle.mending.finders.known import KnownDamage

FPS = 25
BOTH = [TwoParts, WindowsWhole]
KNOWN = KnownDamage()


@dataclass(frozen=True)
class DarkFrameFinder:
    """Damage finder that reports dark frames, including frames that are dark by themselves."""

    below: float = 60.0
    name = "too_dark"
    fingerprint = "x"

    def finder_for(self, clean: VideoSource) -> DarkFrameFinder:
        return self

    def find_damaged(self, top: VideoSource, came_from: np.ndarray) -> np.ndarray:
        return np.array([top.block(t, t + 1).mean() < self.below for t in range(len(top))])


def make_frames(count: int = 60) -> np.ndarray:
    frames = moving(count)
    frames[20] //= 4  # dark without a corruption
    return frames


def mend_reference(frames: np.ndarray, damaged: np.ndarray, kind: type[TwoParts]) -> np.ndarray:
    """Extract every frame or window, then replace the damaged ones."""
    extractor = kind()
    rows = np.arange((len(frames) - 16) // 4 + 1)[:, None] * 4 + np.arange(16)
    if kind is TwoParts:
        encodings = extractor.see(frames)
        return extractor.join((encodings if damaged.all() else interpolate_rows(encodings, damaged))[rows])
    if kind is Moving:  # the flow to the next frame is used too
        rows = np.append(rows, rows[:, -1:] + 1, 1)
    damaged_windows = np.append(damaged, False)[rows].any(1)
    features = extract_windows(frames, extractor)
    return features if damaged_windows.all() else interpolate_rows(features, damaged_windows)


SPECS = {
    "black": ("thumos14-c/black_frame:3", "frames:31-36"),
    "late": ("thumos14-c/black_frame:3", "frames:55-60"),
    "missed": ("thumos14-c/overexposure:3", "frames:31-36"),
    "order": ("ucf101-p/reverse_sampling:3", None),
    "spread": ("thumos14-c/black_frame:3", "random:9"),
    "all": ("thumos14-c/black_frame:3", "everywhere"),
}


@pytest.mark.parametrize("kind", [*BOTH, Moving])
@pytest.mark.parametrize("state", sorted(SPECS))
def test_a_mended_state_equals_direct_interpolation(kind: type[TwoParts], state: str) -> None:
    frames, (spec, placement) = make_frames(), SPECS[state]
    corrupted = jostle.corrupt(Clip.at_rate(frames, FPS), spec, placement=placement, video_id="v").frames
    dark = corrupted.mean((1, 2, 3)) < 60
    expected = mend_reference(corrupted, dark, kind)
    video = make_features(frames, kind(), finder=DarkFrameFinder())
    done = video.under([Spec.parse(spec)], placement)
    assert np.array_equal(done.mended.damaged, dark)
    assert done.features.tobytes() == expected.tobytes()
    assert video.whole([Spec.parse(spec)], placement).features.tobytes() == expected.tobytes()
    assert make_features(corrupted, kind(), finder=DarkFrameFinder()).clean().features.tobytes() == expected.tobytes()
    assert done.mended.left == (state == "all" or (kind is not TwoParts and state == "spread"))


@pytest.mark.parametrize("kind", BOTH)
def test_the_clean_video_is_mended_too(kind: type[TwoParts]) -> None:
    frames = make_frames()
    done = make_features(frames, kind(), finder=DarkFrameFinder()).clean()
    assert np.flatnonzero(done.mended.damaged).tolist() == [20]
    assert done.features.tobytes() == mend_reference(frames, done.mended.damaged, kind).tobytes()
    plain = make_features(frames, kind()).clean()
    assert plain.mended is None
    changed = (plain.features != done.features).any(1)
    assert np.flatnonzero(changed).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("kind", BOTH)
def test_known_damaged_frames_are_not_processed(kind: type[TwoParts]) -> None:
    frames = make_frames()
    video = make_features(frames, kind(), finder=KNOWN)
    spec, placement = [Spec.parse("thumos14-c/overexposure:3")], "frames:31-36"
    assert not video.clean().mended.damaged.any()
    done = video.under(spec, placement)
    damaged = np.isin(np.arange(60), np.arange(31, 36))
    assert np.array_equal(done.mended.damaged, damaged)
    corrupted = jostle.corrupt(Clip.at_rate(frames, FPS), spec[0], placement=placement, video_id="v").frames
    assert done.features.tobytes() == mend_reference(corrupted, damaged, kind).tobytes()
    assert done.cost.seen == 0
    assert done.cost.joined == (0 if kind is WindowsWhole else 5)


def test_precomputed_clean_features_are_not_mended() -> None:
    frames, source = make_frames(), ClipSource(Clip.at_rate(make_frames(), FPS))
    plain = VideoFeatures(source, TwoParts(), video_id="v").clean()
    extractor = TwoParts()
    video = VideoFeatures(source, extractor, video_id="v", clean=plain, finder=DarkFrameFinder())
    done = video.under([Spec.parse("thumos14-c/black_frame:3")], "frames:31-36")
    expected = make_features(frames, TwoParts(), finder=DarkFrameFinder()).under(
        [Spec.parse("thumos14-c/black_frame:3")], "frames:31-36"
    )
    assert done.features.tobytes() == expected.features.tobytes()
    assert extractor.batches == []


def test_reproduced_bugs_and_mending_are_exclusive() -> None:
    with pytest.raises(BadValue, match="rows that mending replaces; leave one of the two out"):
        VideoFeatures(
            ClipSource(Clip.at_rate(make_frames(), FPS)), TwoParts(), reproduce_bugs=("early-row",), finder=KNOWN
        )


masks = st.lists(st.booleans(), min_size=1, max_size=40).map(np.array)


@given(masks.filter(lambda damaged: not damaged.all()), st.integers(0, 2**16))
def test_damaged_rows_are_interpolated_linearly(damaged: np.ndarray, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(len(damaged), 3)).astype(np.float32)
    intact = np.flatnonzero(~damaged)
    interpolated = interpolate_rows(rows, damaged)
    assert interpolated.dtype == np.float32
    assert interpolated[intact].tobytes() == rows[intact].tobytes()
    for column in range(3):
        line = np.interp(np.arange(len(damaged)), intact, rows[intact, column].astype(np.float64))
        assert np.abs(interpolated[:, column] - line).max() < 1e-5


@given(masks)
def test_nearest_undamaged_frame(damaged: np.ndarray) -> None:
    nearest = nearest_undamaged(damaged)
    if damaged.all():
        assert nearest.tolist() == list(range(len(damaged)))
        return
    intact = np.flatnonzero(~damaged)
    for t, index in enumerate(nearest.tolist()):
        assert index == min(intact.tolist(), key=lambda other: (abs(other - t), other))
    assert (np.diff(nearest) >= 0).all()
