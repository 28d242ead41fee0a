"""Construction without weight initialisation: parameters stay uninitialised, buffers keep their values."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from jostle.models.checkpoints import Uninitialised
from jostle.models.detection.blocks.pyramid import sinusoids


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.convolution = nn.Linear(3, 4), nn.Conv3d(2, 3, 3)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("fixed", nn.init.normal_(torch.empty(5)), persistent=False)


def test_parameters_are_not_initialised_but_buffers_are() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        with Uninitialised():
            network = Layers()
        torch.manual_seed(3)
        assert torch.equal(network.fixed, torch.empty(5).normal_())  # the first draw: no parameter used the generator
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert torch.equal(network.norm.weight, torch.ones(4))
    known = Layers()
    network.load_state_dict(known.state_dict())
    x = torch.ones(2, 3)
    assert torch.equal(network.linear(x), known.linear(x))


def test_meta_tensors_stay_without_values() -> None:
    with torch.device("meta"), Uninitialised():
        assert torch.empty(2, 3).normal_().is_meta
        assert Layers().linear.weight.is_meta
        table = sinusoids(6, 4)
    assert table.is_meta
    assert table.shape == sinusoids(6, 4).shape
