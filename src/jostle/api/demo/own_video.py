"""What jostle can show of a video it has never seen: every corruption on a few seconds of it, and how far each moves
what the shipped extractor sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.api.demo.gallery import CLIP_SECONDS, write_exhibition
from jostle.core.types.clip import Clip
from jostle.errors import DataError
from jostle.io.files.video_ids import id_of
from jostle.io.video.decode import Reader
from jostle.models.weights.shipped import weights_file

EXTRACTOR = "puppet_net"
LONGEST_SIDE = 320  # of the clip on show: forty-eight of them are on one page
STRIDE = 4

Features = npt.NDArray[Any]


@dataclass(frozen=True)
class VideoDemo:
    """Results of the demo on a user's video.

    Attributes:
        gallery: a page that shows every corruption.
        sheet: the same as a picture, at every severity.
        shifts: how far each corruption moves what the extractor sees, by its name: 1 is as far as two moments of the
            clean clip are apart, by the median. Empty without torch, and for clips too short or without motion.
    """

    gallery: Path
    sheet: Path
    shifts: dict[str, float]


def show_video(
    video: Path, folder: Path, *, seed: int = 0, progress: Callable[[str, int, int], None] | None = None
) -> VideoDemo:
    """Corrupt the middle of a video every way there is, and write it down."""
    folder.mkdir(parents=True, exist_ok=True)
    clip = _middle(video)
    gauge = _Gauge.of(clip)
    shifts: list[float] = []

    def remark(corrupted: Clip) -> str:
        if gauge is None:
            return ""
        shifts.append(gauge.shift(corrupted))
        return f"moves what {EXTRACTOR} sees by {shifts[-1]:.2f}"

    def advance(done: int, total: int) -> None:
        if progress:
            progress("knocking the video about", done, total)

    about = f"{CLIP_SECONDS} s from the middle of {video.name}"
    if gauge is not None:
        about += "; 1 is as far as two moments of it are apart for the extractor, which was trained on puppets"
    exhibition = write_exhibition(folder, clip, id_of(video), about, seed=seed, remark=remark, progress=advance)
    return VideoDemo(exhibition.page, exhibition.sheet, dict(zip(exhibition.notes, shifts, strict=True)))


def _middle(video: Path) -> Clip:
    with Reader(video) as reader:
        if len(reader) == 0:
            raise DataError(f"{video}: has no frames")
        length = min(max(round(CLIP_SECONDS * float(reader.fps)), 1), len(reader))
        lo = (len(reader) - length) // 2
        height, width = reader.size
        scale = min(LONGEST_SIDE / max(height, width), 1.0)
        size = max(round(width * scale / 2) * 2, 2), max(round(height * scale / 2) * 2, 2)
        frames = [_resized(frame, size) for at in range(lo, lo + length) for frame in reader.block(at, at + 1)]
        return Clip.at_rate(np.stack(frames), reader.fps)


def _resized(frame: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[Any]:
    return cv2.resize(frame, size, interpolation=cv2.INTER_AREA)


class _Gauge:
    """Measures by the features of a clean clip how far a corrupted one has moved."""

    def __init__(self, extractor: Callable[[Any], Features], frames: int, clean: Features, unit: float) -> None:
        self._extractor, self._frames, self._clean, self._unit = extractor, frames, clean, unit

    @classmethod
    def of(cls, clip: Clip) -> _Gauge | None:
        """None where nothing can be measured."""
        try:
            from jostle.models.checkpoints import read_weights
            from jostle.models.extractors.extractor import load_extractor
        except ImportError:
            return None
        extractor = load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR)))
        windows = _windows(clip, extractor.spec.frames)
        if len(windows) < 2:
            return None
        clean = extractor(windows)
        apart = np.linalg.norm(clean[:, None] - clean[None], axis=2)[np.triu_indices(len(clean), 1)]
        unit = float(np.median(apart))
        return cls(extractor, extractor.spec.frames, clean, unit) if unit > 0 else None

    def shift(self, corrupted: Clip) -> float:
        """The mean over windows, in units of what two clean moments are apart."""
        features = self._extractor(_windows(corrupted, self._frames))
        length = min(len(features), len(self._clean))
        return float(np.linalg.norm(features[:length] - self._clean[:length], axis=1).mean() / self._unit)


def _windows(clip: Clip, frames: int) -> npt.NDArray[Any]:
    starts = range(0, len(clip) - frames + 1, STRIDE)
    return np.stack([clip.frames[at : at + frames] for at in starts]) if starts else np.empty((0,), np.uint8)
