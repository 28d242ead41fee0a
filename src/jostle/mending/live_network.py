"""The causal network of an inspector on a live stream: one frame at a time, in NumPy.

A layer of PyTorch costs more to call than to compute where it gets a single frame, and the convolutions over time would
go through all frames that they reach with every new one. Here each of them keeps its own past. The probabilities equal
those of `InspectorNetwork` but for rounding.
"""

from __future__ import annotations

import numpy as np
import torch

from jostle.core.finite import check_finite
from jostle.mending.blank_frames import median
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptor
from jostle.mending.folded import Array, CellRows, numpy_embedding, to_cell_rows, transposed
from jostle.mending.frame_comparison import DIFFERENCE_SCALE, scale_channels
from jostle.mending.inspection import OUTPUT, Inspector
from jostle.mending.network import BLOCK, DILATIONS, DIM, MEDIAN_REACH, SIDES


class LiveNetwork:
    """Causal network on one stream; memory does not grow."""

    def __init__(self, inspector: Inspector) -> None:
        network = self._network = inspector.side(SIDES[True])
        self._embed, self._answer = numpy_embedding(network), transposed(network.answer)
        self._times = [
            (transposed(time), transposed(mixed)) for time, mixed in zip(network.times, network.mixed, strict=True)
        ]
        self._lags = np.array(network.lags)
        self._past = [np.zeros((2 * dilation, DIM), np.float32) for dilation in DILATIONS]
        self._rows = np.zeros((2 * MEDIAN_REACH + 1, CELLS * CELLS, CHANNELS), np.uint8)  # a ring
        self._scaled = np.zeros((1 - self._lags.min(), CELLS * CELLS, CHANNELS), np.float32)  # a ring
        self._median = np.zeros((CELLS * CELLS, CHANNELS), np.float32)
        bytes_of_channels = torch.arange(256, dtype=torch.uint8)[:, None].expand(256, CHANNELS)[..., None, None]
        self._scales: Array = scale_channels(bytes_of_channels)[:, 0, 0].numpy()  # scaled channels by their byte
        self._count = 0

    def push(self, descriptor: Descriptor) -> float:
        """Return the probability that the next frame of the stream is damaged."""
        frame = self._embed(self._compare(to_cell_rows(descriptor[None])[0]), 1)[0]
        logit = self._answer[0].T @ self._mix(frame) + self._answer[1]
        with np.errstate(over="ignore", invalid="ignore"):
            probability = 1 / (1 + np.exp(-logit.astype(np.float64))) + 0 * logit  # NaN where the logit is infinite
        check_finite(probability, OUTPUT)
        return float(probability[0])

    def _compare(self, rows: CellRows) -> Array:
        """Compare a frame with earlier ones and with their median, as `compare_frames` does."""
        number, self._count = self._count, self._count + 1
        self._rows[number % len(self._rows)] = rows
        own = self._scaled[number % len(self._scaled)] = self._scale(rows)
        if number % BLOCK == 0:
            frames = self._network.median_frames(torch.tensor([number]), self._count).numpy()
            self._median = self._scale(median(self._rows[frames % len(self._rows)])[0])
        others = number + self._lags
        others[others < 0] = number
        inputs = np.empty((CELLS * CELLS, 2 + len(others), CHANNELS), np.float32)
        inputs[:, 0] = own
        inputs[:, 1:-1] = DIFFERENCE_SCALE * (own - self._scaled[others % len(self._scaled)]).transpose(1, 0, 2)
        inputs[:, -1] = DIFFERENCE_SCALE * (own - self._median)
        return inputs.reshape(CELLS * CELLS, -1)

    def _scale(self, rows: CellRows) -> Array:
        return self._scales[rows, np.arange(CHANNELS)]

    def _mix(self, frame: Array) -> Array:
        """Mix a frame's embedding with those before, as `InspectorNetwork.frame_logits` does."""
        for dilation, past, (time, (weight, bias)) in zip(DILATIONS, self._past, self._times, strict=True):
            place = self._count % len(past)  # of the oldest, which goes
            inputs = np.concatenate([past[place], past[place - dilation], frame])
            past[place] = frame
            outputs = inputs @ time[0] + time[1]
            frame = frame + np.maximum(outputs, 0, out=outputs) @ weight + bias
        return frame
