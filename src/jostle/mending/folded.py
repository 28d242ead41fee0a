"""The embedding of an inspector's network in plain products: over torch for many frames, over NumPy for one.

A layer of PyTorch costs more to call than to compute where it gets few frames. The cells of a frame are laid out in the
order in which the network merges them, so that merging is a change of shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.mending.frame_comparison import DIFFERENCE_SCALE, scale_channels
from jostle.mending.network import DIM, WIDTH, InspectorNetwork

Array = npt.NDArray[np.float32]
CellRows = npt.NDArray[np.uint8]  # (N, CELLS * CELLS, CHANNELS)


def _network_cell_order() -> npt.NDArray[np.int64]:
    """Return the order of a descriptor's cells that puts those the network merges by fours side by side."""
    cells = np.arange(CELLS * CELLS).reshape(CELLS // 4, 2, 2, CELLS // 4, 2, 2)
    return cells.transpose(0, 3, 1, 4, 2, 5).ravel()


_ORDER = _network_cell_order()


def to_cell_rows(descriptors: Descriptors) -> CellRows:
    """Lay descriptors out cell by cell, in the order in which the network merges cells."""
    flat = descriptors.reshape(len(descriptors), CHANNELS, CELLS * CELLS)
    return np.ascontiguousarray(flat[:, :, _ORDER].transpose(0, 2, 1))


@dataclass(frozen=True)
class Embedding:
    """Layers that embed frames as `InspectorNetwork.embed` does.

    Attributes:
        library: torch or NumPy.
        layers: weights, inputs first, and bias of four layers: of cells, twice of 2 x 2 of those before, of frames.
        norm: of embeddings (N, DIM).
        relu: in place.
    """

    library: Any
    layers: tuple[tuple[Any, Any], ...]
    norm: Callable[[Any], Any]
    relu: Callable[[Any], Any]

    def __call__(self, x: Any, count: int) -> Any:
        """Map (count * cells, values) to (count, DIM)."""
        for layer in range(3):
            x = self.relu(self._product(layer, x))
            x = x.reshape(-1, 4 * x.shape[1]) if layer < 2 else x.reshape(count, -1, DIM)
        pooled = self.library.concatenate([x.mean(1), self.library.amax(x, 1)], 1)
        return self.relu(self.norm(self._product(3, pooled)))

    def _product(self, layer: int, x: Any) -> Any:
        weight, bias = self.layers[layer]
        outputs = x @ weight
        outputs += bias
        return outputs


class FoldedEmbedding:
    """Embedding of bytes, over torch, with scaling and differences folded into the first weights."""

    def __init__(self, network: InspectorNetwork) -> None:
        ends = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, CHANNELS, 1, 1)
        zero, full = scale_channels(ends).view(2, CHANNELS).double()
        weight = network.cell.weight.detach().cpu().double().view(WIDTH, -1, CHANNELS)  # own, others, median
        differences = DIFFERENCE_SCALE * weight[:, 1:]
        folded = torch.cat([weight[:, :1] + differences.sum(1, keepdim=True), -differences], 1)
        bias = network.cell.bias.detach().cpu().double() + (folded * zero).sum((1, 2))
        first = ((folded * (full - zero) / 255).flatten(1), bias)
        later = [(layer.weight.detach(), layer.bias.detach()) for layer in _later_layers(network)]
        like = network.cell.weight
        layers = tuple((weight.t().to(like).contiguous(), bias.to(like)) for weight, bias in (first, *later))
        self._embedding = Embedding(torch, layers, network.norm, torch.relu_)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (N, own and others and median, cells, CHANNELS) bytes to (N, DIM)."""
        count, comparisons, cells, _ = inputs.shape
        x = inputs.transpose(1, 2).reshape(count * cells, comparisons * CHANNELS).float()
        frames: Tensor = self._embedding(x, count)
        return frames


def numpy_embedding(network: InspectorNetwork) -> Embedding:
    """Return the embedding of scaled comparisons, over NumPy."""
    gain, offset, least = as_array(network.norm.weight), as_array(network.norm.bias), np.float32(network.norm.eps)

    def norm(frames: Array) -> Array:
        frames -= frames.mean(1, keepdims=True)
        scaled: Array = frames / np.sqrt(np.square(frames).mean(1, keepdims=True) + least)
        return scaled * gain + offset

    layers = tuple(transposed(layer) for layer in (network.cell, *_later_layers(network)))
    return Embedding(np, layers, norm, lambda x: np.maximum(x, 0, out=x))


def _later_layers(network: InspectorNetwork) -> tuple[nn.Linear, ...]:
    return network.four, network.sixteen, network.frame


def transposed(layer: nn.Module) -> tuple[Array, Array]:
    """Return the weights of a layer, inputs first, and its bias; a convolution's taps come one after the other."""
    weight, bias = as_array(layer.get_parameter("weight")), as_array(layer.get_parameter("bias"))
    return np.ascontiguousarray(weight.transpose(*range(2, weight.ndim), 1, 0).reshape(-1, len(weight))), bias


def as_array(tensor: Tensor) -> Array:
    """Return a copy of a tensor in NumPy."""
    values: Array = tensor.detach().cpu().float().numpy().copy()
    return values
