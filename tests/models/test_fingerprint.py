"""Fingerprints of weights and of callables without weights."""

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
    fingerprint = tensors_fingerprint(one)
    assert fingerprint is not None
    assert fingerprint.startswith("sha256:")
    assert tensors_fingerprint(other) == fingerprint
    spec = InputSpec(1, 1, None, 8)
    assert tensors_fingerprint(Recogniser(one, spec)) == fingerprint
    with torch.no_grad():
        other.bias[0] += 1e-7
    assert tensors_fingerprint(other) != fingerprint
    assert tensors_fingerprint(nn.BatchNorm1d(3).to(torch.bfloat16)) is not None


def test_callable_has_no_fingerprint() -> None:
    assert tensors_fingerprint(len) is None
    assert tensors_fingerprint(Recogniser(lambda clips: clips)) is None
