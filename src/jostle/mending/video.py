"""A video with its struck frames mended: times and sound as they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.corruptions.engine.video import names_of_images, pump
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer
from jostle.mending.repair import How, Mask, Mended

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class MendedVideo:
    """What became of one video.

    Attributes:
        frames: frames written.
        mended: how many of them were made anew.
        audio: whether sound was carried over.
        warnings: what a user should know.
    """

    path: Path
    frames: int
    mended: int
    audio: bool
    warnings: tuple[str, ...]


def mend_video(
    reader: Reader, struck: Mask, out: Path, how: How, *, lossless: bool = False, progress: Progress | None = None
) -> MendedVideo:
    """Write the mended video; the target appears when it is complete, or not at all."""
    mended = Mended(reader, struck, how)
    writer = Writer(
        out,
        size=reader.size,
        fps=reader.fps,
        time_base=reader.time_base,
        codec="ffv1" if lossless and out.suffix else None,
        names=names_of_images(reader, lossless),
        faststart=True,
        audio_from=reader.coded_path,
    )
    with writer:
        pump(mended, writer, [int(tick) for tick in reader.ticks], progress)
        reader.check_unchanged()
    return MendedVideo(out, len(reader), int(np.sum(struck)), writer.has_sound, (*reader.warnings, *writer.warnings))
