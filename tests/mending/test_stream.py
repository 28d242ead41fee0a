"""Video stream: order and delay of verdicts, bounded memory, gaps, frame sizes and its network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.moving_film import verdicts_on
from jostle.core.types.clip import Frames
from jostle.errors import BadValue, NonFiniteOutput
from jostle.mending import stream
from jostle.mending.confidence import NETWORK
from jostle.mending.descriptor_layout import Descriptor
from jostle.mending.stream import (
    CONFIRMED_ON,
    NETWORK_ON,
    NetworkAlarm,
    VideoStream,
    open_network,
)
from jostle.mending.verdicts import Verdict


def noisy_film(count: int, height: int = 48, width: int = 64, *, seed: int = 0) -> Frames:
    rng = np.random.default_rng(seed)
    scene = rng.uniform(30, 220, (6, 8, 3)).repeat(height // 6, 0).repeat(width // 8, 1)
    return np.clip(scene + rng.normal(0, 4, (count, *scene.shape)), 0, 255).astype(np.uint8)


def rules_only(lookahead: int, fps: float | None = None) -> VideoStream:
    return VideoStream(lookahead=lookahead, fps=fps, use_network=False)


def values(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    return [(verdict.index, verdict.time, verdict.damaged, verdict.confidence, verdict.kind) for verdict in verdicts]


@pytest.mark.parametrize("lookahead", [0, 1, 5, 15])
def test_every_frame_has_one_verdict_in_order_and_at_most_the_lookahead_late(lookahead: int) -> None:
    inspector = rules_only(lookahead)
    film = noisy_film(40)
    film[20:30] = 0
    count = 0
    for pushed, frame in enumerate(film, 1):
        for judged in inspector.push(frame):
            verdict = judged.verdict
            assert np.array_equal(judged.picture, film[count])  # type: ignore[arg-type]
            assert verdict.index == count
            assert 0.5 <= verdict.confidence <= 1
            count += 1
        assert count == max(pushed - lookahead, 0)
    assert [one.verdict.index for one in inspector.flush()] == list(range(count, 40))
    assert inspector.flush() == []


def test_verdicts_do_not_depend_on_later_frames_beyond_the_lookahead() -> None:
    film = noisy_film(60)
    film[30:] = film[30]
    full, short_inspector = rules_only(5), rules_only(5)
    long = [one.verdict for frame in film for one in full.push(frame)]
    short = [one.verdict for frame in film[:40] for one in short_inspector.push(frame)]
    assert values(short) == values(long[: len(short)])


def test_two_streams_side_by_side_are_independent() -> None:
    one, other = noisy_film(40), noisy_film(40, seed=1)
    one[20:30], other[25:] = 0, other[25]
    alone = [values(verdicts_on(rules_only(5), film)) for film in (one, other)]
    first, second = rules_only(5), rules_only(5)
    pairs = [(first.push(a), second.push(b)) for a, b in zip(one, other, strict=True)]
    mixed = [[judged for pair in pairs for judged in pair[number]] for number in (0, 1)]
    ends = mixed[0] + first.flush(), mixed[1] + second.flush()
    assert [values([judged.verdict for judged in judgments]) for judgments in ends] == alone


def test_memory_is_bounded() -> None:
    inspector, film = rules_only(5), noisy_film(16)
    sizes = []
    for lap in range(28):
        for number in range(8):
            frame = film[(number * (3 + lap % 2)) % 16]
            inspector.push(np.zeros_like(frame) if lap % 7 == 6 else frame)
        sizes.append(count_items(inspector))
    assert max(sizes[14:]) <= 1.1 * max(sizes[:14])


def count_items(value: object, depth: int = 6) -> int:
    """Return the elements of arrays and containers that an object holds."""
    if isinstance(value, np.ndarray):
        return value.size
    if depth and hasattr(value, "__dict__"):
        return sum(count_items(item, depth - 1) for item in vars(value).values())
    if depth and hasattr(type(value), "__slots__"):
        return sum(count_items(getattr(value, name), depth - 1) for name in type(value).__slots__)
    if depth and hasattr(value, "__iter__") and not isinstance(value, str):
        return sum(1 + count_items(item, depth - 1) for item in value)
    return 1


def test_a_change_of_size_is_no_damage_and_loses_no_frame() -> None:
    verdicts = verdicts_on(rules_only(5), [*noisy_film(20), *noisy_film(20, 96, 64, seed=2)])
    assert [verdict.index for verdict in verdicts] == list(range(40))
    assert not any(verdict.damaged for verdict in verdicts)


def test_frames_across_a_time_gap_are_not_compared_except_for_freezes() -> None:
    film = noisy_film(40)
    darker = (film * 0.3).astype(np.uint8)
    inspector = rules_only(0)
    verdicts = [one.verdict for t in range(20) for one in inspector.push(film[t], t / 25)]
    verdicts += [one.verdict for t in range(20, 40) for one in inspector.push(darker[t], 60 + t / 25)]
    assert not any(verdict.damaged for verdict in verdicts)
    inspector = rules_only(0)
    for t in range(20):
        inspector.push(film[t], t / 25)
    for t in range(8):
        inspector.push(film[19], 0.8 + t / 25)
    assert [one.verdict.kind for one in inspector.push(film[19], 30.0)] == ["frozen"]


def test_a_time_that_goes_back_starts_a_new_sequence() -> None:
    film, inspector = noisy_film(30), rules_only(3)
    judged = [one for t in range(30) for one in inspector.push(film[t], (t % 15) / 25)] + inspector.flush()
    verdicts = [one.verdict for one in judged]
    assert [verdict.time for verdict in verdicts] == [(t % 15) / 25 for t in range(30)]
    assert not any(verdict.damaged for verdict in verdicts)


def test_missing_times_are_derived_from_the_rate() -> None:
    times = [verdict.time for verdict in verdicts_on(rules_only(0, fps=10), noisy_film(4))]
    assert times == pytest.approx([0, 0.1, 0.2, 0.3])


def test_the_default_rate_is_one_everywhere() -> None:
    pytest.importorskip("torch")
    inspector = VideoStream(lookahead=0, use_network=False)
    for verdicts in (verdicts_on(inspector, noisy_film(4)), jostle.Watcher(lookahead=0).watch(noisy_film(4))):
        assert [verdict.time for verdict in verdicts] == pytest.approx([t / 30 for t in range(4)])


@pytest.mark.fault("F144")
@pytest.mark.parametrize("time", [math.nan, math.inf])
def test_a_time_that_is_no_number_is_refused(time: float) -> None:
    with pytest.raises(BadValue, match="pass seconds, or None where it is not known") as raised:
        rules_only(0).push(noisy_film(1)[0], time)
    assert raised.value.fault == "F144"


def test_frames_that_are_no_bytes_are_refused() -> None:
    with pytest.raises(BadValue, match="uint8"):
        rules_only(0).push(noisy_film(1)[0] / 255)
    with pytest.raises(BadValue, match="NumPy array"):
        rules_only(0).push([[0]])  # type: ignore[arg-type]


@pytest.mark.parametrize("lookahead", [-1, 251, True, 2.0])
def test_a_lookahead_out_of_range_is_refused(lookahead: int) -> None:
    with pytest.raises(
        BadValue,
        match=r"lookahead .* number of frames",
    ):
        rules_only(lookahead)


def alarms(probabilities: Sequence[float], lookahead: int) -> list[int]:
    alarm = NetworkAlarm(lookahead)
    return sorted({number for index, probability in enumerate(probabilities)
                   for number in alarm.push(index, probability)})  # fmt: skip


def test_the_network_alarm_needs_several_frames_and_has_hysteresis() -> None:
    sure, low = NETWORK_ON, 0.1
    assert alarms([low, sure, low, sure, sure, low, low, sure], 0) == []
    brief = [low, sure, sure, low, sure, sure, 0.7, low, 0.6, low, low, sure]
    assert alarms(brief, 0) == [1, 2, 4, 5, 6, 8]
    assert alarms(brief, 5) == []
    assert alarms([low, *[sure] * 20], 5) == []
    surer = CONFIRMED_ON
    assert alarms([low, *[surer] * 11, sure, *[surer] * 11], 5) == []
    longer = [low, *[surer] * 12, 0.7, low, 0.6, low, low, surer]
    assert alarms(longer, 5) == [*range(1, 14), 15]


class SureNetwork:
    """Network that is sure of damage from the tenth frame on."""

    def __init__(self) -> None:
        self._count = 0

    def push(self, descriptor: Descriptor) -> float:
        self._count += 1
        return CONFIRMED_ON if self._count > 10 else 0.01


@pytest.mark.parametrize(("lookahead", "first"), [(0, 13), (5, 16), (15, 10)])
def test_an_alarm_of_the_network_reaches_back_over_the_lookahead(
    lookahead: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "open_network", lambda inspector: SureNetwork())
    inspector: Any = object()
    verdicts = verdicts_on(VideoStream(lookahead=lookahead, inspector=inspector), noisy_film(30))
    assert [verdict.kind for verdict in verdicts] == ["clean"] * first + ["unknown"] * (30 - first)
    assert verdicts[-1].confidence == NETWORK


def test_the_bundled_network_gives_the_causal_probabilities() -> None:
    import jostle

    inspector, film = jostle.load_inspector(), noisy_film(300)  # longer than the memory of the network
    film[6:9] = np.random.default_rng(0).integers(0, 256, film[6:9].shape)
    film[150:160] = film[210:220] // 3
    network = open_network(inspector)
    probabilities = [network.push(stream.describe_frame(frame)) for frame in film]
    assert probabilities == pytest.approx(list(inspector.inspect(film, causal=True)), abs=1e-5)
    verdicts = verdicts_on(VideoStream(lookahead=5, inspector=inspector), film)
    assert [verdict.index for verdict in verdicts] == list(range(300))


def test_a_live_network_refuses_an_output_that_is_not_finite() -> None:
    import jostle

    inspector, frame = jostle.load_inspector(), noisy_film(1)[0]
    inspector.side("causal").answer.bias.data[:] = np.inf
    with pytest.raises(NonFiniteOutput, match="probability that a frame is damaged"):
        open_network(inspector).push(stream.describe_frame(frame))
