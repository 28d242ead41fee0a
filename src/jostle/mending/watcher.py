"""Inspection and repair of a live stream, frame by frame: `Watcher`, and the stream of pictures behind it."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jostle.core.types.clip import Frame, check_frames
from jostle.errors import BadValue
from jostle.io.video.frame_folder import DEFAULT_FPS
from jostle.mending.loading import BUNDLED, stream_inspector
from jostle.mending.stream_repair import JudgedPicture, Picture, StreamMendMethod, StreamRepair
from jostle.mending.verdicts import Verdict

if TYPE_CHECKING:
    from jostle.mending.inspection import Inspector

HOLD_LIMIT_S = 5.0

FrameAndTime = Frame | tuple[Frame, float]


class WatchedStream:
    """A stream of pictures that are inspected as RGB frames and given out, mended or not, as they came.

    Args:
        lookahead: most later frames that may come before a picture is given out.
        how: as of `StreamRepair`.
        hold_limit: as of `StreamRepair`.
        inspector: `jostle`, a path of weights, or an `Inspector`.
        fps: rate of frames that come without times.
    """

    def __init__(
        self,
        *,
        lookahead: int = 5,
        how: StreamMendMethod = "mark",
        hold_limit: float = HOLD_LIMIT_S,
        inspector: str | Path | Inspector = BUNDLED,
        fps: float | None = None,
    ) -> None:
        if isinstance(lookahead, bool) or not isinstance(lookahead, int) or lookahead < 0:
            raise BadValue(f"lookahead is a number of frames, 0 or more, got {lookahead!r}")
        if fps is not None and not (fps > 0 and math.isfinite(fps)):
            raise BadValue(f"fps must be a positive number, got {fps!r}")
        self.fps = float(DEFAULT_FPS if fps is None else fps)
        # A blend needs the verdict on the next good picture, so that it shares the look-ahead with the inspector.
        self._ahead = lookahead // 2 if how == "blend" else lookahead
        self._make_repair = partial(StreamRepair, how, reach=lookahead - self._ahead, hold_limit=hold_limit)
        self._repair = self._make_repair()
        self._loaded = stream_inspector(inspector)
        self._pictures: deque[Picture] = deque()
        self._first, self._count = 0, 0
        self._start()

    def _start(self) -> None:
        from jostle.mending.stream_inspector import StreamInspector

        self._inspector = StreamInspector(lookahead=self._ahead, inspector=self._loaded, fps=self.fps)

    def push(
        self, frame: Frame, time: float | None, picture: Picture, *, concealed: bool = False
    ) -> list[JudgedPicture]:
        """Take the next frame; return the pictures that can be displayed now.

        Args:
            frame: (H, W, 3) uint8 RGB, for the inspector.
            time: seconds; by default by the rate.
            picture: what is given out for the frame; must not be changed afterwards.
            concealed: whether the decoder says that the frame shows what it concealed.
        """
        seconds = self._count / self.fps if time is None else float(time)
        if not math.isfinite(seconds):
            raise BadValue(f"frame {self._count}: its time is {seconds}; pass seconds, or None where it is not known")
        self._pictures.append(picture)
        self._count += 1
        verdicts = self._inspector.push(frame, seconds, concealed=concealed)
        return [judged for verdict in verdicts for judged in self._judge(verdict)]

    def flush(self) -> list[JudgedPicture]:
        """Return what is left at the end of a stream, or where it breaks off; frames after it have no past."""
        judged = [one for verdict in self._inspector.flush() for one in self._judge(verdict)]
        judged += self._repair.flush()
        self._first = self._count
        self._repair = self._make_repair()
        self._start()
        return judged

    def _judge(self, verdict: Verdict) -> Iterator[JudgedPicture]:
        own = replace(verdict, index=self._first + verdict.index)
        yield from self._repair.push(own, self._pictures.popleft())


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
            WatchedStream, lookahead=lookahead, how=method, hold_limit=hold_limit, inspector=loaded, fps=fps
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
