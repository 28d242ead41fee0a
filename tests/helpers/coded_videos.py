"""Video files of every kind that PyAV writes, of frames that are all different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from jostle.core.types.clip import Frame
from jostle.io.video.colour import FromRgb


def scene(count: int = 60, height: int = 48, width: int = 64) -> list[Frame]:
    """Return distinct frames: two squares that cross a gradient, with moving grain."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:height, :width]
    ground = np.stack([60 + x, 40 + 2 * y, 180 - x], -1)
    grain = rng.integers(-10, 11, (height, width, 3))
    frames = []
    for t in range(count):
        frame = ground + np.roll(grain, (t, 3 * t), (0, 1))
        left = t * (width - 16) // count
        frame[6:18, left : left + 12] = (230, 60 + 2 * t % 150, 40)
        frame[height - 20 : height - 8, width - 14 - left : width - 2 - left] = (30, 200, 220)
        frames.append(np.clip(frame, 0, 255).astype(np.uint8))
    return frames


def write_video(
    path: Path,
    frames: Sequence[Frame],
    *,
    encoder: str = "libx264",
    pixel_format: str = "yuv420p",
    options: dict[str, str] | None = None,
    ticks: Sequence[int] | None = None,
    time_base: Fraction = Fraction(1, 25),
    muxer: str | None = None,
    muxing: dict[str, str] | None = None,
    edit: Callable[[list[av.Packet]], None] | None = None,
    **settings: object,
) -> Path:
    """Encode frames with PyAV alone, so that reading is tested against something other than our Writer.

    Args:
        edit: changes the packets before they are stored.
    """
    convert = FromRgb(pixel_format)
    with av.open(str(path), "w", format=muxer, options=muxing) as container:
        stream = container.add_stream(encoder, rate=25, options=options or {})
        context = stream.codec_context
        context.height, context.width = convert.size(*frames[0].shape[:2])
        context.pix_fmt = pixel_format
        context.time_base = stream.time_base = time_base
        context.thread_count = 1
        for name, value in settings.items():
            setattr(context, name, value)
        packets: list[av.Packet] = []
        for number, frame in enumerate(frames):
            picture = convert(frame)
            picture.pts = number if ticks is None else ticks[number]
            picture.time_base = time_base
            packets += stream.encode(picture)
        packets += stream.encode(None)
        if edit:
            edit(packets)
        container.mux(packets)
    return path
