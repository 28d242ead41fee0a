"""The causal network of an inspector on a live stream: one frame at a time, in NumPy.

A layer of PyTorch costs more to call than to compute where it gets a single frame, and the convolutions over time would
go through all frames that they reach with every new one. Here each of them keeps its own past. The probabilities equal
those of `InspectorNetwork` but for rounding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.finite import check_finite
from jostle.mending.blank_frames import median
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptor
from jostle.mending.frame_comparison import DIFFERENCE_SCALE, scale_channels
from jostle.mending.inspector import BLOCK, DILATIONS, DIM, MEDIAN_REACH, OUTPUT, SIDES, Inspector

Array = npt.NDArray[np.float32]


class LiveNetwork:
    """Causal network on one stream; memory does not grow."""

    def __init__(self, inspector: Inspector) -> None:
        network = self._network = inspector.side(SIDES[True])
        layers = (network.cell, network.four, network.sixteen, network.frame, network.answer)
        self._cell, self._four, self._sixteen, self._frame, self._answer = (_transposed(layer) for layer in layers)
        self._norm = _array(network.norm.weight), _array(network.norm.bias), np.float32(network.norm.eps)
        self._times = [
            (_transposed(time), _transposed(mixed)) for time, mixed in zip(network.times, network.mixed, strict=True)
        ]
        self._lags = np.array(network.lags)
        self._past = [np.zeros((2 * dilation, DIM), np.float32) for dilation in DILATIONS]
        self._descriptors = np.zeros((2 * MEDIAN_REACH + 1, CHANNELS, CELLS, CELLS), np.uint8)  # a ring
        self._scaled = np.zeros((1 - self._lags.min(), CELLS, CELLS, CHANNELS), np.float32)  # a ring
        self._median = np.zeros((CELLS, CELLS, CHANNELS), np.float32)
        bytes_of_channels = torch.arange(256, dtype=torch.uint8)[:, None].expand(256, CHANNELS)[..., None, None]
        self._scales: Array = scale_channels(bytes_of_channels)[:, 0, 0].numpy()  # scaled channels by their byte
        self._count = 0

    def push(self, descriptor: Descriptor) -> float:
        """Return the probability that the next frame of the stream is damaged."""
        logit = self._answer[0].T @ self._mix(self._embed(self._compare(descriptor))) + self._answer[1]
        with np.errstate(over="ignore", invalid="ignore"):
            probability = 1 / (1 + np.exp(-logit.astype(np.float64))) + 0 * logit  # NaN where the logit is infinite
        check_finite(probability, OUTPUT)
        return float(probability[0])

    def _compare(self, descriptor: Descriptor) -> Array:
        """Compare a frame with earlier ones and with their median, as `compare_frames` does."""
        number, self._count = self._count, self._count + 1
        self._descriptors[number % len(self._descriptors)] = descriptor
        own = self._scaled[number % len(self._scaled)] = self._scale(descriptor)
        if number % BLOCK == 0:
            frames = self._network.median_frames(torch.tensor([number]), self._count).numpy()
            self._median = self._scale(median(self._descriptors[frames % len(self._descriptors)])[0])
        others = number + self._lags
        others[others < 0] = number
        inputs = np.empty((CELLS, CELLS, 2 + len(others), CHANNELS), np.float32)
        inputs[:, :, 0] = own
        inputs[:, :, 1:-1] = DIFFERENCE_SCALE * (own - self._scaled[others % len(self._scaled)]).transpose(1, 2, 0, 3)
        inputs[:, :, -1] = DIFFERENCE_SCALE * (own - self._median)
        return inputs.reshape(CELLS * CELLS, -1)

    def _scale(self, descriptor: Descriptor) -> Array:
        return self._scales[descriptor.transpose(1, 2, 0), np.arange(CHANNELS)]

    def _embed(self, inputs: Array) -> Array:
        """Embed a frame as `InspectorNetwork.embed` does."""
        cells = _merge_2x2(_relu(inputs, self._cell), CELLS)
        parts = _relu(_merge_2x2(_relu(cells, self._four), CELLS // 2), self._sixteen)
        weight, bias = self._frame
        frame = np.concatenate([parts.mean(0), parts.max(0)]) @ weight + bias
        frame -= frame.mean()
        gain, offset, least = self._norm
        embedding: Array = np.maximum(frame / np.sqrt(np.square(frame).mean() + least) * gain + offset, 0)
        return embedding

    def _mix(self, frame: Array) -> Array:
        """Mix a frame's embedding with those before, as `InspectorNetwork.frame_logits` does."""
        for dilation, past, (time, (weight, bias)) in zip(DILATIONS, self._past, self._times, strict=True):
            place = self._count % len(past)  # of the oldest, which goes
            inputs = np.concatenate([past[place], past[place - dilation], frame])
            past[place] = frame
            frame = frame + _relu(inputs, time) @ weight + bias
        return frame


def _relu(inputs: Array, layer: tuple[Array, Array]) -> Array:
    outputs: Array = inputs @ layer[0]
    outputs += layer[1]
    np.maximum(outputs, 0, out=outputs)
    return outputs


def _merge_2x2(maps: Array, side: int) -> Array:
    """Merge 2 x 2 cells into channels: (side * side, C) to (side * side / 4, 4 C)."""
    quarters = maps.reshape(side // 2, 2, side // 2, 2, -1).transpose(0, 2, 1, 3, 4)
    return quarters.reshape(side * side // 4, -1)


def _transposed(layer: torch.nn.Module) -> tuple[Array, Array]:
    """Return the weights of a layer, inputs first, and its bias; a convolution's taps come one after the other."""
    weight, bias = _array(layer.get_parameter("weight")), _array(layer.get_parameter("bias"))
    return np.ascontiguousarray(weight.transpose(*range(2, weight.ndim), 1, 0).reshape(-1, len(weight))), bias


def _array(tensor: Tensor) -> Array:
    values: Array = tensor.detach().cpu().float().numpy().copy()
    return values
