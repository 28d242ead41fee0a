"""What weights are known by."""

from __future__ import annotations

import torch
from torch import nn

from jostle.models.checkpoints import tensors_fingerprint
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Recogniser


def test_equal_weights_have_equal_fingerprints() -> None:
    one, other = nn.Linear(2, 3), nn.Linear(2, 3)
    assert tensors_fingerprint(one) != tensors_fingerprint(other)
    other.load_state_dict(one.state_dict())
    found = tensors_fingerprint(one)
    assert found is not None
    assert found.startswith("sha256:")
    assert tensors_fingerprint(other) == found
    spec = InputSpec(1, 1, None, 8)
    assert tensors_fingerprint(Recogniser(one, spec)) == found
    with torch.no_grad():
        other.bias[0] += 1e-7
    assert tensors_fingerprint(other) != found
    assert tensors_fingerprint(nn.BatchNorm1d(3).to(torch.bfloat16)) is not None


def test_a_callable_has_none() -> None:
    assert tensors_fingerprint(len) is None
    assert tensors_fingerprint(Recogniser(lambda clips: clips)) is None
