"""A convolution frame by frame gives the numbers of the library's own."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from jostle.models.networks.layers import Triple, convolution


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("size", [(1, 1, 1), (1, 3, 3), (3, 3, 3), (3, 1, 1), (5, 1, 1), (7, 7, 7), (3, 7, 7)])
@pytest.mark.parametrize("stride", [(1, 1, 1), (1, 2, 2), (2, 2, 2), (2, 1, 1), (4, 1, 1), (8, 1, 1), (2, 4, 4)])
@pytest.mark.parametrize("groups", [1, 4])
def test_numbers_are_those_of_a_3d_convolution(length: int, size: Triple, stride: Triple, groups: int) -> None:
    torch.manual_seed(0)
    layer = convolution(4, 8, size, stride, groups=groups, bias=groups == 1)
    x = torch.randn(2, 4, length, 9, 10)
    with torch.no_grad():
        made = layer(x)
        wanted = F.conv3d(x, layer.weight, layer.bias, layer.stride, layer.padding, groups=groups)
    assert made.shape == wanted.shape
    assert torch.allclose(made, wanted, atol=1e-5)


def test_where_gradients_are_wanted_it_is_the_librarys_own() -> None:
    torch.manual_seed(0)
    layer, x = convolution(4, 8, (3, 3, 3)), torch.randn(2, 4, 5, 9, 10)
    assert torch.equal(layer(x), F.conv3d(x, layer.weight, None, layer.stride, layer.padding))
    with torch.no_grad():
        assert layer(x).is_contiguous(memory_format=torch.channels_last_3d)
