"""Streams of descriptors: the same predictions as over the whole video, in time, in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch

from jostle.errors import CheckpointError
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.mending.descriptor_stream import (
    DescriptorStream,
    LogitCalibration,
    LookaheadInspector,
    build_lookahead_inspector,
    predictions_of,
)
from jostle.mending.lookahead_network import DAMAGE_KINDS, LOOKAHEADS, LookaheadNetworks, median_bytes

CALIBRATION = LogitCalibration(1.3, -0.4, 0.6)


@pytest.fixture(scope="module")
def inspector() -> LookaheadInspector:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        networks = LookaheadNetworks()
    return LookaheadInspector(networks, dict.fromkeys(LOOKAHEADS, CALIBRATION), name="x")


def descriptors(count: int, seed: int = 0) -> Descriptors:
    rng = np.random.default_rng(seed)
    ground = rng.integers(0, 200, (1, CHANNELS, CELLS, CELLS))
    return (ground + rng.integers(0, 55, (count, CHANNELS, CELLS, CELLS))).astype(np.uint8)


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
@pytest.mark.parametrize("count", [1, 4, 17, 400])
def test_a_stream_predicts_what_the_whole_video_does(inspector: LookaheadInspector, lookahead: int, count: int) -> None:
    values = descriptors(count)
    stream = DescriptorStream(inspector, lookahead=lookahead)
    predictions = [one for value in values for one in stream.push(value[None])] + stream.flush()
    with torch.inference_mode():
        logits = inspector.networks.network(lookahead)(torch.from_numpy(values)[None])[0]
    whole = predictions_of(logits, CALIBRATION)
    assert len(predictions) == count
    assert np.abs(np.stack([one.kinds for one in predictions]) - np.stack([one.kinds for one in whole])).max() < 1e-5
    assert count == 1 or np.ptp([one.probability for one in predictions]) > 0


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_each_prediction_comes_within_the_lookahead(inspector: LookaheadInspector, lookahead: int) -> None:
    stream, known = DescriptorStream(inspector, lookahead=lookahead), 0
    for number, value in enumerate(descriptors(60)):
        known += len(stream.push(value[None]))
        assert known == max(number + 1 - lookahead, 0)
    assert len(stream.flush()) == lookahead


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_frames_beyond_the_lookahead_change_nothing(inspector: LookaheadInspector, lookahead: int) -> None:
    values = descriptors(100)
    other = values.copy()
    other[50 + lookahead + 1 :] = 255 - other[50 + lookahead + 1 :]
    network = inspector.networks.network(lookahead)
    with torch.inference_mode():
        one, two = (network(torch.from_numpy(some)[None])[0] for some in (values, other))
    assert torch.allclose(one[:51], two[:51], atol=1e-6)
    assert not torch.allclose(one[51], two[51], atol=1e-6)


def test_other_lookaheads_take_the_next_lower_network(inspector: LookaheadInspector) -> None:
    chosen = [DescriptorStream(inspector, lookahead=n).lookahead for n in (-1, 0, 4, 5, 14, 15, 99)]
    assert chosen == [0, 0, 0, 5, 5, 15, 15]


def test_kinds_are_shares_of_one(inspector: LookaheadInspector) -> None:
    stream = DescriptorStream(inspector, lookahead=0)
    for one in stream.push(descriptors(5)):
        assert one.kinds.shape == (len(DAMAGE_KINDS) + 2,)
        assert one.kinds.sum() == pytest.approx(1, abs=1e-5)
        assert 1 - one.kinds[0] == pytest.approx(one.probability, abs=1e-6)


def test_medians_are_those_of_bytes() -> None:
    values = np.random.default_rng(0).integers(0, 256, (2, 3, 33, 5), np.uint8)
    assert (median_bytes(torch.from_numpy(values)).numpy() == np.median(values, 2)).all()


def test_memory_does_not_grow_with_the_stream(inspector: LookaheadInspector) -> None:
    stream, values = DescriptorStream(inspector, lookahead=5), descriptors(16)
    for _ in range(20):
        stream.push(values)
    tracemalloc.start()
    begin = tracemalloc.get_traced_memory()[0]
    for _ in range(6):
        stream.push(values)
    assert tracemalloc.get_traced_memory()[0] < begin + 100_000
    tracemalloc.stop()


@pytest.mark.fault("F147")
def test_weights_without_calibration_are_refused() -> None:
    weights = LookaheadNetworks().state_dict()
    one = {"scale": 1.0, "bias": 0.0, "threshold": 0.5}
    for notes in ({}, {"0": one, "5": one}, {"0": one, "5": one, "15": one | {"threshold": 1.0}}):
        with pytest.raises(CheckpointError, match="calibrations") as caught:
            build_lookahead_inspector(weights, notes, name="x")
        assert caught.value.fault == "F147"
    with pytest.raises(CheckpointError, match="not the weights"):
        build_lookahead_inspector({}, {}, name="x")
