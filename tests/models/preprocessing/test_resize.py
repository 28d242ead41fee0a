"""Integer image resizing equals Pillow exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.models.preprocessing.geometry import BITS, pillow_resize, taps

# Unchanged, larger, smaller, along one axis only, and to a single pixel.
SIZES = [
    *[((240, 320), (224, 298)), ((37, 53), (64, 91)), ((720, 1280), (256, 455)), ((1280, 720), (398, 224))],
    *[((100, 100), (100, 31)), ((100, 100), (31, 100)), ((5, 7), (1, 1)), ((100, 100), (50, 60)), ((10, 90), (20, 30))],
]
# For these sizes Pillow 13 resizes the height first; (50, 75) is the limit where it does not.
UPRIGHT = [((301, 200), (256, 256)), ((1000, 400), (560, 224)), ((100, 100), (50, 76)), ((100, 100), (99, 101))]


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("size", "to"), [*SIZES, ((100, 100), (50, 75)), *UPRIGHT])
def test_every_pixel_equals_pillow(how: str, size: tuple[int, int], to: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    if (size, to) in UPRIGHT and int(pytest.importorskip("PIL").__version__.split(".")[0]) < 13:
        pytest.skip("this Pillow begins with the width")
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (*size, 3), np.uint8)
    edges = (rng.integers(0, 2, (*size, 3), np.uint8) * 255).astype(np.uint8)  # cubics overshoot here
    for picture in (noise, edges):
        method = getattr(image.Resampling, how.upper())
        expected = np.asarray(image.fromarray(picture).resize(to[::-1], method))
        actual = pillow_resize(torch.tensor(picture).permute(2, 0, 1), to, how)  # type: ignore[arg-type]
        assert (actual.permute(1, 2, 0).numpy() == expected).all()


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
def test_weights_of_a_pixel_sum_to_one(how: str) -> None:
    for length, to in ((7, 3), (3, 7), (1280, 341)):
        _, weights = taps(length, to, how)  # type: ignore[arg-type]
        assert np.abs(weights.sum(1) - (1 << BITS)).max() <= weights.shape[1]


def test_constant_image_stays_constant() -> None:
    picture = torch.full((3, 50, 40), 201, dtype=torch.uint8)
    assert (pillow_resize(picture, (33, 77), "bicubic") == 201).all()


def test_long_side_is_rounded_down_and_short_side_is_exact() -> None:
    spec = InputSpec(frames=1, stride=1, resize=256, size=224, arithmetic="pillow", layout="TCHW")
    assert spec._resized(torch.zeros(1, 3, 250, 333, dtype=torch.uint8)).shape[-2:] == (256, 340)
    assert spec._resized(torch.zeros(1, 3, 333, 250, dtype=torch.uint8)).shape[-2:] == (340, 256)


def test_letterboxed_frame_has_a_border_of_the_mean_colour() -> None:
    spec = InputSpec(
        frames=1, stride=1, resize=8, size=8, mean=(0.5, 0.25, 0.0), arithmetic="pillow", fit="long", beyond="mean"
    )
    prepared = spec.prepare(np.full((1, 10, 20, 3), 255, np.uint8))[0, :, 0]  # (3, 8, 8); the frame is 4 rows of it
    assert prepared[:, 2:6].flatten(1).unique(dim=1).squeeze().tolist() == [0.5, 0.75, 1.0]
    assert torch.allclose(prepared[:, :2], torch.tensor([128 / 255 - 0.5, 64 / 255 - 0.25, 0.0])[:, None, None])


def test_crop_beyond_the_frame_needs_a_fill() -> None:
    frames = np.full((1, 4, 4, 3), 255, np.uint8)
    with pytest.raises(BadValue, match="does not fit"):
        InputSpec(frames=1, stride=1, resize=None, size=7).prepare(frames)
    prepared = InputSpec(frames=1, stride=1, resize=None, size=7, beyond="black").prepare(frames)[0, 0, 0]
    assert prepared.sum(1).tolist() == [0, 4, 4, 4, 4, 0, 0]


@pytest.mark.parametrize("change", [{"arithmetic": "pil"}, {"fit": "both"}, {"beyond": "white"}])
def test_unknown_settings_are_refused(change: dict[str, str]) -> None:
    with pytest.raises(BadValue, match="is one of"):
        InputSpec(frames=1, stride=1, resize=8, size=8, **change)  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
def test_a_gpu_gives_the_same_numbers(how: str) -> None:
    pictures = torch.randint(0, 256, (2, 3, 240, 320), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    for to in ((224, 298), (300, 200), (128, 320)):
        here = pillow_resize(pictures, to, how)  # type: ignore[arg-type]
        assert torch.equal(pillow_resize(pictures.cuda(), to, how).cpu(), here)  # type: ignore[arg-type]
