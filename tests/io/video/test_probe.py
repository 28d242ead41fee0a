"""Facts about video files, and imports without a decoder."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from jostle.errors import BadValue
from jostle.io.video.source import probe
from jostle.io.video.validation import Limits


def test_facts_of_an_mp4(videos: dict[str, Path]) -> None:
    facts = probe(videos["h264_b_frames"])
    assert facts.path == str(videos["h264_b_frames"])
    assert (facts.container, facts.codec) == ("mov,mp4,m4a,3gp,3g2,mj2", "h264")
    assert (facts.width, facts.height, facts.rotation) == (64, 48, 0)
    assert (facts.fps, facts.time_base) == (Fraction(25), Fraction(1, 12800))
    assert (facts.declared_frames, facts.duration_s) == (60, 2.4)
    assert (facts.pixel_format, facts.bit_depth, facts.sample_aspect) == ("yuv420p", 8, 1)
    assert (facts.interlaced, facts.audio_codec, facts.video_streams) == (False, None, 1)
    assert facts.bit_rate == pytest.approx(videos["h264_b_frames"].stat().st_size * 8 / 2.4, rel=0.01)
    assert (facts.decoder, facts.warnings) == ("pyav", ())


def test_bytes_and_str_and_path_name_the_same_file(videos: dict[str, Path]) -> None:
    path = videos["mjpeg_mkv"]
    assert probe(path) == probe(str(path)) == probe(str(path).encode())
    assert probe(path).colour_range == "full"


def test_real_clips_have_facts(media_folder: Path) -> None:
    facts = probe(media_folder / "WUzgd7C1pWA.mp4")
    assert (facts.fps, facts.audio_codec, facts.declared_frames) == (Fraction(30000, 1001), "aac", 327)
    odd_title = probe(next(media_folder.glob("TrumanShow*.avi")))  # its title is not UTF-8
    assert (odd_title.codec, odd_title.width, odd_title.height) == ("mpeg4", 432, 240)


def test_the_environment_sets_the_pixel_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_MAX_PIXELS", "1000")
    assert Limits().max_pixels == 1000
    monkeypatch.setenv("JOSTLE_MAX_PIXELS", "lots")
    with pytest.raises(BadValue, match="JOSTLE_MAX_PIXELS must be a positive whole number of pixels, got 'lots'"):
        Limits()


def test_importing_the_package_loads_no_decoder() -> None:
    program = (
        "import sys, jostle, jostle.io.video, jostle.io.video.source, jostle.io.video.decode, jostle.io.video.encode\n"
        "assert 'av' not in sys.modules and 'cv2' not in sys.modules, 'a decoder was loaded'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
