"""The inspector: the same answers however frames come, a memory that does not grow, glances that are always alike."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from jostle.core.types.clip import Frames
from jostle.errors import CheckpointError
from jostle.mending.descriptor import describe_frame, describe_frames, stream_descriptors
from jostle.mending.descriptor_layout import CELLS, CHANNELS, DETAIL, LIGHT
from jostle.mending.inspector import AT_ONCE, SIDES, Inspector, InspectorNetworks, build_inspector, reflect

THRESHOLDS = {"both": 0.5, "causal": 0.6}


@pytest.fixture(scope="module")
def networks() -> InspectorNetworks:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return InspectorNetworks().eval()


def film(frames: int, size: tuple[int, int] = (36, 50)) -> Frames:
    """A texture that moves, whose light changes."""
    rng = np.random.default_rng(frames)
    ground = rng.integers(0, 256, (*size, 3), np.uint8)
    return np.stack([np.roll(ground, t, axis=1) // (1 + t % 3) for t in range(frames)])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("count", [1, 7, 64, 150, 290])
def test_a_stream_is_told_what_the_whole_video_is(networks: InspectorNetworks, count: int, causal: bool) -> None:
    frames = film(count)
    inspector = Inspector(networks, THRESHOLDS, name="x")
    told = np.array(list(inspector.inspect(iter(frames), causal=causal)))
    assert len(told) == count
    with torch.inference_mode():
        whole = networks[SIDES[causal]](torch.from_numpy(describe_frames(frames))[None]).sigmoid()[0].numpy()
    assert np.abs(told - whole).max() < 1e-5
    assert np.ptp(told) > 0 or count == 1


@pytest.mark.parametrize("count", [0, 5, 130])
def test_threads_that_glance_change_nothing(networks: InspectorNetworks, count: int) -> None:
    inspector = Inspector(networks, THRESHOLDS, name="x")
    frames = film(count) if count else np.zeros((0, 36, 50, 3), np.uint8)
    told = list(inspector.inspect(frames))
    assert list(inspector.inspect(iter(frames), jobs=3)) == told
    assert list(inspector.inspect(frames, jobs=3)) == told  # of an array they take more at once
    assert len(told) == count


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("causal", [False, True])
def test_a_gpu_says_the_same_however_many_frames_it_is_shown_at_once(
    networks: InspectorNetworks, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # all digits, so that little may differ
    frames = film(1300)
    frames[400:407] = 255
    inspector = Inspector(copy.deepcopy(networks), THRESHOLDS, name="x")
    told = np.array(list(inspector.inspect(frames, causal=causal)))
    for asked in ({}, {"at_once": 512, "jobs": 4}):
        on_gpu = np.array(list(inspector.to("cuda").inspect(frames, causal=causal, **asked)))
        assert np.abs(on_gpu - told).max() < 1e-4


def test_of_no_frames_nothing_is_told(networks: InspectorNetworks) -> None:
    assert list(Inspector(networks, THRESHOLDS, name="x").inspect([])) == []


def test_live_answers_come_with_their_frame_and_are_those_of_the_file(networks: InspectorNetworks) -> None:
    frames = film(90)
    inspector = Inspector(networks, THRESHOLDS, name="x")
    shown = 0

    def camera() -> Iterator[np.ndarray]:
        nonlocal shown
        for frame in frames:
            shown += 1
            yield frame

    told = []
    for probability in inspector.inspect(camera(), causal=True, at_once=1):
        told.append(probability)
        assert shown == len(told)
    assert inspector.latency(causal=True, at_once=1) == 0
    assert np.allclose(told, list(inspector.inspect(frames, causal=True)), atol=1e-5)


def test_answers_come_within_the_latency_that_is_stated(networks: InspectorNetworks) -> None:
    shown = 0

    def camera() -> Iterator[np.ndarray]:
        nonlocal shown
        for frame in film(420):
            shown += 1
            yield frame

    inspector = Inspector(networks, THRESHOLDS, name="x")
    late = [shown - 1 - number for number, _ in enumerate(inspector.inspect(camera()))]
    assert max(late) <= inspector.latency()
    assert max(late) > inspector.latency() - AT_ONCE


def test_causal_answers_do_not_change_with_what_comes_after(networks: InspectorNetworks) -> None:
    frames = film(120)
    other = np.concatenate([frames[:70], 255 - frames[70:]])
    inspector = Inspector(networks, THRESHOLDS, name="x")
    one, two = (np.array(list(inspector.inspect(some, causal=True))) for some in (frames, other))
    assert np.allclose(one[:70], two[:70], atol=1e-6)
    assert not np.allclose(one[70:], two[70:], atol=1e-6)


def test_memory_does_not_grow_with_the_video(networks: InspectorNetworks) -> None:
    ground = film(8, (120, 160))
    inspector = Inspector(networks, THRESHOLDS, name="x")

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in inspector.inspect(ground[t % 8] for t in range(count)):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(200)
    assert peak(1200) < peak(400) + 100_000  # a glance is 1,584 bytes


@pytest.mark.parametrize("size", [(1, 1), (5, 9), (112, 112), (240, 427), (720, 1280)])
def test_a_frame_of_any_size_is_looked_at(size: tuple[int, int]) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    before = frame.copy()
    seen = describe_frame(frame)
    assert seen.shape == (CHANNELS, CELLS, CELLS)
    assert (frame == before).all()
    assert (describe_frame(frame) == seen).all()
    assert (describe_frame(np.repeat(frame, 2, axis=1)[:, ::2]) == seen).all()  # not contiguous


def test_frames_of_an_array_are_glanced_at_as_by_themselves() -> None:
    frames = film(20, (60, 90))
    assert (describe_frames(frames) == np.stack([describe_frame(frame) for frame in frames])).all()
    assert (describe_frames(frames[::3, 5:, ::2]) == describe_frames(iter(frames[::3, 5:, ::2]))).all()
    parts = list(stream_descriptors(frames, 2))
    assert (np.concatenate(parts) == describe_frames(frames)).all()


def test_glances_say_what_they_mean() -> None:
    rng = np.random.default_rng(0)
    sharp = rng.integers(60, 200, (96, 96, 3), np.uint8)
    soft = sharp.copy()
    soft[:, 1:-1] = (sharp[:, :-2].astype(int) + sharp[:, 1:-1] + sharp[:, 2:]) // 3
    assert (describe_frame(soft)[DETAIL].astype(int) < describe_frame(sharp)[DETAIL]).mean() > 0.9
    dark = describe_frame((sharp // 2).astype(np.uint8))[LIGHT].astype(int)
    assert np.abs(dark - describe_frame(sharp)[LIGHT].astype(int) / 2).max() <= 2
    left = np.zeros((48, 48, 3), np.uint8)
    left[:, :24] = 200
    light = describe_frame(left)[LIGHT]
    assert (light[:, :, :6] == 200).all()
    assert not light[:, :, 6:].any()


def test_a_median_never_looks_beyond_the_ends() -> None:
    for total in (1, 2, 5, 300):
        assert set(reflect(torch.arange(-400, 400), total).tolist()) == set(range(total))


def test_weights_of_something_else_are_refused(networks: InspectorNetworks) -> None:
    tensors = networks.state_dict()
    made = build_inspector(tensors, THRESHOLDS, name="mine", device="cpu")
    assert (made.threshold(), made.threshold(causal=True)) == (0.5, 0.6)
    assert made.fingerprint == Inspector(networks, THRESHOLDS, name="other").fingerprint
    assert made.fingerprint != Inspector(networks, {"both": 0.4, "causal": 0.6}, name="mine").fingerprint
    with pytest.raises(CheckpointError, match="not the weights of an inspector: 1 unexpected: extra"):
        build_inspector({**tensors, "extra": torch.zeros(1)}, THRESHOLDS, name="mine", device="cpu")
    for wrong in ({}, {"both": 0.5}, {"both": 0.5, "causal": 2.0}, {"both": "x", "causal": 0.5}):
        with pytest.raises(CheckpointError, match="need two thresholds, both and causal"):
            build_inspector(tensors, wrong, name="mine", device="cpu")  # type: ignore[arg-type]
