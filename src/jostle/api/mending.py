"""Struck frames taken out of a video."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.api.corrupting import FramesOrClip, Progress, single_video
from jostle.api.inspecting import inspection
from jostle.errors import BadValue
from jostle.types.clip import Clip, checked_frames

if TYPE_CHECKING:
    from jostle.mending.pictures import How
    from jostle.mending.video import MendedVideo
    from jostle.models.inspector import Inspector


def mend(
    frames: FramesOrClip,
    *,
    how: How = "blend",
    struck: npt.ArrayLike | None = None,
    inspector: str | Path | Inspector = "jostle",
    device: str = "cpu",
) -> FramesOrClip:
    """The frames with those that were struck made anew from the whole ones around them; the others are untouched.

    Args:
        frames: (T, H, W, 3) uint8 RGB, or a Clip.
        how: `hold` the last whole frame, `blend` from the one before to the one after, or `motion`: blend what moves
            along the optical flow between the two, whose last bits depend on the build of OpenCV.
        struck: (T,) booleans, which frames; by default the inspector tells.
        inspector: `jostle` for the one that comes along, weights of your own, or an `Inspector`.
        device: where the inspector runs: `auto`, `cpu` or `cuda`.

    Raises:
        DataError: if every frame was struck.

    >>> import numpy as np
    >>> clip = np.stack([np.full((4, 4, 3), 10 * t, np.uint8) for t in range(6)])
    >>> clip[2:4] = 255
    >>> mend(clip, struck=[False, False, True, True, False, False])[:, 0, 0, 0].tolist()
    [0, 10, 20, 30, 40, 50]
    """
    from jostle.corrupting.stages import ClipSource
    from jostle.mending.pictures import Mended

    clip = frames if isinstance(frames, Clip) else Clip.at_rate(checked_frames(frames), 30)
    mask = inspection(clip, inspector=inspector, device=device).struck if struck is None else _mask(struck)
    made = Mended(ClipSource(clip), mask, how).block(0, len(clip))
    return clip.with_frames(made) if isinstance(frames, Clip) else np.array(made)


def mend_file(
    source: str | Path,
    out: str | Path,
    *,
    how: How = "blend",
    struck: npt.ArrayLike | None = None,
    inspector: str | Path | Inspector = "jostle",
    threshold: float | None = None,
    device: str = "cpu",
    lossless: bool = False,
    fps: Fraction | float | None = None,
    overwrite: bool = True,
    progress: Progress | None = None,
) -> MendedVideo:
    """Mend a video, streamed; times and sound stay as they are. Arguments as of `mend`.

    Args:
        source: a local video file, or a folder of numbered images.
        out: .mp4 or .mkv, or a folder for images; it appears when it is complete, or not at all.
        threshold: the probability from which a frame counts as struck; by default the inspector's own.
        lossless: FFV1 instead of H.264, PNG instead of JPEG.
        fps: the rate of images that have no `times.json`; 30 if nothing says it.
        progress: called with (frames done, frames in all), once for each pass.
    """
    from jostle.media.decode import Reader
    from jostle.mending.video import mend_video

    source, out = single_video(source), Path(out)
    if out.exists() and source.exists() and out.samefile(source):
        raise BadValue(f"{out} is the input itself; write somewhere else")
    if not overwrite and out.exists():
        raise BadValue(f"{out} exists; pass --overwrite to replace it")
    if struck is None:
        told = inspection(source, inspector=inspector, threshold=threshold, device=device, fps=fps, progress=progress)
        mask = told.struck
    else:
        mask = _mask(struck)
    with Reader(source, fps=fps) as reader:
        return mend_video(reader, mask, out, how, lossless=lossless, progress=progress)


def _mask(struck: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    mask = np.asarray(struck)
    if mask.dtype != np.bool_:
        raise BadValue(f"struck is one boolean a frame, got an array of {mask.dtype}")
    return mask
