"""Chains, placements and random keys of corruptions, tested through the public functions."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle import Clip
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.placement import Timeline, parse_placement
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain
from jostle.errors import BadValue


def test_several_apply_in_order(clip: Clip) -> None:
    both = jostle.corrupt(clip, ["brightness:2", "contrast:3"])
    one_by_one = jostle.corrupt(jostle.corrupt(clip, "brightness:2"), "contrast:3")
    assert np.array_equal(both.frames, one_by_one.frames)


def test_the_same_noise_twice_draws_twice(clip: Clip) -> None:
    twice = jostle.corrupt(clip, ["impulse_noise:3", "impulse_noise:3"]).frames
    once = jostle.corrupt(clip, "impulse_noise:3").frames
    changed_once = (once != clip.frames).mean()
    changed_twice = (twice != clip.frames).mean()
    assert changed_twice > 1.5 * changed_once


def test_noise_depends_on_seed_video_and_frame(clip: Clip) -> None:
    base = jostle.corrupt(clip, "gaussian_noise:2", seed=0, video_id="a").frames
    assert not np.array_equal(base, jostle.corrupt(clip, "gaussian_noise:2", seed=1, video_id="a").frames)
    assert not np.array_equal(base, jostle.corrupt(clip, "gaussian_noise:2", seed=0, video_id="b").frames)
    assert not np.array_equal(base[0] - clip.frames[0], base[1] - clip.frames[1])


def test_a_higher_severity_affects_the_same_pixels(clip: Clip) -> None:
    weak = jostle.corrupt(clip, "impulse_noise:1").frames != clip.frames
    strong = jostle.corrupt(clip, "impulse_noise:4").frames != clip.frames
    assert (weak & strong).sum() > 0.99 * weak.sum()


def test_an_array_gives_an_array(clip: Clip) -> None:
    out = jostle.corrupt(np.array(clip.frames), "fog:2", fps=24.0)
    assert isinstance(out, np.ndarray)
    assert np.array_equal(out, jostle.corrupt(clip, "fog:2").frames)


def test_frames_are_numbered_within_the_given_clip(clip: Clip) -> None:
    """Frames are numbered within the given clip; a slice is another clip with its own timestamps."""
    expected = jostle.corrupt(clip, "gaussian_noise:2").frames[:6]
    assert np.array_equal(jostle.corrupt(clip[:6], "gaussian_noise:2").frames, expected)


def test_share_profiles_corrupt_the_centre_of_each_action() -> None:
    frames = np.full((500, 32, 32, 3), 90, np.uint8)
    out = jostle.corrupt(frames, "thumos14-c/black_frame:2", segments=[(10.8, 13.4)], fps=30.0)
    assert np.flatnonzero(~out.any((1, 2, 3))).tolist() == [361, 362, 363, 364, 365]


def test_an_explicit_placement_takes_precedence() -> None:
    frames = np.full((20, 32, 32, 3), 90, np.uint8)
    out = jostle.corrupt(frames, "thumos14-c/black_frame:1", placement="frames:3-6")
    assert np.flatnonzero(~out.any((1, 2, 3))).tolist() == [3, 4, 5]
    assert not jostle.corrupt(frames, "black_frame:1", placement="everywhere").any()


def test_time_level_corruptions_stay_inside_their_placement(long_clip: Clip) -> None:
    out = jostle.corrupt(long_clip, "reverse_sampling:1", placement="frames:10-20").frames
    indices = [int(np.flatnonzero((long_clip.frames == frame).all((1, 2, 3)))[0]) for frame in out[10:20]]
    assert indices == [18, 18, 16, 16, 14, 14, 12, 12, 10, 10]


def test_an_empty_clip_stays_empty() -> None:
    empty = np.zeros((0, 32, 32, 3), np.uint8)
    for spec in ("fog:3", "jumble:3", "kinetics-c/motion_blur:2"):
        assert jostle.corrupt(empty, spec).shape == empty.shape


def test_only_frame_level_works_on_single_frames(clip: Clip) -> None:
    with pytest.raises(BadValue, match="jumble:3 works on the time, not on single frames"):
        jostle.corrupt_frame(clip.frames[0], "jumble:3", index=0)
    with pytest.raises(BadValue, match="index counts frames from 0"):
        jostle.corrupt_frame(clip.frames[0], "fog:3", index=-1)
    assert np.array_equal(jostle.corrupt_frame(clip.frames[0], "jumble:0", index=0), clip.frames[0])


def test_bad_frames_are_refused() -> None:
    with pytest.raises(BadValue, match="must be uint8"):
        jostle.corrupt(np.zeros((2, 8, 8, 3), np.float32), "fog:3")  # type: ignore[type-var]


def test_placement_objects_are_accepted(clip: Clip) -> None:
    by_name = jostle.corrupt(clip, "fog:3", placement="centre:20%")
    by_object = jostle.corrupt(clip, "fog:3", placement=parse_placement("centre:20%"))
    assert np.array_equal(by_name.frames, by_object.frames)
    assert parse_placement("centre:20%").mask(Timeline(24, None)).sum() == 5


def test_mixes_apply_two_corruptions(long_clip: Clip) -> None:
    out = jostle.corrupt(long_clip, "mix_temporal:3", placement="frames:20-40").frames
    change = np.abs(out.astype(int) - long_clip.frames).mean((1, 2, 3))
    assert (change[20:40] > 0).all()
    assert not change[:20].any()
    assert not change[40:].any()


@pytest.mark.parametrize("name", [name for name in corruptions if not corruptions[name].draws])
@pytest.mark.parametrize("placement", [None, "everywhere", "frames:3-11"])
def test_corrupt_and_chain_give_the_same_order(name: str, placement: str | None) -> None:
    for count, fps in ((16, 30.0), (9, 30.0), (16, 12.5)):
        clip = Clip.at_rate(np.arange(count * 12, dtype=np.uint8).reshape(count, 2, 2, 3), fps)
        for severity in (2, 5):
            specs = [Spec.parse(f"{name}:{severity}")]
            if placement == "frames:3-11" and count < 11:
                continue
            masks = masks_for(specs, placement, Timeline.of(clip.pts, clip.fps, None))
            expected = chain(ClipSource(clip), specs, masks, seed=0, video_id="").block(0, count)
            assert np.array_equal(jostle.corrupt(clip, specs, placement=placement).frames, expected)
            thinned = Clip(clip.frames[::2], clip.pts[::2], clip.fps)  # times that do not match its rate
            masks = masks_for(specs, None, Timeline.of(thinned.pts, thinned.fps, None))
            expected = chain(ClipSource(thinned), specs, masks, seed=0, video_id="").block(0, len(thinned))
            assert np.array_equal(jostle.corrupt(thinned, specs).frames, expected)
