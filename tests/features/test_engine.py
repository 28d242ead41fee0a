"""Features computed where something changed are, to the bit, those of the whole corrupted video."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jostle
from helpers.numpy_extractor import DIM, FRAME_DIM, TwoParts, WindowsWhole, moving
from jostle import Clip
from jostle.core.types import Segments
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource
from jostle.errors import BadValue
from jostle.features.caches import CachedFrames, FrameFeatureCache, SlidingFrames
from jostle.features.engine import VideoFeatures
from jostle.features.extraction import Cost, Extraction

FPS = 25
BOTH = [TwoParts, WindowsWhole]
FIFTEEN = [
    f"thumos14-c/{name}:{severity}"
    for name in ("black_frame", "motion_blur", "overexposure", "occlusion", "packet_loss")
    for severity in (1, 2, 3)
]


class Counted:
    """A source that knows which of its frames were asked for."""

    def __init__(self, frames: np.ndarray) -> None:
        self._clip = ClipSource(Clip.at_rate(frames, FPS))
        self.size, self.pts, self.fps = self._clip.size, self._clip.pts, self._clip.fps
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self._clip)

    def block(self, lo: int, hi: int) -> np.ndarray:
        self.asked += range(lo, hi)
        return self._clip.block(lo, hi)


def parsed(*specs: str) -> list[Spec]:
    return [Spec.parse(spec) for spec in specs]


def by_definition(frames: np.ndarray, extractor: TwoParts) -> np.ndarray:
    """Every window cut out of the frames by itself."""
    n, window, stride = len(frames), extractor.window, extractor.stride
    count = max((n - window) // stride + 1, 1)
    rows = [[min(i * stride + k, n - 1) for k in range(window)] for i in range(count)]
    return extractor(np.stack([frames[row] for row in rows]))


def made(frames: np.ndarray, extractor: TwoParts, **facts) -> VideoFeatures:
    return VideoFeatures(ClipSource(Clip.at_rate(frames, FPS)), extractor, video_id="v", **facts)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("count", [1, 5, 15, 16, 19, 20, 203])
def test_clean_features_are_those_of_the_definition(kind: type[TwoParts], count: int) -> None:
    frames = moving(count)
    done = made(frames, kind()).clean()
    assert np.array_equal(done.features, by_definition(frames, kind()))
    assert done.features.dtype == np.float32
    assert (done.seen is None) == (kind is WindowsWhole)
    if done.seen is not None:
        assert np.array_equal(done.seen, TwoParts().see(frames))


placements = st.one_of(
    st.just("everywhere"),
    st.integers(0, 39).map(lambda t: f"frame:{t}"),
    st.tuples(st.integers(0, 20), st.integers(1, 20)).map(lambda p: f"frames:{p[0]}-{p[0] + p[1]}"),
    st.integers(1, 12).map(lambda n: f"random:{n}"),
    st.sampled_from(["centre:1%", "centre:5%", "centre:10%", "at:30%x5", "background:3"]),
)
specs = st.lists(
    st.sampled_from(
        [
            *FIFTEEN,
            "gaussian_noise:3",
            "frame_average:2",
            "brightness:0",
            "freeze:4",
            "jumble:2",
            "frame_rate:3",
            "reverse_sampling:1",
            "thumos14-c/slow_motion:3",
            "thumos14-c/mix_temporal:3",
            "jpeg_compression:2",
        ]
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(specs, st.none() | placements, st.integers(40, 75), st.integers(2, 18), st.integers(1, 9), st.booleans())
def test_incremental_equals_whole(
    chosen: list[str], placement: str | None, count: int, window: int, stride: int, two_parts: bool
) -> None:
    frames = moving(count, 16, 20)
    segments = Segments.from_pairs([(0.2, 0.9), (0.8, 0.83), (1.1, 9.0)])
    extractor = (TwoParts if two_parts else WindowsWhole)(window, stride)
    video = made(frames, extractor, segments=segments)
    piecewise = video.under(parsed(*chosen), placement)
    corrupted = jostle.corrupt(frames, chosen, video_id="v", placement=placement, segments=segments, fps=FPS)
    assert np.array_equal(piecewise.features, by_definition(corrupted, extractor))
    whole = video.whole(parsed(*chosen), placement)
    assert whole.features.tobytes() == piecewise.features.tobytes()
    if two_parts:
        assert whole.seen.tobytes() == piecewise.seen.tobytes()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["black_frame:3", "gaussian_noise:2", "jumble:3"]),
    placements,
    st.integers(10, 75),
    st.sampled_from(["all", "released", "released-json"]),
    st.sampled_from([("skipped-window",), ("early-row",), ("skipped-window", "early-row")]),
    st.booleans(),
)
def test_reproduce_bugs_are_the_same_in_pieces(
    spec: str, placement: str, count: int, rule, faults, two_parts: bool
) -> None:
    """Rows are clean but for those that the released program rewrites, each with the window it takes for them."""
    placement = placement if count >= 40 else "random:3"
    frames, extractor = moving(count, 16, 20), (TwoParts if two_parts else WindowsWhole)()
    segments = Segments.from_pairs([(0.2, 0.9), (0.8, 0.83), (1.1, 9.0)])
    video = made(frames, extractor, segments=segments, rule=rule, reproduce_bugs=faults)
    part, whole = video.under(parsed(spec), placement), video.whole(parsed(spec), placement)
    assert part.features.tobytes() == whole.features.tobytes()
    corrupted = jostle.corrupt(frames, spec, video_id="v", placement=placement, segments=segments, fps=FPS)
    expected = by_definition(frames, TwoParts())[: len(video)]
    struck = (corrupted != frames).any((1, 2, 3))
    for window, row in zip(*video.grid.patched(struck), strict=True):
        ends = [min(window * 4 + k, count - 1) for k in range(16)]
        expected[row] = TwoParts()(corrupted[ends][None])[0]
    assert np.array_equal(part.features, expected)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("chosen", [["h264_crf:4"], ["freeze:2", "h264_crf:2"], ["h264_crf:2", "jumble:3"]])
def test_codecs_too(kind: type[TwoParts], chosen: list[str]) -> None:
    frames = moving(50, 48, 64)
    for placement in (None, "frames:20-26"):
        corrupted = jostle.corrupt(frames, chosen, video_id="v", placement=placement, fps=FPS)
        found = made(frames, kind()).under(parsed(*chosen), placement)
        assert np.array_equal(found.features, by_definition(corrupted, kind()))


def test_only_struck_frames_and_their_windows_are_computed() -> None:
    frames = moving(200)
    source = Counted(frames)
    video = VideoFeatures(source, TwoParts(), video_id="v")
    assert video.clean().cost == Cost(decoded=200, seen=200, joined=47)
    done = video.under(parsed("gaussian_noise:3"), "frames:103-105")
    assert done.cost == Cost(decoded=0, seen=2, joined=5)  # windows 22 to 25 see frame 103, 23 to 26 frame 104
    assert len(source.asked) == 200
    assert np.flatnonzero((done.features != video.clean().features).any(1)).tolist() == [22, 23, 24, 25, 26]


class Submitting(TwoParts):
    """Answers only when it is waited for, as one in another process may."""

    def submit(self, method: str, *shown: np.ndarray, corruptions: tuple[object, ...] = ()) -> Any:
        assert not corruptions
        return lambda: getattr(self, method or "__call__")(*shown)


@pytest.mark.parametrize("extractor", [TwoParts(), Submitting()], ids=["here", "elsewhere"])
def test_black_frames_are_seen_once_and_nested_cells_pay_once(extractor: TwoParts) -> None:
    video = made(moving(300), extractor, segments=Segments.from_pairs([(1.0, 5.0), (6.0, 11.0)]))
    video.clean()
    done = dict(video.sweep({spec: (parsed(spec), None) for spec in FIFTEEN}))
    assert list(done) == FIFTEEN
    assert [done[f"thumos14-c/black_frame:{s}"].cost.seen for s in (1, 2, 3)] == [1, 0, 0]
    struck = [np.zeros(300, bool) for _ in range(3)]
    for s in range(3):
        corrupted = jostle.corrupt(
            moving(300), f"thumos14-c/black_frame:{s + 1}", segments=[(1.0, 5.0), (6.0, 11.0)], fps=FPS
        )
        struck[s] = ~corrupted.any((1, 2, 3))
    for name in ("motion_blur", "overexposure", "occlusion"):
        costs = [done[f"thumos14-c/{name}:{s}"].cost for s in (1, 2, 3)]
        assert sum(cost.seen for cost in costs) == struck[2].sum()  # the middle tenth holds the rest
        assert [cost.joined for cost in costs] == [len(video.grid.touched(mask)) for mask in struck]
        assert sum(cost.decoded for cost in costs) == 0


@pytest.mark.parametrize("spec", ["freeze:3", "jumble:2", "frame_rate:4", "thumos14-c/time_lapse:2"])
def test_another_order_needs_no_look_at_any_frame(spec: str) -> None:
    video = made(moving(120), TwoParts())
    video.clean()
    done = video.under(parsed(spec))
    assert done.cost.seen == done.cost.decoded == 0
    corrupted = jostle.corrupt(moving(120), spec, video_id="v", fps=FPS)
    assert np.array_equal(done.features, by_definition(corrupted, TwoParts()))


def test_severity_0_costs_nothing() -> None:
    video = made(moving(60), TwoParts())
    clean = video.clean()
    done = video.under(parsed("fog:0"))
    assert done.cost == Cost()
    assert done.features.tobytes() == clean.features.tobytes()
    assert done.features is not clean.features


@pytest.mark.parametrize("kind", BOTH)
def test_a_video_too_large_to_keep_is_decoded_in_passes(kind: type[TwoParts]) -> None:
    frames = moving(150)
    source = Counted(frames)
    video = VideoFeatures(source, kind(), video_id="v", keep_bytes=1000)
    video.clean()
    assert set(source.asked) >= set(range(148))  # the windows end there
    source.asked.clear()
    done = video.under(parsed("thumos14-c/black_frame:1"), "frames:70-72")
    assert done.cost.decoded == len(source.asked)
    assert set(source.asked) <= set(range(52, 88))
    small = made(frames, kind()).under(parsed("thumos14-c/black_frame:1"), "frames:70-72")
    assert done.features.tobytes() == small.features.tobytes()


def test_clean_features_of_an_earlier_run_are_taken_up() -> None:
    frames = moving(90)
    first = made(frames, TwoParts()).clean()
    source = Counted(frames)
    later = VideoFeatures(source, TwoParts(), video_id="v", clean=Extraction(first.features, first.seen))
    done = later.under(parsed("overexposure:3"), "frames:40-43")
    assert set(source.asked) == {40, 41, 42}
    assert np.array_equal(
        done.features, made(frames, TwoParts()).whole(parsed("overexposure:3"), "frames:40-43").features
    )
    with pytest.raises(BadValue, match="extract them with keep_frames"):
        made(frames, TwoParts(), clean=Extraction(first.features))
    with pytest.raises(BadValue, match=rf"must be \(19, {DIM}\) float32 for this video, not \(18, {DIM}\) float32"):
        made(frames, TwoParts(), clean=Extraction(first.features[1:], first.seen))
    with pytest.raises(BadValue, match=rf"must be \(90, {FRAME_DIM}\)"):
        made(frames, TwoParts(), clean=Extraction(first.features, first.seen[:4]))


@pytest.mark.parametrize("kind", BOTH)
def test_an_extractor_with_a_rate_of_its_own(kind: type[TwoParts]) -> None:
    """At 25 frames a second, 12.5 shows every second one; a struck frame that is not shown changes nothing."""
    frames = moving(100)
    video = made(frames, kind(8, 2, 12.5))
    assert video.fps == 12.5
    assert np.array_equal(video.clean().features, by_definition(frames[::2], kind(8, 2)))
    assert video.under(parsed("black_frame:3"), "frame:31").cost.joined == 0
    hit = video.under(parsed("black_frame:3"), "frame:30")
    struck = frames[::2].copy()
    struck[15] = 0
    assert np.array_equal(hit.features, by_definition(struck, kind(8, 2)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(specs, st.none() | placements, st.integers(40, 75), st.sampled_from([5.0, 15.0, 24.0, 40.0]), st.booleans())
def test_at_another_rate_incremental_equals_whole(
    chosen: list[str], placement: str | None, count: int, rate: float, two_parts: bool
) -> None:
    """Placements count the frames of the video, windows those that are shown at the extractor's rate."""
    frames = moving(count, 16, 20)
    extractor = (TwoParts if two_parts else WindowsWhole)(6, 4, rate)
    segments = Segments.from_pairs([(0.2, 0.9), (0.8, 0.83), (1.1, 9.0)])
    video = made(frames, extractor, segments=segments)
    part, whole = video.under(parsed(*chosen), placement), video.whole(parsed(*chosen), placement)
    assert part.features.tobytes() == whole.features.tobytes()
    corrupted = jostle.corrupt(frames, chosen, video_id="v", placement=placement, segments=segments, fps=FPS)
    shown = [i * FPS // int(rate) for i in range(count * int(rate) // FPS)]
    assert np.array_equal(part.features, by_definition(corrupted[shown], TwoParts(6, 4)))


def test_nothing_to_see_is_refused() -> None:
    with pytest.raises(BadValue, match="a video without frames has no features"):
        made(moving(1)[:0], TwoParts())


def test_actions_shorter_than_a_frame_are_struck() -> None:
    video = made(moving(60), TwoParts(), segments=Segments.from_pairs([(1.0, 1.001), (0.5, 0.50001)]))
    done = video.under(parsed("thumos14-c/black_frame:1"))
    shown = jostle.corrupt(
        moving(60), "thumos14-c/black_frame:1", video_id="v", segments=[(1.0, 1.001), (0.5, 0.50001)], fps=FPS
    )
    assert 0 < (~shown.any((1, 2, 3))).sum() <= 4
    assert np.array_equal(done.features, by_definition(shown, TwoParts()))


def test_kept_frames_are_read_only_and_asked_for_once() -> None:
    source = Counted(moving(30))
    kept = CachedFrames(source)
    kept.block(5, 10)
    block = kept.block(3, 12)
    assert source.asked == [5, 6, 7, 8, 9, 3, 4, 10, 11]
    assert np.array_equal(block, moving(30)[3:12])
    with pytest.raises(ValueError, match="read-only"):
        block[:] = 0
    assert kept.fps == Fraction(FPS)


def test_a_belt_asks_for_no_frame_twice() -> None:
    source = Counted(moving(60))
    belt = SlidingFrames(source)
    for first in range(0, 40, 4):
        rows = first + np.arange(16).reshape(2, 8)
        assert np.array_equal(belt.take(rows), moving(60)[rows])
    assert source.asked == list(range(52))


def test_recall_forgets_the_longest_unused() -> None:
    recall = FrameFeatureCache(budget=3 * 8)
    frames = moving(4)
    keys = [recall.key(frame) for frame in frames]
    assert len(set(keys)) == 4
    assert recall.key(frames[0].reshape(32, 24, 3)) != keys[0]
    for key in keys[:3]:
        recall.put(key, np.zeros(2, np.float32))
    assert recall.get(keys[0]) is not None
    recall.put(keys[3], np.ones(2, np.float32))
    assert [recall.get(key) is not None for key in keys] == [True, False, True, True]
