"""Where the centre of a frame is."""

from __future__ import annotations

import pytest
import torch

from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec, centre_crop, ten_crop


@pytest.mark.parametrize(
    ("width", "smaller", "even"), [(4, 0, 0), (5, 0, 0), (6, 1, 1), (7, 1, 2), (9, 2, 2), (11, 3, 4), (12, 4, 4)]
)
def test_a_margin_that_cannot_be_halved(width: int, smaller: int, even: int) -> None:
    frame = torch.arange(width).expand(1, 1, 4, width)
    assert centre_crop(frame, 4)[0, 0, 0, 0] == smaller
    assert centre_crop(frame, 4, "even")[0, 0, 0, 0] == even
    assert ten_crop(frame, 4, "even")[4, 0, 0, 0, 0] == even


def test_what_it_may_be() -> None:
    with pytest.raises(BadValue, match="odd_margin is one of smaller, even, not 'floor'"):
        InputSpec(16, 4, 128, 112, odd_margin="floor")  # type: ignore[arg-type]
