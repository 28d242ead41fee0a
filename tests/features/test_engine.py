"""Features updated incrementally equal, bit for bit, those of the whole corrupted video; so does the flow."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jostle
from helpers.flow_extractor import Moving, extract_windows, make_features
from helpers.numpy_extractor import DIM, FRAME_DIM, TwoParts, WindowsWhole, moving
from jostle import Clip
from jostle.core.types import Segments
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue
from jostle.features.caches import CachedFrames, FrameFeatureCache, SlidingFrames
from jostle.features.extraction import Cost, Extraction
from jostle.features.video import VideoFeatures

FPS = 25
ACTIONS = Segments.from_pairs([(0.2, 0.9), (0.8, 0.83), (1.1, 9.0)])
BOTH = [TwoParts, WindowsWhole]
KINDS = [*BOTH, Moving]
FIFTEEN = [
    f"thumos14-c/{name}:{severity}"
    for name in ("black_frame", "motion_blur", "overexposure", "occlusion", "packet_loss")
    for severity in (1, 2, 3)
]


class RecordingSource:
    """Source that records the indices of the requested frames."""

    def __init__(self, frames: np.ndarray) -> None:
        self._clip = ClipSource(Clip.at_rate(frames, FPS))
        self.size, self.pts, self.fps = self._clip.size, self._clip.pts, self._clip.fps
        self.requested: list[int] = []

    def __len__(self) -> int:
        return len(self._clip)

    def block(self, lo: int, hi: int) -> np.ndarray:
        self.requested += range(lo, hi)
        return self._clip.block(lo, hi)


def parse_specs(*specs: str) -> list[Spec]:
    return [Spec.parse(spec) for spec in specs]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 5, 15, 16, 17, 19, 20, 103, 203])
def test_clean_features_equal_the_definition(kind: type[TwoParts], count: int) -> None:
    frames, extractor = moving(count), kind()
    video = make_features(frames, extractor, segments=ACTIONS)
    done = video.clean()
    assert np.array_equal(done.features, extract_windows(frames, kind()))
    assert done.features.dtype == np.float32
    assert (done.seen is None) == (kind is not TwoParts)
    if done.seen is not None:
        assert np.array_equal(done.seen, TwoParts().see(frames))
    if isinstance(extractor, Moving):
        used = (len(video) - 1) * 4 + 16
        assert video.cost.flows == sum(extractor.pairs) == min(used, max(count - 1, 1))  # each pair once


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


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    specs,
    st.none() | placements,
    st.integers(40, 75),
    st.tuples(st.integers(1, 18), st.integers(1, 9), st.sampled_from([None, 5.0, 15.0, 24.0, 40.0])),
    st.sampled_from(KINDS),
    st.sampled_from([None, 0, 2000]),
)
def test_incremental_features_equal_full_features(
    spec_texts: list[str],
    placement: str | None,
    count: int,
    windows: tuple[int, int, float | None],
    kind: type[TwoParts],
    keep_bytes: int | None,
) -> None:
    """Placements count frames of the video, windows count frames at the rate of the extractor."""
    frames, (window, stride, rate) = moving(count, 16, 20), windows
    memory = {} if keep_bytes is None else {"keep_bytes": keep_bytes}
    video = make_features(frames, kind(window, stride, rate), segments=ACTIONS, **memory)
    incremental = video.under(parse_specs(*spec_texts), placement)
    corrupted = jostle.corrupt(frames, spec_texts, video_id="v", placement=placement, segments=ACTIONS, fps=FPS)
    indices = range(count) if rate is None else [i * FPS // int(rate) for i in range(count * int(rate) // FPS)]
    assert np.array_equal(incremental.features, extract_windows(corrupted[list(indices)], kind(window, stride)))
    full = video.whole(parse_specs(*spec_texts), placement)
    assert full.features.tobytes() == incremental.features.tobytes()
    if kind is TwoParts:
        assert full.seen.tobytes() == incremental.seen.tobytes()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["black_frame:3", "gaussian_noise:2", "jumble:3"]),
    placements,
    st.integers(10, 75),
    st.sampled_from(["all", "released", "released-json"]),
    st.sampled_from([("skipped-window",), ("early-row",), ("skipped-window", "early-row")]),
    st.booleans(),
)
def test_reproduced_bugs_are_the_same_in_incremental_features(
    spec: str, placement: str, count: int, rule, faults, two_parts: bool
) -> None:
    """Only the rows that the released program rewrites change, each to the window that it takes for them."""
    placement = placement if count >= 40 else "random:3"
    frames, extractor = moving(count, 16, 20), (TwoParts if two_parts else WindowsWhole)()
    video = make_features(frames, extractor, segments=ACTIONS, rule=rule, reproduce_bugs=faults)
    incremental, full = video.under(parse_specs(spec), placement), video.whole(parse_specs(spec), placement)
    assert incremental.features.tobytes() == full.features.tobytes()
    corrupted = jostle.corrupt(frames, spec, video_id="v", placement=placement, segments=ACTIONS, fps=FPS)
    expected = extract_windows(frames, TwoParts())[: len(video)]
    changed = (corrupted != frames).any((1, 2, 3))
    for window, row in zip(*video.grid.patched(changed), strict=True):
        ends = [min(window * 4 + k, count - 1) for k in range(16)]
        expected[row] = TwoParts()(corrupted[ends][None])[0]
    assert np.array_equal(incremental.features, expected)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("spec_texts", [["h264_crf:4"], ["freeze:2", "h264_crf:2"], ["h264_crf:2", "jumble:3"]])
def test_codecs_give_the_same_incremental_features(kind: type[TwoParts], spec_texts: list[str]) -> None:
    frames = moving(50, 48, 64)
    for placement in (None, "frames:20-26"):
        corrupted = jostle.corrupt(frames, spec_texts, video_id="v", placement=placement, fps=FPS)
        incremental = make_features(frames, kind()).under(parse_specs(*spec_texts), placement)
        assert np.array_equal(incremental.features, extract_windows(corrupted, kind()))


def test_only_corrupted_frames_and_their_windows_are_computed() -> None:
    frames = moving(200)
    source = RecordingSource(frames)
    video = VideoFeatures(source, TwoParts(), video_id="v")
    assert video.clean().cost == Cost(decoded=200, seen=200, joined=47)
    done = video.under(parse_specs("gaussian_noise:3"), "frames:103-105")
    assert done.cost == Cost(decoded=0, seen=2, joined=5)  # windows 22 to 25 see frame 103, 23 to 26 frame 104
    assert len(source.requested) == 200
    assert np.flatnonzero((done.features != video.clean().features).any(1)).tolist() == [22, 23, 24, 25, 26]


class AsyncExtractor(TwoParts):
    """Extractor that computes a result only when it is awaited, as one in another process may."""

    def submit(self, method: str, *inputs: np.ndarray, corruptions: tuple[object, ...] = ()) -> Any:
        assert not corruptions
        return lambda: getattr(self, method or "__call__")(*inputs)


@pytest.mark.parametrize("extractor", [TwoParts(), AsyncExtractor()], ids=["here", "elsewhere"])
def test_black_frames_and_nested_cells_are_computed_once(extractor: TwoParts) -> None:
    video = make_features(moving(300), extractor, segments=Segments.from_pairs([(1.0, 5.0), (6.0, 11.0)]))
    video.clean()
    results = dict(video.sweep({spec: (parse_specs(spec), None) for spec in FIFTEEN}))
    assert list(results) == FIFTEEN
    assert [results[f"thumos14-c/black_frame:{s}"].cost.seen for s in (1, 2, 3)] == [1, 0, 0]
    changed = [np.zeros(300, bool) for _ in range(3)]
    for s in range(3):
        corrupted = jostle.corrupt(
            moving(300), f"thumos14-c/black_frame:{s + 1}", segments=[(1.0, 5.0), (6.0, 11.0)], fps=FPS
        )
        changed[s] = ~corrupted.any((1, 2, 3))
    for name in ("motion_blur", "overexposure", "occlusion"):
        costs = [results[f"thumos14-c/{name}:{s}"].cost for s in (1, 2, 3)]
        assert sum(cost.seen for cost in costs) == changed[2].sum()  # the middle tenth contains the smaller shares
        assert [cost.joined for cost in costs] == [len(video.grid.touched(mask)) for mask in changed]
        assert sum(cost.decoded for cost in costs) == 0


@pytest.mark.parametrize("spec", ["freeze:3", "jumble:2", "frame_rate:4", "thumos14-c/time_lapse:2"])
def test_reordered_frames_are_not_processed_again(spec: str) -> None:
    video = make_features(moving(120), TwoParts())
    video.clean()
    done = video.under(parse_specs(spec))
    assert done.cost.seen == done.cost.decoded == 0
    corrupted = jostle.corrupt(moving(120), spec, video_id="v", fps=FPS)
    assert np.array_equal(done.features, extract_windows(corrupted, TwoParts()))


def test_severity_0_costs_nothing() -> None:
    video = make_features(moving(60), TwoParts())
    clean = video.clean()
    done = video.under(parse_specs("fog:0"))
    assert done.cost == Cost()
    assert done.features.tobytes() == clean.features.tobytes()
    assert done.features is not clean.features


@pytest.mark.parametrize("kind", BOTH)
def test_a_video_too_large_to_keep_is_decoded_in_passes(kind: type[TwoParts]) -> None:
    frames = moving(150)
    source = RecordingSource(frames)
    video = VideoFeatures(source, kind(), video_id="v", keep_bytes=1000)
    video.clean()
    assert set(source.requested) >= set(range(148))  # the windows end there
    source.requested.clear()
    done = video.under(parse_specs("thumos14-c/black_frame:1"), "frames:70-72")
    assert done.cost.decoded == len(source.requested)
    assert set(source.requested) <= set(range(52, 88))
    small = make_features(frames, kind()).under(parse_specs("thumos14-c/black_frame:1"), "frames:70-72")
    assert done.features.tobytes() == small.features.tobytes()


def test_clean_features_of_an_earlier_run_are_reused() -> None:
    frames = moving(90)
    first = make_features(frames, TwoParts()).clean()
    source = RecordingSource(frames)
    later = VideoFeatures(source, TwoParts(), video_id="v", clean=Extraction(first.features, first.seen))
    done = later.under(parse_specs("overexposure:3"), "frames:40-43")
    assert set(source.requested) == {40, 41, 42}
    assert np.array_equal(
        done.features, make_features(frames, TwoParts()).whole(parse_specs("overexposure:3"), "frames:40-43").features
    )
    with pytest.raises(BadValue, match="extract them with keep_frames"):
        make_features(frames, TwoParts(), clean=Extraction(first.features))
    with pytest.raises(BadValue, match=rf"must be \(19, {DIM}\) float32 for this video, not \(18, {DIM}\) float32"):
        make_features(frames, TwoParts(), clean=Extraction(first.features[1:], first.seen))
    with pytest.raises(BadValue, match=rf"must be \(90, {FRAME_DIM}\)"):
        make_features(frames, TwoParts(), clean=Extraction(first.features, first.seen[:4]))


@pytest.mark.parametrize("kind", BOTH)
def test_an_extractor_with_its_own_frame_rate(kind: type[TwoParts]) -> None:
    """A rate of 12.5 takes every second of 25 frames; a corrupted frame in between changes nothing."""
    frames = moving(100)
    video = make_features(frames, kind(8, 2, 12.5))
    assert video.fps == 12.5
    assert np.array_equal(video.clean().features, extract_windows(frames[::2], kind(8, 2)))
    assert video.under(parse_specs("black_frame:3"), "frame:31").cost.joined == 0
    result = video.under(parse_specs("black_frame:3"), "frame:30")
    corrupted = frames[::2].copy()
    corrupted[15] = 0
    assert np.array_equal(result.features, extract_windows(corrupted, kind(8, 2)))


def test_an_empty_video_is_refused() -> None:
    with pytest.raises(BadValue, match="a video without frames has no features"):
        make_features(moving(1)[:0], TwoParts())


def test_actions_shorter_than_a_frame_are_corrupted() -> None:
    video = make_features(moving(60), TwoParts(), segments=Segments.from_pairs([(1.0, 1.001), (0.5, 0.50001)]))
    done = video.under(parse_specs("thumos14-c/black_frame:1"))
    corrupted = jostle.corrupt(
        moving(60), "thumos14-c/black_frame:1", video_id="v", segments=[(1.0, 1.001), (0.5, 0.50001)], fps=FPS
    )
    assert 0 < (~corrupted.any((1, 2, 3))).sum() <= 4
    assert np.array_equal(done.features, extract_windows(corrupted, TwoParts()))


def test_cached_frames_are_read_only_and_requested_once() -> None:
    source = RecordingSource(moving(30))
    cache = CachedFrames(source)
    cache.block(5, 10)
    block = cache.block(3, 12)
    assert source.requested == [5, 6, 7, 8, 9, 3, 4, 10, 11]
    assert np.array_equal(block, moving(30)[3:12])
    with pytest.raises(ValueError, match="read-only"):
        block[:] = 0
    assert cache.fps == Fraction(FPS)


def test_sliding_frames_request_no_frame_twice() -> None:
    source = RecordingSource(moving(60))
    frames = SlidingFrames(source)
    for first in range(0, 40, 4):
        rows = first + np.arange(16).reshape(2, 8)
        assert np.array_equal(frames.take(rows), moving(60)[rows])
    assert source.requested == list(range(52))


def test_the_frame_cache_evicts_the_least_recently_used() -> None:
    cache = FrameFeatureCache(budget=3 * 8)
    frames = moving(4)
    keys = [cache.key(frame) for frame in frames]
    assert len(set(keys)) == 4
    assert cache.key(frames[0].reshape(32, 24, 3)) != keys[0]
    for key in keys[:3]:
        cache.put(key, np.zeros(2, np.float32))
    assert cache.get(keys[0]) is not None
    cache.put(keys[3], np.ones(2, np.float32))
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True]


def test_flow_is_computed_where_a_pair_changed() -> None:
    video = make_features(moving(80), Moving())
    video.clean()
    assert video.under(parse_specs("black_frame:3"), "frame:40").cost == Cost(joined=5, flows=2)
    under = video.under(parse_specs("black_frame:3"), "frame:40")
    rows = np.flatnonzero((under.features != video.clean().features).any(1))
    assert rows.tolist() == [6, 7, 8, 9, 10]  # the window from 24 to 39 includes the flow to frame 40
    assert video.under(parse_specs("jumble:3"), "frames:40-43").cost.flows < 5
    assert video.under(parse_specs("brightness:0"), "everywhere").cost == Cost()


def test_flow_is_recomputed_without_memory_to_keep_it() -> None:
    video = make_features(moving(80), Moving(), keep_bytes=0)
    assert video.clean().cost.flows == 79
    assert video.under(parse_specs("black_frame:3"), "frame:40").cost.flows == 16 + 4 * 4


def test_flow_of_a_resampled_video() -> None:
    frames = moving(60)
    video = make_features(frames, Moving(8, 4, fps=12.5))
    assert np.array_equal(video.clean().features, extract_windows(frames[::2], Moving(8, 4)))
    result = video.under(parse_specs("black_frame:1"), "frame:21")  # skipped at this rate
    assert result.cost == Cost()
