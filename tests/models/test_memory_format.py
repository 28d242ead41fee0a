"""How clips lie in memory: 3D convolutions for a GPU get theirs with channels last, and answer the same."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jostle.models.devices import channels_last_on_gpu


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv3d(3, 4, 3), nn.MaxPool3d(2), nn.Conv3d(4, 2, 1))


def _read_by(network: nn.Sequential, clips: Tensor) -> tuple[list[bool], Tensor]:
    """Whether each convolution reads channels last, and what the network answers."""
    read: list[bool] = []

    def look(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        read.append(inputs[0].is_contiguous(memory_format=torch.channels_last_3d))

    for module in network:
        if isinstance(module, nn.Conv3d):
            module.register_forward_pre_hook(look)
    return read, network(clips)


def test_convolutions_for_a_gpu_read_channels_last_and_their_weights_stay() -> None:
    clips = torch.randn(2, 3, 6, 8, 8)
    plain, last = _network(), _network()
    channels_last_on_gpu(plain, torch.device("cpu"))
    channels_last_on_gpu(last, torch.device("cuda"))
    read, expected = _read_by(plain, clips)
    assert read == [False, False]
    read, answered = _read_by(last, clips)
    assert read == [True, True]
    assert last[0].weight.is_contiguous()
    torch.testing.assert_close(answered, expected)
