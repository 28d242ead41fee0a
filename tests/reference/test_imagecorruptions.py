"""Profile `imagenet-c` against imagecorruptions 1.1.2: pixel by pixel, and noise by its distribution."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pytest

import jostle

pytest.importorskip(
    "imagecorruptions",
    reason="imagecorruptions is not installed; make test-all runs this in the peer environment",
    exc_type=ImportError,
)

from bench.agreement import SHARE, STANDARD_ERRORS, allowed_gap, ks_distance, ks_limit
from bench.clips import drawn_frames, real_frames
from bench.peer import peer, seed

pytestmark = pytest.mark.peer

Frame = npt.NDArray[np.uint8]
SEVERITIES = (1, 2, 3, 4, 5)
SIZES = ((224, 224), (256, 340), (131, 197))  # (height, width); the last is odd both ways
CLIPS = ("WUzgd7C1pWA.mp4", "v_SoccerJuggling_g23_c01.avi", "cctv_fi001.mp4")

# Grey levels by which a pixel may differ. One: both sides drop the fraction of the same real number, and
# where that number is whole the last bit of the arithmetic decides. Two where the issue grants it: JPEG,
# because two builds of the library may differ in the inverse transform; resampling (zoom), because the peer
# sums its layers in float32.
TOLERANCE = {
    "brightness": 1,
    "contrast": 1,
    "saturate": 1,
    "pixelate": 1,
    "defocus_blur": 1,
    "gaussian_blur": 1,
    "zoom_blur": 2,
    "jpeg_compression": 2,
}
NOISE = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise")


def corrupted(name: str, frames: npt.NDArray[np.uint8], severity: int, *, seed: int = 0) -> npt.NDArray[np.uint8]:
    return jostle.corrupt(frames, f"imagenet-c/{name}:{severity}", seed=seed, video_id="reference")


@functools.cache
def pictures(height: int, width: int) -> Frame:
    """Return real frames, a drawn one, ramps of greys and colours, and noise: (N, height, width, 3)."""
    real = [real_frames(clip, 20, height, width) for clip in CLIPS]
    frames = [clip[-1] for clip in real if clip is not None]
    return np.stack([*frames, drawn_frames(1, height, width)[0], _stairs(height, width), _speckled(height, width)])


def _stairs(height: int, width: int) -> Frame:
    """Return ramps along x of all greys, and of pure and mixed colours from black to full strength."""
    ramp = np.linspace(0, 255, width).astype(np.uint8)
    bands = [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 0.5, 0.25)]
    rows = np.stack([(ramp[:, None] * np.array(band)).astype(np.uint8) for band in bands])
    return rows[np.arange(height) * len(bands) // height]


def _speckled(height: int, width: int) -> Frame:
    return np.random.default_rng(3).integers(0, 256, (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[1]}x{size[0]}")
@pytest.mark.parametrize("name", TOLERANCE)
def test_pixels_equal_the_peer(name, size, severity):
    frames = pictures(*size)
    ours = corrupted(name, frames, severity).astype(int)
    theirs = np.stack([peer(name, frame, severity) for frame in frames]).astype(int)
    apart = np.abs(ours - theirs).max(axis=(1, 2, 3))
    assert apart.max() <= TOLERANCE[name], f"largest difference for each picture: {apart.tolist()}"


LEVELS = np.array([0, 12, 50, 90, 128, 180, 235, 255], np.uint8)
BAND = 14  # rows of each flat band on top of the picture: 75,264 values over the eight frames


@functools.cache
def noisy(name: str, severity: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the changes by jostle and by imagecorruptions of eight copies of one image: (8, H, W, 3) each."""
    frames = banded()
    seed(severity)
    theirs = np.stack([peer(name, frame, severity) for frame in frames])
    ours = corrupted(name, frames, severity)
    return ours.astype(np.int64) - frames, theirs.astype(np.int64) - frames


@functools.cache
def banded() -> npt.NDArray[np.uint8]:
    """Return eight copies of a real image whose upper half has flat bands of the grey levels above."""
    clip = real_frames(CLIPS[1], 20, 224, 224)
    frame = (drawn_frames(1, 224, 224) if clip is None else clip)[-1].copy()
    frame[: len(LEVELS) * BAND] = np.repeat(LEVELS, BAND)[:, None, None]
    return np.repeat(frame[None], 8, axis=0)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NOISE)
def test_noise_has_the_mean_and_variance_of_the_peer(name, severity):
    ours, theirs = noisy(name, severity)
    means = [x.mean(axis=(1, 2, 3)) for x in (ours, theirs)]
    # 3 % of a mean near zero is less than chance alone moves it; five standard errors then.
    assert abs(means[0].mean() - means[1].mean()) <= allowed_gap(*means), [m.mean() for m in means]
    assert ours.var() == pytest.approx(theirs.var(), rel=SHARE)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NOISE)
def test_noise_distribution_of_each_grey_level_equals_the_peer(name, severity):
    ours, theirs = noisy(name, severity)
    apart = {}
    for i, level in enumerate(LEVELS):
        rows = slice(i * BAND, (i + 1) * BAND)
        apart[int(level)] = ks_distance(ours[:, rows], theirs[:, rows])
    n = 8 * BAND * 224 * 3
    assert max(apart.values()) <= ks_limit(n, n), apart


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", NOISE)
def test_noise_distribution_on_a_real_image_equals_the_peer(name, severity):
    ours, theirs = noisy(name, severity)
    assert ks_distance(ours, theirs) <= ks_limit(ours.size, theirs.size)


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_independent_between_pixels_channels_and_frames(name):
    noise, _ = noisy(name, 3)
    # A pixel near black or white is clipped to one side in every frame; the mean over the frames is that
    # share.
    noise = noise - noise.mean(axis=0)
    pairs = {
        "channel": (noise[..., 0], noise[..., 1]),
        "x": (noise[:, :, 1:], noise[:, :, :-1]),
        "y": (noise[:, 1:], noise[:, :-1]),
        "time": (noise[1:], noise[:-1]),
    }
    # Eight independent values less their mean are correlated by -1/7.
    expected = {"channel": 0, "x": 0, "y": 0, "time": -1 / 7}
    for way, (a, b) in pairs.items():
        correlation = (a * b).mean() / np.sqrt((a**2).mean() * (b**2).mean())
        # Twice the standard error, because strength, and with it the weight of a pair, varies over the picture.
        assert abs(correlation - expected[way]) < STANDARD_ERRORS * 2 / np.sqrt(a.size), way
