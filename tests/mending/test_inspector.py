"""Inspector: the same results for streams and arrays, bounded memory and deterministic descriptors."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from helpers.moving_film import textured_film
from jostle.errors import CheckpointError
from jostle.mending.descriptor import describe_frame, describe_frames, stream_descriptors
from jostle.mending.descriptor_layout import CELLS, CHANNELS, DETAIL, LIGHT
from jostle.mending.inspection import AT_ONCE, Inspector, build_inspector
from jostle.mending.network import SIDES, InspectorNetworks, reflect

THRESHOLDS = {"both": 0.5, "causal": 0.6}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("count", [1, 7, 64, 150, 290])
def test_a_stream_gives_the_probabilities_of_the_whole_video(
    inspector: Inspector, networks: InspectorNetworks, count: int, causal: bool
) -> None:
    frames = textured_film(count)
    probabilities = np.array(list(inspector.inspect(iter(frames), causal=causal)))
    assert len(probabilities) == count
    with torch.inference_mode():
        expected = networks[SIDES[causal]](torch.from_numpy(describe_frames(frames))[None]).sigmoid()[0].numpy()
    assert np.abs(probabilities - expected).max() < 1e-5
    assert np.ptp(probabilities) > 0 or count == 1


@pytest.mark.parametrize("count", [0, 5, 130])
def test_descriptor_threads_do_not_change_the_result(inspector: Inspector, count: int) -> None:
    frames = textured_film(count) if count else np.zeros((0, 36, 50, 3), np.uint8)
    expected = list(inspector.inspect(frames))
    assert list(inspector.inspect(iter(frames), jobs=3)) == expected
    assert list(inspector.inspect(frames, jobs=3)) == expected  # arrays are read in larger batches
    assert len(expected) == count


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("causal", [False, True])
def test_a_gpu_gives_the_same_result_for_every_batch_size(
    networks: InspectorNetworks, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # full precision, for a tight tolerance
    frames = textured_film(1300)
    frames[400:407] = 255
    inspector = Inspector(copy.deepcopy(networks), THRESHOLDS, name="x")
    expected = np.array(list(inspector.inspect(frames, causal=causal)))
    for options in ({}, {"at_once": 512, "jobs": 4}):
        on_gpu = np.array(list(inspector.to("cuda").inspect(frames, causal=causal, **options)))
        assert np.abs(on_gpu - expected).max() < 1e-4


def test_an_empty_video_has_no_probabilities(inspector: Inspector) -> None:
    assert list(inspector.inspect([])) == []


def test_live_results_are_immediate_and_equal_those_of_the_file(inspector: Inspector) -> None:
    frames = textured_film(90)
    frames_read = 0

    def camera() -> Iterator[np.ndarray]:
        nonlocal frames_read
        for frame in frames:
            frames_read += 1
            yield frame

    probabilities = []
    for probability in inspector.inspect(camera(), causal=True, at_once=1):
        probabilities.append(probability)
        assert frames_read == len(probabilities)
    assert inspector.latency(causal=True, at_once=1) == 0
    assert np.allclose(probabilities, list(inspector.inspect(frames, causal=True)), atol=1e-5)


def test_results_arrive_within_the_stated_latency(inspector: Inspector) -> None:
    frames_read = 0

    def camera() -> Iterator[np.ndarray]:
        nonlocal frames_read
        for frame in textured_film(420):
            frames_read += 1
            yield frame

    delays = [frames_read - 1 - number for number, _ in enumerate(inspector.inspect(camera()))]
    assert max(delays) <= inspector.latency()
    assert max(delays) > inspector.latency() - AT_ONCE


def test_causal_results_do_not_depend_on_later_frames(inspector: Inspector) -> None:
    frames = textured_film(120)
    other = np.concatenate([frames[:70], 255 - frames[70:]])
    one, two = (np.array(list(inspector.inspect(video, causal=True))) for video in (frames, other))
    assert np.allclose(one[:70], two[:70], atol=1e-6)
    assert not np.allclose(one[70:], two[70:], atol=1e-6)


def test_memory_does_not_grow_with_the_video(inspector: Inspector) -> None:
    ground = textured_film(8, (120, 160))

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in inspector.inspect(ground[t % 8] for t in range(count)):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(200)
    assert peak(1200) < peak(400) + 100_000  # a descriptor is 1,584 bytes


@pytest.mark.parametrize("size", [(1, 1), (5, 9), (112, 112), (240, 427), (720, 1280)])
def test_frames_of_any_size_are_described(size: tuple[int, int]) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    before = frame.copy()
    descriptor = describe_frame(frame)
    assert descriptor.shape == (CHANNELS, CELLS, CELLS)
    assert (frame == before).all()
    assert (describe_frame(frame) == descriptor).all()
    assert (describe_frame(np.repeat(frame, 2, axis=1)[:, ::2]) == descriptor).all()  # not contiguous


def test_descriptors_of_an_array_equal_those_of_single_frames() -> None:
    frames = textured_film(20, (60, 90))
    assert (describe_frames(frames) == np.stack([describe_frame(frame) for frame in frames])).all()
    assert (describe_frames(frames[::3, 5:, ::2]) == describe_frames(iter(frames[::3, 5:, ::2]))).all()
    parts = list(stream_descriptors(frames, 2))
    assert (np.concatenate(parts) == describe_frames(frames)).all()


def test_descriptors_measure_detail_and_brightness() -> None:
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


def test_reflected_indices_stay_inside_the_video() -> None:
    for total in (1, 2, 5, 300):
        assert set(reflect(torch.arange(-400, 400), total).tolist()) == set(range(total))


def test_weights_of_another_network_are_refused(networks: InspectorNetworks) -> None:
    tensors = networks.state_dict()
    inspector = build_inspector(tensors, THRESHOLDS, name="mine", device="cpu")
    assert (inspector.threshold(), inspector.threshold(causal=True)) == (0.5, 0.6)
    assert inspector.fingerprint == Inspector(networks, THRESHOLDS, name="other").fingerprint
    assert inspector.fingerprint != Inspector(networks, {"both": 0.4, "causal": 0.6}, name="mine").fingerprint
    with pytest.raises(CheckpointError, match="not the weights of an inspector: 1 unexpected: extra"):
        build_inspector({**tensors, "extra": torch.zeros(1)}, THRESHOLDS, name="mine", device="cpu")
    for wrong in ({}, {"both": 0.5}, {"both": 0.5, "causal": 2.0}, {"both": "x", "causal": 0.5}):
        with pytest.raises(CheckpointError, match="need two thresholds, both and causal"):
            build_inspector(tensors, wrong, name="mine", device="cpu")  # type: ignore[arg-type]
