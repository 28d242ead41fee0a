"""Normalisation layers of a network, and batch norms whose statistics blend source and test videos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)


def find_batch_norms(network: nn.Module) -> dict[str, _BatchNorm]:
    """Return the batch norms with statistics of their source, of one, two or three dimensions, by name."""
    return {
        name: layer
        for name, layer in network.named_modules()
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None
    }


def find_norms(network: nn.Module) -> dict[str, nn.Module]:
    """Return the batch, layer and group norms of a network by name, in the order of its modules."""
    return {name: layer for name, layer in network.named_modules() if isinstance(layer, NORMS)}


def affine_parameters(layers: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    """Return the scales and shifts of normalisation layers by name."""
    return {
        f"{name}.{kind}": value
        for name, layer in layers.items()
        for kind in ("weight", "bias")
        if isinstance(value := getattr(layer, kind, None), nn.Parameter)
    }


def channel_statistics(values: Tensor, channel: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance (over N, not N - 1) of each channel."""
    axes = [axis for axis in range(values.ndim) if axis != channel % values.ndim]
    variance, mean = torch.var_mean(values, axes, correction=0)
    return mean, variance


class BlendedNorm:
    """Batch norm with the statistics (N source + n test) / (N + n) of its input, layer by layer.

    Args:
        layer: the batch norm; its running statistics are those of the source.
        pseudo_count: N, the number of frames that the source counts for.
        accumulate: whether test statistics are those of all videos so far, or of the present batch alone.

    Attributes:
        batch_count: n of the present batch, in frames.
        count: n of the videos so far.
    """

    def __init__(self, layer: _BatchNorm, pseudo_count: float, *, accumulate: bool = False) -> None:
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.layer, self.pseudo_count, self.accumulate = layer, pseudo_count, accumulate
        self.source_mean, self.source_variance = layer.running_mean.clone(), layer.running_var.clone()
        self.batch_count = 1.0
        self.count, self.mean, self.variance = 0.0, self.source_mean.clone(), self.source_variance.clone()

    def __call__(self, values: Tensor) -> Tensor:
        """Normalise a batch, and leave the blended statistics in the layer."""
        mean, variance = self._blend(*channel_statistics(values, 1))
        layer = self.layer
        assert layer.running_mean is not None
        assert layer.running_var is not None
        with torch.no_grad():
            layer.running_mean.copy_(mean)
            layer.running_var.copy_(variance)
        if not torch.is_grad_enabled():
            return F.batch_norm(values, mean, variance, layer.weight, layer.bias, eps=layer.eps)
        shape = (1, -1, *(1,) * (values.ndim - 2))
        normal = (values - mean.view(shape)) * torch.rsqrt(variance.view(shape) + layer.eps)
        if layer.weight is None:
            return normal
        return normal * layer.weight.view(shape) + layer.bias.view(shape)

    def _blend(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        count = self.batch_count
        if self.accumulate:
            if self.count:
                count += self.count
                share, difference = self.batch_count / count, mean - self.mean
                variance = (1 - share) * self.variance + share * variance + share * (1 - share) * difference**2
                mean = self.mean + share * difference
            self.count, self.mean, self.variance = count, mean.detach(), variance.detach()
        share = count / (self.pseudo_count + count)
        if share == 1:
            return mean, variance
        return torch.lerp(self.source_mean, mean, share), torch.lerp(self.source_variance, variance, share)

    def state(self) -> dict[str, Tensor]:
        """Return the statistics of the videos so far."""
        return {"count": torch.tensor(self.count, dtype=torch.float64), "mean": self.mean, "variance": self.variance}

    def load_state(self, state: Mapping[str, Tensor] | None) -> None:
        """Continue from statistics of earlier videos, or begin without any."""
        if state is None:
            self.count, self.mean, self.variance = 0.0, self.source_mean.clone(), self.source_variance.clone()
        else:
            self.count, self.mean, self.variance = float(state["count"]), state["mean"], state["variance"]


@contextmanager
def replaced_forward(layers: Mapping[nn.Module, Callable[[Tensor], Tensor]]) -> Iterator[None]:
    """Let functions compute the outputs of layers for a while.

    The layers are in training mode meanwhile, so that a network which folds fixed statistics into its weights calls
    them.
    """
    before = {layer: (layer.training, vars(layer).get("forward")) for layer in layers}
    try:
        for layer, function in layers.items():
            layer.forward = function
            layer.training = True
        yield
    finally:
        for layer, (mode, own) in before.items():
            layer.training = mode
            vars(layer).pop("forward", None)
            if own is not None:
                layer.forward = own
