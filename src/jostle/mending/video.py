"""Mending of a video file; timestamps and audio are preserved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.corruptions.engine.video import output_image_names, pump
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer
from jostle.mending.repair import Mask, MendedSource, MendMethod

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class MendedVideo:
    """Result of mending one video.

    Attributes:
        frames: number of frames written.
        mended: number of frames replaced.
        audio: whether the audio was copied.
        warnings: warnings for the user.
    """

    path: Path
    frames: int
    mended: int
    audio: bool
    warnings: tuple[str, ...]


def mend_video(
    reader: Reader,
    damaged: Mask,
    out: Path,
    how: MendMethod,
    *,
    lossless: bool = False,
    progress: Progress | None = None,
) -> MendedVideo:
    """Write the mended video; the output file appears when it is complete, or not at all."""
    mended = MendedSource(reader, damaged, how)
    writer = Writer(
        out,
        size=reader.size,
        fps=reader.fps,
        time_base=reader.time_base,
        codec="ffv1" if lossless and out.suffix else None,
        names=output_image_names(reader, lossless),
        faststart=True,
        audio_from=reader.coded_path,
    )
    with writer:
        pump(mended, writer, [int(tick) for tick in reader.ticks], progress)
        reader.check_unchanged()
    return MendedVideo(out, len(reader), int(np.sum(damaged)), writer.has_sound, (*reader.warnings, *writer.warnings))
