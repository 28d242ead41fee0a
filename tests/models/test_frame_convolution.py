"""Frame-by-frame 3D convolution equals that of torch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from jostle.models.networks.layers import Triple, convolution


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("size", [(1, 1, 1), (1, 3, 3), (3, 3, 3), (3, 1, 1), (5, 1, 1), (7, 7, 7), (3, 7, 7)])
@pytest.mark.parametrize("stride", [(1, 1, 1), (1, 2, 2), (2, 2, 2), (2, 1, 1), (4, 1, 1), (8, 1, 1), (2, 4, 4)])
@pytest.mark.parametrize("groups", [1, 4])
def test_output_equals_conv3d(length: int, size: Triple, stride: Triple, groups: int) -> None:
    torch.manual_seed(0)
    layer = convolution(4, 8, size, stride, groups=groups, bias=groups == 1)
    x = torch.randn(2, 4, length, 9, 10)
    with torch.no_grad():
        actual = layer(x)
        expected = F.conv3d(x, layer.weight, layer.bias, layer.stride, layer.padding, groups=groups)
    assert actual.shape == expected.shape
    assert torch.allclose(actual, expected, atol=1e-5)


def test_conv3d_of_the_library_is_used_for_gradients() -> None:
    torch.manual_seed(0)
    layer, x = convolution(4, 8, (3, 3, 3)), torch.randn(2, 4, 5, 9, 10)
    assert torch.equal(layer(x), F.conv3d(x, layer.weight, None, layer.stride, layer.padding))
    with torch.no_grad():
        assert layer(x).is_contiguous(memory_format=torch.channels_last_3d)
