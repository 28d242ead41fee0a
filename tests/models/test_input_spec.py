"""Geometry of input specs: centre crops, three crops, rounding and frame indices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.models.preprocessing.geometry import centre_crop, cut


@pytest.mark.parametrize(
    ("width", "smaller", "larger", "even"),
    [(4, 0, 0, 0), (5, 0, 1, 0), (6, 1, 1, 1), (7, 1, 2, 2), (9, 2, 3, 2), (11, 3, 4, 4), (12, 4, 4, 4)],
)
def test_centre_crop_of_an_odd_margin(width: int, smaller: int, larger: int, even: int) -> None:
    frame = torch.arange(width).expand(1, 1, 4, width)
    assert centre_crop(frame, 4)[0, 0, 0, 0] == smaller
    assert centre_crop(frame, 4, "larger")[0, 0, 0, 0] == larger
    assert centre_crop(frame, 4, "even")[0, 0, 0, 0] == even
    assert cut(frame, 4, "ten", "even")[4, 0, 0, 0, 0] == even


def test_invalid_centre_is_refused() -> None:
    with pytest.raises(BadValue, match="odd_margin is one of smaller, larger, even, not 'floor'"):
        InputSpec(16, 4, 128, 112, odd_margin="floor")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="crops is one of centre, three, ten, not 'five'"):
        InputSpec(16, 4, 128, 112, crops="five")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="a clip spread 'first' covers the whole video; clips must be 1"):
        InputSpec(16, 4, 128, 112, spread="first", clips=10)
    with pytest.raises(BadValue, match="starts 'parts' needs spread 'span'"):
        InputSpec(16, 4, 128, 112, starts="parts")
    with pytest.raises(BadValue, match="shrunk must be at least 1, got 0"):
        InputSpec(16, 4, 128, 112, shrunk=0)


@pytest.mark.parametrize("upright", [False, True])
def test_three_crops_lie_along_the_long_side(upright: bool) -> None:
    frame = torch.arange(5 * 12).reshape(1, 1, 5, 12)
    crops = cut(frame.transpose(2, 3) if upright else frame, 4, "three", "larger")
    assert crops.shape == (3, 1, 1, 4, 4)
    assert crops[:, 0, 0, 0, 0].tolist() == [12, 12 + 4, 12 + 8]  # one more row was cropped above
    spec = InputSpec(2, 2, None, 4, crops="three")
    assert spec.prepare(np.zeros((2, 5, 12, 3), np.uint8)).shape == (3, 3, 2, 4, 4)


def test_rounding_of_the_long_side() -> None:
    frames = np.zeros((1, 6, 10, 3), np.uint8)
    for floored, size in ((False, (4, 7)), (True, (4, 6))):
        spec = InputSpec(1, 1, 4, 4, floored=floored)
        assert spec.resized_to(6, 10) == size
        assert spec._normal(torch.from_numpy(frames)).shape[-2:] == size
    assert InputSpec(1, 1, 10, 4, fit="long").resized_to(6, 10) == (6, 10)
    assert InputSpec(1, 1, None, 4).resized_to(6, 10) == (6, 10)
    assert InputSpec(1, 1, (3, 5), 3).resized_to(6, 10) == (3, 5)


def test_crop_is_resized_after_cropping() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (2, 10, 14, 3), np.uint8)
    spec = InputSpec(
        2, 2, None, 10, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4), antialias=False, shrunk=8, crops="three"
    )
    crops = cut(torch.from_numpy(frames).permute(0, 3, 1, 2).float(), 10, "three") / 255
    small = F.interpolate(crops.flatten(0, 1), (8, 8), mode="bilinear", align_corners=False).reshape(3, 2, 3, 8, 8)
    by_hand = (small - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / torch.tensor([0.2, 0.3, 0.4])[:, None, None]
    assert torch.allclose(spec.prepare(frames), by_hand.transpose(1, 2), atol=1e-5)


def test_frame_indices_of_a_window() -> None:
    def picks(frames: int, step: int, spread: str) -> tuple[int, ...]:
        return InputSpec(frames, 1, None, 8, step=step, spread=spread).picks  # type: ignore[arg-type]

    assert picks(8, 8, "span") == (0, 9, 18, 27, 36, 45, 54, 63)
    assert picks(16, 5, "span")[:4] == (0, 5, 10, 15)
    assert picks(16, 5, "span")[-1] == 79
    assert picks(3, 4, "step") == picks(3, 4, "first") == (0, 4, 8)
    assert picks(3, 4, "even") == (2, 6, 10)
    assert picks(1, 6, "span") == (0,)
