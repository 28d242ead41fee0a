"""Changed input settings scale together, and mismatched weights raise a short message."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from jostle.errors import CheckpointError
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import changed, load_weights


@pytest.mark.parametrize(("resize", "expected"), [(112, 54), ((112, 150), (54, 72)), (None, None)])
def test_changing_size_scales_resize(resize: tuple[int, int] | int | None, expected: object) -> None:
    spec = InputSpec(frames=8, stride=8, resize=resize, size=100)
    assert changed("net", spec, {"size": 48}).resize == expected
    assert changed("net", spec, {"size": 48, "resize": 60}).resize == 60


@pytest.mark.fault("F54")
def test_F54_message_shortens_long_lists_of_names() -> None:
    network = nn.Sequential(*(nn.Linear(2, 2) for _ in range(200)))
    with pytest.raises(CheckpointError) as caught:
        load_weights("net", network, {f"other.{i}": torch.zeros(1) for i in range(300)})
    assert str(caught.value) == (
        "net: the weights belong to another network: 400 missing: 0.weight, 0.bias, 1.weight and 397 more; "
        "300 unexpected: other.0, other.1, other.2 and 297 more"
    )
