"""What is changed of an input: sizes go together, and weights that do not fit are told of in a few words."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from jostle.errors import CheckpointError
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import changed, load_weights


@pytest.mark.parametrize(("resize", "wanted"), [(112, 54), ((112, 150), (54, 72)), (None, None)])
def test_a_size_alone_takes_the_resize_along(resize: tuple[int, int] | int | None, wanted: object) -> None:
    spec = InputSpec(frames=8, stride=8, resize=resize, size=100)
    assert changed("net", spec, {"size": 48}).resize == wanted
    assert changed("net", spec, {"size": 48, "resize": 60}).resize == 60


@pytest.mark.fault("F54")
def test_F54_many_names_are_few_in_the_message() -> None:
    network = nn.Sequential(*(nn.Linear(2, 2) for _ in range(200)))
    with pytest.raises(CheckpointError) as caught:
        load_weights("net", network, {f"other.{i}": torch.zeros(1) for i in range(300)})
    assert str(caught.value) == (
        "net: the weights belong to another network: 400 missing: 0.weight, 0.bias, 1.weight and 397 more; "
        "300 unexpected: other.0, other.1, other.2 and 297 more"
    )
