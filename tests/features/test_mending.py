"""Features of mended video: what struck frames touch lies between what is sound, to the bit as if done by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import jostle
from helpers.flow_extractor import Moving
from helpers.numpy_extractor import TwoParts, WindowsWhole, moving
from jostle import Clip
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, PipelineSource
from jostle.errors import BadValue
from jostle.features.engine import VideoFeatures
from jostle.features.interpolation import interpolate_rows
from jostle.mending.damage_finders import Mending

FPS = 25
BOTH = [TwoParts, WindowsWhole]
KNOWN = Mending()


@dataclass(frozen=True)
class TooDark:
    """Takes dark frames for struck ones, by their pixels alone; also some that nobody struck."""

    below: float = 60.0
    name = "too_dark"
    fingerprint = "x"

    def finder_for(self, clean: PipelineSource) -> TooDark:
        return self

    def find_damaged(self, top: PipelineSource, came_from: np.ndarray) -> np.ndarray:
        return np.array([top.block(t, t + 1).mean() < self.below for t in range(len(top))])


def film(count: int = 60) -> np.ndarray:
    frames = moving(count)
    frames[20] //= 4  # dark by itself
    return frames


def made(frames: np.ndarray, extractor: TwoParts, finder: object) -> VideoFeatures:
    return VideoFeatures(ClipSource(Clip.at_rate(frames, FPS)), extractor, video_id="v", finder=finder)


def by_hand(frames: np.ndarray, struck: np.ndarray, kind: type[TwoParts]) -> np.ndarray:
    """Every frame or window looked at, then those that are lost replaced."""
    extractor = kind()
    rows = np.arange((len(frames) - 16) // 4 + 1)[:, None] * 4 + np.arange(16)
    if kind is TwoParts:
        seen = extractor.see(frames)
        return extractor.join((seen if struck.all() else interpolate_rows(seen, struck))[rows])
    lost = struck[rows].any(1)
    features = extractor(frames[rows])
    return features if lost.all() else interpolate_rows(features, lost)


SPECS = {
    "black": ("thumos14-c/black_frame:3", "frames:31-36"),
    "late": ("thumos14-c/black_frame:3", "frames:55-60"),
    "missed": ("thumos14-c/overexposure:3", "frames:31-36"),
    "order": ("ucf101-p/reverse_sampling:3", None),
    "spread": ("thumos14-c/black_frame:3", "random:9"),
    "all": ("thumos14-c/black_frame:3", "everywhere"),
}


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("state", sorted(SPECS))
def test_a_mended_state_is_what_it_is_by_hand(kind: type[TwoParts], state: str) -> None:
    frames, (spec, placement) = film(), SPECS[state]
    corrupted = jostle.corrupt(Clip.at_rate(frames, FPS), spec, placement=placement, video_id="v").frames
    dark = corrupted.mean((1, 2, 3)) < 60
    wanted = by_hand(corrupted, dark, kind)
    video = made(frames, kind(), TooDark())
    done = video.under([Spec.parse(spec)], placement)
    assert done.mended is not None
    assert np.array_equal(done.mended.damaged, dark)
    assert done.features.tobytes() == wanted.tobytes()
    assert video.whole([Spec.parse(spec)], placement).features.tobytes() == wanted.tobytes()
    assert made(corrupted, kind(), TooDark()).clean().features.tobytes() == wanted.tobytes()
    assert done.mended.left == (state == "all" or (kind is WindowsWhole and state == "spread"))


@pytest.mark.parametrize("kind", BOTH)
def test_the_clean_video_is_mended_too(kind: type[TwoParts]) -> None:
    frames = film()
    done = made(frames, kind(), TooDark()).clean()
    assert done.mended is not None
    assert np.flatnonzero(done.mended.damaged).tolist() == [20]
    assert done.features.tobytes() == by_hand(frames, done.mended.damaged, kind).tobytes()
    plain = VideoFeatures(ClipSource(Clip.at_rate(frames, FPS)), kind(), video_id="v").clean()
    assert plain.mended is None
    touched = (plain.features != done.features).any(1)
    assert np.flatnonzero(touched).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("kind", BOTH)
def test_known_frames_are_those_that_were_struck_and_are_not_looked_at(kind: type[TwoParts]) -> None:
    frames = film()
    video = made(frames, kind(), KNOWN)
    spec, placement = [Spec.parse("thumos14-c/overexposure:3")], "frames:31-36"
    assert not video.clean().mended.damaged.any()
    done = video.under(spec, placement)
    struck = np.isin(np.arange(60), np.arange(31, 36))
    assert np.array_equal(done.mended.damaged, struck)
    corrupted = jostle.corrupt(Clip.at_rate(frames, FPS), spec[0], placement=placement, video_id="v").frames
    assert done.features.tobytes() == by_hand(corrupted, struck, kind).tobytes()
    assert done.cost.seen == 0
    assert done.cost.joined == (0 if kind is WindowsWhole else 5)


def test_clean_features_from_elsewhere_are_those_of_the_video_as_it_is() -> None:
    frames, source = film(), ClipSource(Clip.at_rate(film(), FPS))
    plain = VideoFeatures(source, TwoParts(), video_id="v").clean()
    extractor = TwoParts()
    video = VideoFeatures(source, extractor, video_id="v", clean=plain, finder=TooDark())
    done = video.under([Spec.parse("thumos14-c/black_frame:3")], "frames:31-36")
    again = made(frames, TwoParts(), TooDark()).under([Spec.parse("thumos14-c/black_frame:3")], "frames:31-36")
    assert done.features.tobytes() == again.features.tobytes()
    assert extractor.looked == []


def test_reproduce_bugs_and_mending_do_not_go_together() -> None:
    with pytest.raises(BadValue, match="rows that mending replaces; leave one of the two out"):
        VideoFeatures(ClipSource(Clip.at_rate(film(), FPS)), TwoParts(), reproduce_bugs=("early-row",), finder=KNOWN)


@pytest.mark.parametrize("state", sorted(SPECS))
def test_what_moves_to_or_from_a_struck_frame_is_lost_with_it(state: str) -> None:
    frames, (spec, placement) = film(), SPECS[state]
    corrupted = jostle.corrupt(Clip.at_rate(frames, FPS), spec, placement=placement, video_id="v").frames
    video = made(frames, Moving(), TooDark())
    done = video.under([Spec.parse(spec)], placement)
    alone = made(corrupted, Moving(), TooDark()).clean()
    assert done.features.tobytes() == alone.features.tobytes()
    assert video.whole([Spec.parse(spec)], placement).features.tobytes() == alone.features.tobytes()
    plain = VideoFeatures(ClipSource(Clip.at_rate(corrupted, FPS)), Moving(), video_id="v").clean()
    rows = np.arange(len(plain.features))[:, None] * 4 + np.arange(17)  # the way to the frame after is seen too
    lost = np.append(done.mended.damaged, False)[np.minimum(rows, 60)].any(1)
    wanted = plain.features if lost.all() else interpolate_rows(plain.features, lost)
    assert done.features.tobytes() == wanted.tobytes()
