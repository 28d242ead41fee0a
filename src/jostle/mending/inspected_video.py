"""Incremental inspection of one video in many corrupted states.

A probability depends on a frame's descriptor, on those of a few neighbours, on the median of the seconds around it,
and on the embeddings within the network's reach. Only frames for which one of the first three changed are embedded
again, in batches whose rows are proved not to depend on each other, so that a state has the same bits as if it were
inspected alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.finite import check_finite
from jostle.mending.blank_frames import Mask, find_blank, find_lost_in_video, median
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.mending.frame_comparison import DIFFERENCE_SCALE, scale_channels
from jostle.mending.inspector import (
    BLOCK,
    DIM,
    OUTPUT,
    WIDTH,
    Inspector,
    InspectorNetwork,
    Probabilities,
    damage_probabilities,
)
from jostle.models.devices import one_thread
from jostle.models.rows import RowBatches

Indices = npt.NDArray[np.int64]
CellRows = npt.NDArray[np.uint8]  # (N, CELLS * CELLS, CHANNELS)

BATCH = 32  # frames per batch, always as many: only equal shapes give equal bits; `RowBatches` may find another size
MEDIAN_BATCH = 32


def _network_cell_order() -> Indices:
    """Return the order of a descriptor's cells that puts those the network merges by fours side by side."""
    cells = np.arange(CELLS * CELLS).reshape(CELLS // 4, 2, 2, CELLS // 4, 2, 2)
    return cells.transpose(0, 3, 1, 4, 2, 5).ravel()


_ORDER = _network_cell_order()


class InspectedVideo:
    """Damage probabilities of the frames of a video, in any state of it.

    A video that is blank from end to end counts as damaged throughout; a stream cannot know that in time.

    Args:
        descriptors: of the clean video, to which states are compared.

    Attributes:
        probabilities: (T,) that each frame of the clean video is damaged.
    """

    def __init__(self, inspector: Inspector, descriptors: Descriptors) -> None:
        self._network, self._device = inspector.network, inspector.device
        self._layers, self._row_batches = _Layers(self._network), RowBatches(self._network)
        self._blank = find_blank(descriptors) if inspector.rules else None
        count = len(descriptors)
        blocks = torch.arange(0, count, BLOCK)
        self._median_frames: Indices = self._network.median_frames(blocks, count).numpy()
        self._neighbours: Indices = self._network.neighbours(torch.arange(count), count).numpy()
        self._rows = to_cell_rows(descriptors)
        self._medians = self._compute_medians(self._rows, np.arange(len(blocks)))
        self._frames = self._embed(self._rows, self._medians, np.arange(count))
        self.probabilities = self._with_lost(self._classify(self._frames), self._rows, self._blank)

    def probabilities_for(self, came_from: Indices, new_descriptors: Descriptors) -> Probabilities:
        """Return (T,) the damage probabilities of another state of the video.

        Args:
            came_from: for each frame the index of the clean frame that it equals, or below 0 for a new one.
            new_descriptors: descriptors of the new ones, in order.
        """
        rows, new = self._rows[came_from], came_from < 0
        rows[new] = to_cell_rows(new_descriptors)
        changed = (rows != self._rows).any((1, 2))
        if not changed.any():
            return self.probabilities
        near = np.flatnonzero(changed[self._median_frames].any(1))
        medians = np.array(self._medians)
        medians[near] = self._compute_medians(rows, near)
        median_changed = np.repeat((medians != self._medians).any((1, 2)), BLOCK)[: len(rows)]
        stale = np.flatnonzero(changed | changed[self._neighbours].any(1) | median_changed)
        frames = self._frames.clone()
        frames[torch.from_numpy(stale).to(self._device)] = self._embed(rows, medians, stale)
        blank = None if self._blank is None else self._blank[came_from]
        if blank is not None:
            blank[new] = find_blank(new_descriptors)
        return self._with_lost(self._classify(frames), rows, blank)

    def _with_lost(self, probabilities: Probabilities, rows: CellRows, blank: Mask | None) -> Probabilities:
        if blank is not None and blank.any():
            probabilities[find_lost_in_video(blank, lambda a, b: rows[a:b].transpose(0, 2, 1))] = 1.0
        return probabilities

    def _compute_medians(self, rows: CellRows, blocks: Indices) -> CellRows:
        parts = [
            median(rows[self._median_frames[blocks[lo : lo + MEDIAN_BATCH]]])
            for lo in range(0, len(blocks), MEDIAN_BATCH)
        ]
        return np.concatenate(parts) if parts else rows[:0]

    @torch.inference_mode()
    def _embed(self, rows: CellRows, medians: CellRows, which: Indices) -> Tensor:
        """Embed frames as `InspectorNetwork.embed` does, from unscaled bytes; returns (N, DIM)."""
        parts = []
        with one_thread(), torch.autocast(self._device.type, enabled=False):
            row = torch.empty(1, 2 + self._neighbours.shape[1], *rows.shape[1:], dtype=torch.uint8, device=self._device)
            size = self._row_batches.size("embed", self._layers, row, BATCH)
            for lo in range(0, len(which), size):
                part = which[lo : lo + size]
                filled = np.concatenate([part, np.repeat(part[-1:], size - len(part))])
                beside = np.concatenate([filled[:, None], self._neighbours[filled]], 1)
                inputs = np.concatenate([rows[beside], medians[filled // BLOCK][:, None]], 1)
                parts.append(self._layers(torch.from_numpy(inputs).to(self._device))[: len(part)])
        return torch.cat(parts) if parts else torch.zeros(0, DIM, device=self._device)

    @torch.inference_mode()
    def _classify(self, frames: Tensor) -> Probabilities:
        with one_thread(), torch.autocast(self._device.type, enabled=False):
            probabilities = damage_probabilities(self._network.frame_logits(frames[None])[0]).cpu().numpy()
        check_finite(probabilities, OUTPUT)
        return probabilities


class _Layers:
    """Embedding layers for bytes in cell order, with scaling and differences folded into the first weights.

    They are plain products of transposed weights: the per-call overhead of a library's linear layer exceeds the work on
    so few frames.
    """

    def __init__(self, network: InspectorNetwork) -> None:
        ends = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, CHANNELS, 1, 1)
        zero, full = scale_channels(ends).view(2, CHANNELS).double()
        weight = network.cell.weight.detach().cpu().double().view(WIDTH, -1, CHANNELS)  # own, others, median
        differences = DIFFERENCE_SCALE * weight[:, 1:]
        folded = torch.cat([weight[:, :1] + differences.sum(1, keepdim=True), -differences], 1)
        bias = network.cell.bias.detach().cpu().double() + (folded * zero).sum((1, 2))
        first = ((folded * (full - zero) / 255).flatten(1), bias)
        later = [
            (layer.weight.detach(), layer.bias.detach()) for layer in (network.four, network.sixteen, network.frame)
        ]
        self._norm, like = network.norm, network.cell.weight
        self._layers = [(weight.t().to(like).contiguous(), bias.to(like)) for weight, bias in (first, *later)]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (N, own and others and median, cells, CHANNELS) bytes to (N, DIM)."""
        count, comparisons, cells, _ = inputs.shape
        x = inputs.transpose(1, 2).reshape(count * cells, comparisons * CHANNELS).float()
        for layer in range(3):
            x = self._product(layer, x).relu_()
            x = x.view(-1, 4 * x.shape[1]) if layer < 2 else x.view(count, -1, DIM)
        frames: Tensor = self._norm(self._product(3, torch.cat([x.mean(1), x.amax(1)], 1)))
        return frames.relu_()

    def _product(self, layer: int, x: Tensor) -> Tensor:
        weight, bias = self._layers[layer]
        return torch.addmm(bias, x, weight)


def to_cell_rows(descriptors: Descriptors) -> CellRows:
    """Lay descriptors out cell by cell, in the order in which the network merges cells."""
    flat = descriptors.reshape(len(descriptors), CHANNELS, CELLS * CELLS)
    return np.ascontiguousarray(flat[:, :, _ORDER].transpose(0, 2, 1))
