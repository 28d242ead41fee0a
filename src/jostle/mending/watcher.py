"""Inspection and repair of a live stream, frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jostle.core.types.clip import Frame, check_frames
from jostle.mending.loading import BUNDLED, stream_inspector
from jostle.mending.stream import HOLD_LIMIT_S, VideoStream
from jostle.mending.stream_repair import JudgedPicture, StreamMendMethod, StreamRepair
from jostle.mending.verdicts import Verdict

if TYPE_CHECKING:
    from jostle.mending.inspection import Inspector

FrameAndTime = Frame | tuple[Frame, float]


class Watcher:
    """Inspector of a live stream that gives a verdict on each frame, and can mend the stream.

    Each frame comes out once, in order, at most `lookahead` frames late, as a `Verdict`: `index`, `time`, `damaged`,
    `confidence`, `kind` and `frame`, the picture to show. Memory does not grow, there is no thread, and frames may come
    at any rate, with gaps, and change their size. Frames are copied when they come in, since cameras reuse their
    buffers, and are read-only when they come out, since one of them may be shown again: draw on a copy.

    Args:
        lookahead: most later frames that may come before a verdict; 0 answers at once, 5 and 15 with fewer errors.
        mend: show good frames in place of damaged ones; the others are the same bytes. False only marks them.
        fps: rate of frames that are pushed without a time; default: 30.
        how: for `mend`. `hold` the last frame known to be good; `blend` from it to the next good one, where that one
            comes in time (half of the look-ahead is kept for it), else hold; `mark` leaves frames as they are.
        hold_limit: longest hold in seconds. Then the stream is lost: `frame` is None until a clean frame comes, as it
            is before the first clean frame, and after a change of size.
        inspector: `jostle` for the bundled one, a path of weights, or an `Inspector`.

    >>> import numpy as np
    >>> watcher = Watcher(lookahead=2)
    >>> frames = np.random.default_rng(0).integers(0, 256, (6, 48, 64, 3), np.uint8)
    >>> [len(watcher.push(frame)) <= 1 for frame in frames] == [True] * 6
    True
    >>> watcher.flush()[-1].index
    5
    """

    def __init__(
        self,
        *,
        lookahead: int = 5,
        mend: bool = False,
        fps: float | None = None,
        how: StreamMendMethod = "hold",
        hold_limit: float = HOLD_LIMIT_S,
        inspector: str | Path | Inspector = BUNDLED,
    ) -> None:
        method: StreamMendMethod = how if mend else "mark"
        StreamRepair(how, reach=0, hold_limit=hold_limit)  # validated also where nothing is mended
        loaded = stream_inspector(inspector)
        self._make_stream = partial(
            VideoStream, lookahead=lookahead, how=method, hold_limit=hold_limit, inspector=loaded, fps=fps
        )
        self._stream = self._make_stream()
        self._lost = False

    @property
    def lost(self) -> bool:
        """Whether the last frame that came out was damaged for longer than `hold_limit`."""
        return self._lost

    def push(self, frame: Frame, time: float | None = None, *, concealed: bool = False) -> list[Verdict]:
        """Take the next frame and return the verdicts that became known, in order.

        Args:
            frame: (H, W, 3) uint8 RGB.
            time: seconds on any clock; default: by the rate.
            concealed: whether your decoder says that the frame is damaged, or predicted from a damaged one.
        """
        check_frames(frame[None] if isinstance(frame, np.ndarray) else frame)
        own: Frame = np.array(frame, order="C")
        own.flags.writeable = False
        return self._verdicts(self._stream.push(own, time, own, concealed=concealed))

    def flush(self) -> list[Verdict]:
        """Return the verdicts on the last frames. The next frame begins a new stream, with index 0."""
        verdicts = self._verdicts(self._stream.flush())
        self._stream = self._make_stream()
        return verdicts

    def watch(self, frames: Iterable[FrameAndTime]) -> Iterator[Verdict]:
        """Yield a verdict for each frame of an iterable, whose items are frames or (frame, time)."""
        for item in frames:
            yield from self.push(*item) if isinstance(item, tuple) else self.push(item)
        yield from self.flush()

    async def watch_async(self, frames: AsyncIterable[FrameAndTime]) -> AsyncIterator[Verdict]:
        """Yield a verdict for each frame of an async iterable; other tasks get a turn after every frame."""
        async for item in frames:
            for verdict in self.push(*item) if isinstance(item, tuple) else self.push(item):
                yield verdict
            await asyncio.sleep(0)  # a source that has its frames ready never suspends
        for verdict in self.flush():
            yield verdict

    def _verdicts(self, judged: list[JudgedPicture]) -> list[Verdict]:
        if judged:
            self._lost = judged[-1].lost
        return [replace(one.verdict, frame=one.picture) for one in judged]
