"""Pictures of a corrupted video for a page: a strip of frames and a short clip, clean beside corrupted, as data."""

from __future__ import annotations

import base64
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frame
from jostle.errors import MediaError
from jostle.evaluation.results.record import RunRecord
from jostle.features.caches import SlidingFrames
from jostle.io.video.encode import Writer, viewing_codec
from jostle.reporting.analysis.replay import corrupted_mask, screened, spans_of
from jostle.reporting.html.blocks import Shot

SHOTS = 8  # frames in a strip
WIDTH = 176  # pixels of a frame
JPEG_QUALITY = 72
CLIP_SECONDS = 3.0
CLIP_QUALITY = 26  # of H.264, lower is better
Span = tuple[float, float]


@dataclass(frozen=True)
class Strip:
    """A video under a corruption, in pictures."""

    shots: tuple[Shot, ...]  # moments of a stretch, in order
    exact_input: bool  # whether those frames were the model's input, where not all were
    affected: tuple[Span, ...]  # what the corruption touches, as stretches in seconds
    end_s: float  # when the video ends
    clip: str  # a few seconds of clean beside corrupted, as a data address; empty where none could be made
    size: tuple[int, int]  # (height, width) of a picture

    @property
    def weight(self) -> int:
        """Letters that the pictures take in a page."""
        return len(self.clip) + sum(len(shot.clean) + len(shot.corrupted) for shot in self.shots)

    def without_clip(self) -> Strip:
        """Return the strip without its clip."""
        return replace(self, clip="")


def strip_of(record: RunRecord, video: str, cell: str, stretch: Span | None = None) -> Strip:
    """Return pictures of a stretch of a video, preferably of frames that were the model's input.

    Raises:
        DataError: if the video is gone, or the run does not say how the cell was made.
        MediaError: if the video cannot be read.
    """
    with screened(record, video, cell) as (footage, replay):
        pts, fps = footage.clean.pts, footage.clean.fps
        mask = corrupted_mask(record, video, cell, pts, fps)
        inputs = record.input_frames(video)
        chosen = _chosen(pts, mask, stretch or (0.0, footage.end_s), inputs)
        clip = _clip_frames(pts, mask, chosen, float(fps))
        numbers = np.union1d(chosen, clip)
        clean, after = SlidingFrames(footage.clean), SlidingFrames(footage.under(replay))
        pairs = {}
        for t in numbers.tolist():  # one at a time: a full film of large frames would not fit
            one = np.array([t])
            pairs[t] = (_small(clean.take(one)[0]), _small(after.take(one)[0]))
        shots = tuple(
            Shot(float(pts[t]), _jpeg(pairs[t][0]), _jpeg(pairs[t][1]), bool(mask[t])) for t in chosen.tolist()
        )
        exact_input = inputs is not None and bool(np.isin(chosen, inputs).all())
        size = pairs[int(chosen[0])][0].shape[:2]
        film = _film([pairs[t] for t in clip.tolist()], float(fps))
        return Strip(shots, exact_input, tuple(spans_of(mask, pts, fps)), footage.end_s, film, (size[0], size[1]))


def _chosen(
    pts: npt.NDArray[np.float64], mask: npt.NDArray[np.bool_], stretch: Span, inputs: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    """Choose frames evenly over a stretch, moving some onto corrupted frames that lie between."""
    lo = int(np.searchsorted(pts, stretch[0]))
    hi = max(int(np.searchsorted(pts, stretch[1])), lo + 1)
    lo, hi = min(lo, len(pts) - 1), min(hi, len(pts))
    there = np.arange(lo, hi)
    if inputs is not None and np.isin(there, inputs).any():
        there = there[np.isin(there, inputs)]
    even = there[np.unique(np.linspace(0, len(there) - 1, SHOTS).round().astype(np.int64))]
    hit = there[mask[there]]
    if not len(hit) or mask[even].sum() >= min(2, len(hit)):
        return even
    for target in np.unique([hit[len(hit) // 3], hit[2 * len(hit) // 3]]).tolist():
        free = np.flatnonzero(~mask[even])
        if target not in even and len(free):
            even[free[np.abs(even[free] - target).argmin()]] = target
    return np.unique(even)


def _clip_frames(
    pts: npt.NDArray[np.float64], mask: npt.NDArray[np.bool_], chosen: npt.NDArray[np.int64], fps: float
) -> npt.NDArray[np.int64]:
    """Return the frames of a few seconds around the corrupted ones among those chosen."""
    hit = chosen[mask[chosen]]
    middle = int(hit[len(hit) // 2]) if len(hit) else int(chosen[len(chosen) // 2])
    count = min(round(CLIP_SECONDS * fps), len(pts), 120)
    lo = min(max(middle - count // 2, 0), len(pts) - count)
    return np.arange(lo, lo + count)


def _small(frame: Frame) -> Frame:
    height, width = frame.shape[:2]
    if width <= WIDTH:
        return np.array(frame)
    tall = max(round(height * WIDTH / width), 1)
    return np.asarray(cv2.resize(frame, (WIDTH, tall), interpolation=cv2.INTER_AREA), np.uint8)


def _jpeg(frame: Frame) -> str:
    done, data = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise MediaError("a frame could not be written as JPEG; reinstall opencv-python-headless")
    return f"data:image/jpeg;base64,{base64.b64encode(data.tobytes()).decode('ascii')}"


def _film(pairs: list[tuple[Frame, Frame]], fps: float) -> str:
    """Clean beside corrupted as an mp4; nothing where this machine cannot encode one."""
    if len(pairs) < 2:
        return ""
    height, width = (side - side % 2 for side in pairs[0][0].shape[:2])
    with tempfile.TemporaryDirectory(prefix="jostle-") as folder:
        path = Path(folder) / "clip.mp4"
        try:
            with Writer(
                path, size=(height, 2 * width), fps=round(fps, 3), codec=viewing_codec(), quality=CLIP_QUALITY
            ) as writer:
                for tick, (clean, corrupted) in enumerate(pairs):
                    writer.write(np.hstack([clean[:height, :width], corrupted[:height, :width]]), tick)
        except MediaError:
            return ""
        return f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
