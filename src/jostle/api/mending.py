"""Verbs that mend frames and single videos."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.api.damage import inspection
from jostle.api.video import FramesOrClip, single_video
from jostle.core.progress import Progress
from jostle.core.types.clip import Clip, check_frames
from jostle.io.files.atomic import refuse_existing, refuse_output_in

if TYPE_CHECKING:
    from jostle.corruptions.engine.damage_finder import DamageFinder
    from jostle.mending.inspection import Inspector
    from jostle.mending.repair import MendedVideo, MendMethod


def mend(
    frames: FramesOrClip,
    *,
    how: MendMethod = "blend",
    damaged: npt.ArrayLike | None = None,
    inspector: str | Path | Inspector | DamageFinder = "jostle",
    device: str = "cpu",
) -> FramesOrClip:
    """Replace damaged frames by frames made from the intact ones around them; the others are untouched.

    Args:
        frames: (T, H, W, 3) uint8 RGB, or a Clip.
        how: `hold` the last whole frame, `blend` from the one before to the one after, or `motion`: blend what moves
            along the optical flow between the two, whose last bits depend on the build of OpenCV. Or a mender of your
            own: its name, its import path, or the function.
        damaged: (T,) booleans, which frames are damaged; by default the inspector decides.
        inspector: as of `inspect`.
        device: where the inspector runs: `auto`, `cpu` or `cuda`.

    Raises:
        DataError: if every frame is damaged.

    >>> import numpy as np
    >>> clip = np.stack([np.full((4, 4, 3), 10 * t, np.uint8) for t in range(6)])
    >>> clip[2:4] = 255
    >>> mend(clip, damaged=[False, False, True, True, False, False])[:, 0, 0, 0].tolist()
    [0, 10, 20, 30, 40, 50]
    """
    from jostle.core.types.video import ClipSource
    from jostle.mending.mender import find_mender
    from jostle.mending.repair import MendedSource, damage_mask

    clip = frames if isinstance(frames, Clip) else Clip.at_rate(check_frames(frames), 30)
    find_mender(how)  # a wrong name is no reason to inspect a video first
    mask = inspection(clip, inspector=inspector, device=device).damaged if damaged is None else damage_mask(damaged)
    repaired = MendedSource(ClipSource(clip), mask, how).block(0, len(clip))
    return clip.with_frames(repaired) if isinstance(frames, Clip) else np.array(repaired)


def mend_file(
    source: str | Path,
    out: str | Path,
    *,
    how: MendMethod = "blend",
    damaged: npt.ArrayLike | None = None,
    inspector: str | Path | Inspector | DamageFinder = "jostle",
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
        threshold: the probability from which a frame counts as damaged; by default the inspector's own.
        lossless: FFV1 instead of H.264, PNG instead of JPEG.
        fps: the rate of images that have no `times.json`; 30 if nothing says it.
        progress: called with (frames done, frames in all), once for each pass.
    """
    from jostle.io.video.decode import Reader
    from jostle.mending.mender import find_mender
    from jostle.mending.repair import damage_mask, mend_video

    source, out = single_video(source), Path(out)
    refuse_output_in(source, out)
    refuse_existing(out, overwrite)
    find_mender(how)
    if damaged is None:
        result = inspection(source, inspector=inspector, threshold=threshold, device=device, fps=fps, progress=progress)
        mask = result.damaged
    else:
        mask = damage_mask(damaged)
    with Reader(source, fps=fps) as reader:
        return mend_video(reader, mask, out, how, lossless=lossless, progress=progress)
