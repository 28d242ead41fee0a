"""Small video files of every supported kind, written once per session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from jostle.core.types.clip import Frame
from jostle.io.video.colour import FromRgb

MakeVideo = Callable[..., Path]


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
    **settings: object,
) -> Path:
    """Encode frames with PyAV alone, so that reading is tested against something other than our Writer."""
    convert = FromRgb(pixel_format)
    with av.open(str(path), "w", format=muxer) as container:
        stream = container.add_stream(encoder, rate=25, options=options or {})
        context = stream.codec_context
        context.height, context.width = convert.size(*frames[0].shape[:2])
        context.pix_fmt = pixel_format
        context.time_base = stream.time_base = time_base
        context.thread_count = 1
        for name, value in settings.items():
            setattr(context, name, value)
        for number, frame in enumerate(frames):
            picture = convert(frame)
            picture.pts = number if ticks is None else ticks[number]
            picture.time_base = time_base
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="session")
def frames() -> list[Frame]:
    return scene()


@pytest.fixture(scope="session")
def make_video() -> MakeVideo:
    return write_video


@pytest.fixture(scope="session")
def make_scene() -> Callable[..., list[Frame]]:
    return scene


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory, frames: list[Frame]) -> dict[str, Path]:
    """Write one file for each way in which codecs and containers order their frames."""
    folder = tmp_path_factory.mktemp("videos")
    short = {"g": "12", "bf": "2"}
    gaps = np.random.default_rng(5).integers(1, 90, len(frames))
    irregular = (np.cumsum(gaps) - gaps[0]).tolist()
    # Macroblock trees differ from run to run on a busy machine, and with them the bytes that tests damage.
    x264 = {"preset": "veryfast", "mbtree": "0", **short}
    return {
        "h264_b_frames": write_video(folder / "b.mp4", frames, options=x264),
        "h264_open_gop": write_video(
            folder / "open.mkv", frames, options={**x264, "x264-params": "open-gop=1:scenecut=0"}
        ),
        "h264_long_gop": write_video(folder / "long.mp4", frames, options={**x264, "g": "60"}),
        "h264_vfr": write_video(folder / "vfr.mp4", frames, options=x264, ticks=irregular, time_base=Fraction(1, 1000)),
        "mpeg4_avi": write_video(folder / "m4.avi", frames, encoder="mpeg4", options=short),
        "mpeg2_ts": write_video(folder / "m2.ts", frames, encoder="mpeg2video", options=short),
        "vp9_mkv": write_video(
            folder / "vp9.mkv",
            frames,
            encoder="libvpx-vp9",
            options={"g": "12", "cpu-used": "8", "deadline": "realtime"},
        ),
        "hevc_mp4": write_video(
            folder / "hevc.mp4",
            frames,
            encoder="libx265",
            options={"preset": "ultrafast", "x265-params": "keyint=12:bframes=2:open-gop=1:pools=1:log-level=none"},
        ),
        "mjpeg_mkv": write_video(folder / "mj.mkv", frames, encoder="mjpeg", pixel_format="yuvj420p"),
    }
