"""Which frames of a video were struck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.api.corrupting import Progress, single_video
from jostle.errors import BadValue
from jostle.types.clip import Clip, Frame, Frames, checked_frames, checked_rate, times_at_rate
from jostle.types.inspection import Inspection
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.models.inspector import Inspector

TALL = 120  # rows of the small copies, or a little more
DECODED = 8  # threads at most that glance at frames of a file: one decodes them, and many are held meanwhile
GPU_AT_ONCE = 512  # frames that a GPU looks at together


def inspect(
    frames: Frames | Clip | str | Path,
    *,
    inspector: str | Path | Inspector = "jostle",
    causal: bool = False,
    device: str = "cpu",
    fps: Fraction | float | None = None,
    progress: Progress | None = None,
) -> npt.NDArray[np.float64]:
    """(T,) probabilities that each frame of a video was struck: blackened, blurred, covered, broken, overexposed ...

    Each frame is set beside its neighbours, so that cuts, fades and flashes are told from damage. Frames of one colour
    are struck where one scene goes on before and behind them, whatever colour it is; and all are of a video in which
    there is nothing else to be seen. A video is read as it goes by, and memory does not grow with its length.

    Args:
        frames: (T, H, W, 3) uint8 RGB, a Clip, or the path of a video or of a folder of images.
        inspector: `jostle` for the one that comes along, weights of your own, or an `Inspector`.
        causal: from what came before a frame alone, as live use needs it.
        device: `auto`, `cpu` or `cuda`.
        fps: the rate of images that have no `times.json`.
        progress: called with (frames done, frames in all).
    """
    return inspection(
        frames, inspector=inspector, causal=causal, device=device, fps=fps, progress=progress
    ).probabilities


def inspection(
    frames: Frames | Clip | str | Path,
    *,
    inspector: str | Path | Inspector = "jostle",
    causal: bool = False,
    device: str = "cpu",
    fps: Fraction | float | None = None,
    threshold: float | None = None,
    pictures: int = 0,
    progress: Progress | None = None,
) -> Inspection:
    """The same with the stretches, times and all that a record of it needs; arguments as of `inspect`.

    Args:
        threshold: the probability from which a frame counts as struck; by default the inspector's own.
        pictures: small copies of so many frames are kept, for drawings.
    """
    from jostle.loading.inspector import load_inspector

    if threshold is not None and not 0 <= threshold <= 1:
        raise BadValue(f"a threshold is a probability from 0 to 1, got {threshold}")
    one = load_inspector(inspector, device=device) if isinstance(inspector, str | Path) else inspector
    if isinstance(frames, str | Path):
        from jostle.media.decode import Reader

        with Reader(single_video(frames), fps=fps) as reader:
            passed = _Passed(reader, len(reader), pictures)
            told = _told(one, passed, len(reader), causal, min(cores(), DECODED), progress)
            pts, rate, small, blank = reader.pts, reader.fps, passed.small, passed.blank
    else:
        clip = frames if isinstance(frames, Clip) else None
        known = checked_frames(frames) if clip is None else clip.frames
        told = _told(one, known, len(known), causal, cores(), progress)
        rate = checked_rate(30 if fps is None else fps) if clip is None else clip.fps
        pts = times_at_rate(len(known), rate) if clip is None else clip.pts
        small = [_small(known[number]) for number in sorted(_spread(len(known), pictures))]
        blank = all(map(_is_blank, known))
    if blank and one.blank_rule and not causal:  # it has no scene to come back; live, nobody knows what follows
        told[:] = 1.0
    least = one.threshold(causal=causal) if threshold is None else threshold
    return Inspection(told, least, pts, rate, causal, one.name, one.fingerprint, tuple(small))


def draw_inspection(found: Inspection, out: str | Path, *, title: str = "") -> Path:
    """Draw a strip of the frames that an inspection kept, and the curve of its probabilities.

    Args:
        out: a .png, .pdf or .svg file.
    """
    from jostle.figures.inspection_figure import draw_inspection as draw

    return draw(found, Path(out), title=title)


def _told(
    inspector: Inspector, frames: Iterable[Frame], total: int, causal: bool, threads: int, progress: Progress | None
) -> npt.NDArray[np.float64]:
    """(T,) probabilities; before a GPU, threads glance at frames and more of them are looked at together."""
    if inspector.device.type == "cuda":
        coming = inspector.inspect(frames, causal=causal, at_once=GPU_AT_ONCE, jobs=threads)
    else:
        coming = inspector.inspect(frames, causal=causal)  # a CPU is busy with the network itself

    def counted() -> Iterator[float]:
        for number, probability in enumerate(coming, 1):
            yield probability
            if progress is not None:
                progress(number, total)

    return np.fromiter(counted(), np.float64)


class _Passed:
    """Frames on their way past, some of them kept as small copies.

    Attributes:
        blank: whether nothing was to be seen in any of them.
    """

    def __init__(self, frames: Iterable[Frame], total: int, pictures: int) -> None:
        self._frames, self._wanted = frames, _spread(total, pictures)
        self.small: list[Frame] = []
        self.blank = True

    def __iter__(self) -> Iterator[Frame]:
        for number, frame in enumerate(self._frames):
            self.blank = self.blank and _is_blank(frame)
            if number in self._wanted:
                self.small.append(_small(frame))
            yield frame


def _spread(total: int, pictures: int) -> set[int]:
    """So many frames, evenly spread."""
    return {(2 * i + 1) * total // (2 * pictures) for i in range(pictures)} if total else set()


def _small(frame: Frame) -> Frame:
    step = max(1, min(frame.shape[:2]) // TALL)
    return np.array(frame[::step, ::step])


def _is_blank(frame: Frame) -> bool:
    from jostle.models.blank_frames import are_blank
    from jostle.models.glance import glance

    return bool(are_blank(glance(frame)[None])[0])
