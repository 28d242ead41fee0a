"""`Watcher`: every frame once, in order and in time; intact frames unchanged, damaged ones replaced."""

from __future__ import annotations

import asyncio
import math
import tracemalloc
from collections.abc import AsyncIterator, Callable
from itertools import cycle, islice
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.known_verdicts import KnownFrame
from jostle.core.types.clip import Frame, Frames
from jostle.errors import BadValue
from jostle.mending.stream import VideoStream
from jostle.mending.stream_repair import RECENT, StreamRepair
from jostle.mending.verdicts import Verdict

DAMAGED, DOUBTFUL = 255, 254  # values of the first pixel, read by the inspector of these tests


class FirstPixelStream(VideoStream):
    """Stream that reads its verdicts from the first pixel, with the largest delay allowed."""

    def _inspect(self, frame: Frame, time: float, concealed: bool) -> list[Verdict]:
        damaged, confidence = frame[0, 0, 0] == DAMAGED, 0.6 if frame[0, 0, 0] == DOUBTFUL else 0.99
        self._pending.append(KnownFrame(self._count, time, bool(damaged), confidence))
        return self._release(self._ahead)


Make = Callable[..., jostle.Watcher]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr("jostle.mending.stream.open_network", lambda inspector: None)
    monkeypatch.setattr("jostle.mending.watcher.VideoStream", FirstPixelStream)
    return lambda **options: jostle.Watcher(inspector=object(), **options)  # type: ignore[arg-type]


def make_frames(text: str, size: tuple[int, int] = (4, 6)) -> Frames:
    """Return grey frames, ten levels apart; `x` is damaged, `?` clean with little confidence."""
    frames = np.stack([np.full((*size, 3), 10 * t, np.uint8) for t in range(len(text))])
    for t, letter in enumerate(text):
        if letter in "x?":
            frames[t, 0, 0] = DAMAGED if letter == "x" else DOUBTFUL
    return frames


def grey_levels(verdicts: list[Verdict]) -> list[int | None]:
    """Return the grey levels of the last pixels of the frames."""
    return [None if verdict.frame is None else int(verdict.frame[-1, -1, 0]) for verdict in verdicts]


@pytest.mark.parametrize("lookahead", [0, 1, 5, 15])
@pytest.mark.parametrize("how", [None, "hold", "blend", "mark"])
def test_each_frame_comes_out_once_in_order_and_in_time(make: Make, lookahead: int, how: Any) -> None:
    frames = make_frames("..xx....x.xxxxxxxxx....x")
    watcher = make(lookahead=lookahead, mend=how is not None, how=how or "hold", fps=25)
    verdicts: list[Verdict] = []
    for count, frame in enumerate(frames, 1):
        verdicts += watcher.push(frame)
        assert len(verdicts) >= count - lookahead
    verdicts += watcher.flush()
    assert [verdict.index for verdict in verdicts] == list(range(len(frames)))
    assert [verdict.time for verdict in verdicts] == [t / 25 for t in range(len(frames))]
    for verdict, frame in zip(verdicts, frames, strict=True):
        assert verdict.frame is not None
        if not verdict.damaged or how in (None, "mark"):
            assert verdict.frame.tobytes() == frame.tobytes()
        else:
            assert verdict.frame[0, 0, 0] != DAMAGED


REPAIRED = {  # frames, options: grey levels of what comes out
    ("...xx..", "hold", 5): [0, 10, 20, 20, 20, 50, 60],
    ("...??xx..", "hold", 5): [0, 10, 20, 30, 40, 20, 20, 70, 80],  # a doubtful frame before an alarm is not held
    ("??x", "hold", 5): [0, 10, 0],
    ("xx..x", "hold", 5): [None, None, 20, 30, 30],
    ("xx..x", "blend", 5): [20, 20, 20, 30, 30],
    ("..xxx..", "blend", 8): [0, 10, 20, 30, 40, 50, 60],
    # The next good frame is too late for the first damaged ones: they hold, then the blend begins.
    ("..xxxxxx..", "blend", 4): [0, 10, 10, 10, 10, 10, 33, 57, 80, 90],
    (".x.", "blend", 0): [0, 0, 20],
}


@pytest.mark.parametrize(("text", "how", "lookahead"), REPAIRED)
def test_damaged_frames_are_held_or_blended(make: Make, text: str, how: Any, lookahead: int) -> None:
    verdicts = list(make(mend=True, how=how, lookahead=lookahead).watch(make_frames(text)))
    assert grey_levels(verdicts) == REPAIRED[text, how, lookahead]
    assert [one.kind for one in verdicts] == ["black" if letter == "x" else "clean" for letter in text]


@pytest.mark.fault("F134")
def test_a_hold_has_a_limit(make: Make) -> None:
    watcher = make(mend=True, hold_limit=0.2, fps=10, lookahead=0)
    pictures, lost_flags = [], []
    for frame in make_frames("..xxxxx.x"):
        pictures += grey_levels(watcher.push(frame))
        lost_flags.append(watcher.lost)
    assert pictures == [0, 10, 10, 10, 10, None, None, 70, 70]
    assert lost_flags == [False] * 5 + [True] * 2 + [False] * 2


def test_holds_end_at_time_gaps_and_clock_resets(make: Make) -> None:
    watcher = make(mend=True, hold_limit=1.0, lookahead=0)
    times = [0.0, 0.1, 0.2, 60.0, 60.1, 5.0, 5.1, 5.2]
    verdicts = [watcher.push(frame, time)[0] for frame, time in zip(make_frames("..xx.xxx"), times, strict=True)]
    assert [one.time for one in verdicts] == times
    assert grey_levels(verdicts) == [0, 10, 10, None, 40, 40, 40, 40]


def test_a_frame_of_another_size_is_never_held(make: Make) -> None:
    watcher = make(mend=True, lookahead=1)
    small, large = make_frames("..x"), make_frames("x..x", (8, 8))
    verdicts = list(watcher.watch([*small, *large]))
    assert grey_levels(verdicts) == [0, 10, 10, None, 10, 20, 20]
    assert [one.frame.shape[0] for one in verdicts if one.frame is not None] == [4, 4, 4, 8, 8, 8]


@pytest.mark.fault("F131")
def test_frames_are_copied_from_a_reused_camera_buffer(make: Make) -> None:
    buffer, watcher = np.zeros((4, 6, 3), np.uint8), make(mend=True, lookahead=2)
    verdicts: list[Verdict] = []
    for frame in make_frames("....x."):
        buffer[:] = frame
        verdicts += watcher.push(buffer)
    assert grey_levels(verdicts + watcher.flush()) == [0, 10, 20, 30, 30, 50]
    frame = verdicts[0].frame
    assert frame is not None
    with pytest.raises(ValueError, match="read-only"):
        frame[0] = 1


def test_after_a_flush_a_new_stream_begins(make: Make) -> None:
    watcher = make(mend=True)
    assert grey_levels(list(watcher.watch(make_frames("..")))) == [0, 10]
    verdicts = list(watcher.watch(make_frames("x.")))
    assert [one.index for one in verdicts] == [0, 1]
    assert grey_levels(verdicts) == [None, 10]
    assert watcher.flush() == []


def test_watching_an_async_source(make: Make) -> None:
    switches = []

    async def camera() -> AsyncIterator[Any]:
        for number, frame in enumerate(make_frames("..x..")):
            yield frame, number / 10

    async def other() -> None:
        for _ in range(3):
            switches.append(1)
            await asyncio.sleep(0)

    async def main() -> list[Verdict]:
        task = asyncio.create_task(other())
        verdicts = [verdict async for verdict in make(mend=True).watch_async(camera())]
        await task
        return verdicts

    verdicts = asyncio.run(main())
    assert grey_levels(verdicts) == [0, 10, 10, 30, 40]
    assert [verdict.time for verdict in verdicts] == [0, 0.1, 0.2, 0.3, 0.4]
    assert len(switches) == 3


@pytest.mark.parametrize("how", ["hold", "blend"])
def test_memory_does_not_grow(make: Make, how: Any) -> None:
    frames = make_frames("....xxxxxxxx....xx", (64, 64))
    watcher = make(mend=True, how=how, lookahead=4)
    for verdict in watcher.watch(islice(cycle(frames), 50)):
        del verdict
    tracemalloc.start()
    for verdict in watcher.watch(islice(cycle(frames), 400)):
        del verdict
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (RECENT + 4 + 30) * frames[0].nbytes  # a blend computes in 32 bits


def test_invalid_arguments_are_refused(make: Make) -> None:
    with pytest.raises(BadValue, match="lookahead is a number of frames"):
        make(lookahead=-1)
    with pytest.raises(BadValue, match="unknown method 'motion'"):
        make(how="motion")
    with pytest.raises(BadValue, match="hold_limit is the longest hold"):
        make(hold_limit=math.nan)
    with pytest.raises(BadValue, match="fps must be a positive number"):
        make(fps=0)
    watcher = make()
    with pytest.raises(BadValue, match="shape"):
        watcher.push(np.zeros((4, 6), np.uint8))
    with pytest.raises(BadValue, match="uint8"):
        watcher.push(np.zeros((4, 6, 3)))  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="frame 0: its time is nan"):
        watcher.push(make_frames(".")[0], math.nan)
    assert [one.index for one in watcher.watch(make_frames("."))] == [0]


def test_planes_of_more_than_eight_bits_are_blended() -> None:
    repair = StreamRepair("blend", reach=2, hold_limit=1)
    pictures = [np.array([value], "<u2") for value in (1000, 0, 3000)]
    out = [
        one.picture
        for index, picture in enumerate(pictures)
        for one in repair.push(Verdict(index, index / 30, index == 1, 1.0, "clean" if index != 1 else "black"), picture)
    ]
    assert [one.tolist() for one in out if one is not None] == [[1000], [2000], [3000]]


def test_the_bundled_inspector_finds_and_mends_black_frames() -> None:
    ground = np.random.default_rng(3).integers(0, 256, (12, 16, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    frames = np.stack([np.roll(ground, t, 1) for t in range(60)])
    damaged = frames.copy()
    damaged[40:46] = 0
    verdicts = list(jostle.Watcher(mend=True, fps=25).watch(damaged))
    assert [verdict.index for verdict in verdicts if verdict.kind == "black"] == list(range(40, 46))
    for verdict in verdicts[40:46]:
        assert verdict.frame.any()
    assert all((verdict.frame == damaged[verdict.index]).all() for verdict in verdicts if not verdict.damaged)
