"""Memory format of clips: 3D convolutions on a GPU get channels-last inputs with equal results."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jostle.models.devices import channels_last_on_gpu


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv3d(3, 4, 3), nn.MaxPool3d(2), nn.Conv3d(4, 2, 1))


def _run_and_record_formats(network: nn.Sequential, clips: Tensor) -> tuple[list[bool], Tensor]:
    """Return for every convolution whether its input is channels last, and the network's output."""
    read: list[bool] = []

    def record(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        read.append(inputs[0].is_contiguous(memory_format=torch.channels_last_3d))

    for module in network:
        if isinstance(module, nn.Conv3d):
            module.register_forward_pre_hook(record)
    return read, network(clips)


def test_gpu_convolutions_use_channels_last_without_converting_weights() -> None:
    clips = torch.randn(2, 3, 6, 8, 8)
    plain, last = _network(), _network()
    channels_last_on_gpu(plain, torch.device("cpu"))
    channels_last_on_gpu(last, torch.device("cuda"))
    read, expected = _run_and_record_formats(plain, clips)
    assert read == [False, False]
    read, answered = _run_and_record_formats(last, clips)
    assert read == [True, True]
    assert last[0].weight.is_contiguous()
    torch.testing.assert_close(answered, expected)
