"""Small video files of every supported kind, written once per session."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from helpers.coded_videos import scene, write_video
from jostle.core.types.clip import Frame

MakeVideo = Callable[..., Path]


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
