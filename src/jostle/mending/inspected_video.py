"""One video before an inspector in many states: what a state shares with the video as it is, is not looked at again.

A probability hangs on a frame's glance, on those of a few frames near it, on the median of the seconds around it, and
on what the network made of the frames within its reach. Only frames of which one of the first three is another are
embedded again, in batches of one size, so that a state has the same bits as if it were looked at alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.mending.blank_frames import Mask, are_blank, lost_in_video, median
from jostle.mending.descriptor import CELLS, CHANNELS, Glances
from jostle.mending.inspector import BLOCK, DIFFERENCES, DIM, WIDTH, Inspector, InspectorNetwork, Probabilities, scaled
from jostle.models.precision import one_thread

Indices = npt.NDArray[np.int64]
Laid = npt.NDArray[np.uint8]  # (N, CELLS * CELLS, CHANNELS)

AT_ONCE = 32  # frames that are embedded together, always as many: only equal shapes give equal bits
MEDIANS_AT_ONCE = 32


def _quarters() -> Indices:
    """The cells of a glance, those that the network joins by fours one after the other."""
    cells = np.arange(CELLS * CELLS).reshape(CELLS // 4, 2, 2, CELLS // 4, 2, 2)
    return cells.transpose(0, 3, 1, 4, 2, 5).ravel()


_ORDER = _quarters()


class InspectedVideo:
    """How probably the frames of a video were struck, in any state of it.

    Where nothing is to be seen from end to end, all were; a stream is told before that is known.

    Args:
        glances: of the video as it is, to which states are compared.

    Attributes:
        probabilities: (T,) that each frame of the video as it is was struck.
    """

    def __init__(self, inspector: Inspector, glances: Glances) -> None:
        self._network, self._device = inspector.network, inspector.device
        self._layers = _Layers(self._network)
        self._blank = are_blank(glances) if inspector.blank_rule else None
        count = len(glances)
        blocks = torch.arange(0, count, BLOCK)
        self._around: Indices = self._network.around(blocks, count).numpy()
        self._beside: Indices = self._network.beside(torch.arange(count), count).numpy()
        self._rows = laid(glances)
        self._usual = self._medians(self._rows, np.arange(len(blocks)))
        self._frames = self._embedded(self._rows, self._usual, np.arange(count))
        self.probabilities = self._with_lost(self._told(self._frames), self._rows, self._blank)

    def under(self, came_from: Indices, made: Glances) -> Probabilities:
        """(T,) that each frame was struck, in another state of the video.

        Args:
            came_from: for each frame the one of the video that it is, or below 0 for a new one.
            made: glances of the new ones, in order.
        """
        rows, new = self._rows[came_from], came_from < 0
        rows[new] = laid(made)
        changed = (rows != self._rows).any((1, 2))
        if not changed.any():
            return self.probabilities
        near = np.flatnonzero(changed[self._around].any(1))
        usual = np.array(self._usual)
        usual[near] = self._medians(rows, near)
        other = np.repeat((usual != self._usual).any((1, 2)), BLOCK)[: len(rows)]
        again = np.flatnonzero(changed | changed[self._beside].any(1) | other)
        frames = self._frames.clone()
        frames[torch.from_numpy(again).to(self._device)] = self._embedded(rows, usual, again)
        blank = None if self._blank is None else self._blank[came_from]
        if blank is not None:
            blank[new] = are_blank(made)
        return self._with_lost(self._told(frames), rows, blank)

    def _with_lost(self, told: Probabilities, rows: Laid, blank: Mask | None) -> Probabilities:
        if blank is not None and blank.any():
            told[lost_in_video(blank, lambda a, b: rows[a:b].transpose(0, 2, 1))] = 1.0
        return told

    def _medians(self, rows: Laid, blocks: Indices) -> Laid:
        parts = [
            median(rows[self._around[blocks[lo : lo + MEDIANS_AT_ONCE]]])
            for lo in range(0, len(blocks), MEDIANS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else rows[:0]

    @torch.inference_mode()
    def _embedded(self, rows: Laid, usual: Laid, which: Indices) -> Tensor:
        """(N, DIM) of these frames: as the network's `embedded`, on glances as they are."""
        made = []
        with one_thread(), torch.autocast(self._device.type, enabled=False):
            for lo in range(0, len(which), AT_ONCE):
                part = which[lo : lo + AT_ONCE]
                filled = np.concatenate([part, np.repeat(part[-1:], AT_ONCE - len(part))])
                beside = np.concatenate([filled[:, None], self._beside[filled]], 1)
                seen = np.concatenate([rows[beside], usual[filled // BLOCK][:, None]], 1)
                made.append(self._layers(torch.from_numpy(seen).to(self._device))[: len(part)])
        return torch.cat(made) if made else torch.zeros(0, DIM, device=self._device)

    @torch.inference_mode()
    def _told(self, frames: Tensor) -> Probabilities:
        with one_thread(), torch.autocast(self._device.type, enabled=False):
            return self._network.joined(frames[None])[0].sigmoid().cpu().numpy()


class _Layers:
    """The layers that embed a frame, for bytes cell by cell: scaling and differences are in the first one's weights.

    Plain products of transposed weights: what a library prepares for each call of a linear layer takes it longer than
    the work on so few frames.
    """

    def __init__(self, network: InspectorNetwork) -> None:
        ends = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, CHANNELS, 1, 1)
        nothing, most = scaled(ends).view(2, CHANNELS).double()
        weight = network.cell.weight.detach().cpu().double().view(WIDTH, -1, CHANNELS)  # own, others, usual
        differences = DIFFERENCES * weight[:, 1:]
        folded = torch.cat([weight[:, :1] + differences.sum(1, keepdim=True), -differences], 1)
        bias = network.cell.bias.detach().cpu().double() + (folded * nothing).sum((1, 2))
        first = ((folded * (most - nothing) / 255).flatten(1), bias)
        later = [
            (layer.weight.detach(), layer.bias.detach()) for layer in (network.four, network.sixteen, network.frame)
        ]
        self._norm, place = network.norm, network.cell.weight
        self._layers = [(weight.t().to(place).contiguous(), bias.to(place)) for weight, bias in (first, *later)]

    def __call__(self, seen: Tensor) -> Tensor:
        """(N, DIM) of (N, own and others and usual, cells, CHANNELS) bytes."""
        count, many, cells, _ = seen.shape
        x = seen.transpose(1, 2).reshape(count * cells, many * CHANNELS).float()
        for layer in range(3):
            x = self._product(layer, x).relu_()
            x = x.view(-1, 4 * x.shape[1]) if layer < 2 else x.view(count, -1, DIM)
        frames: Tensor = self._norm(self._product(3, torch.cat([x.mean(1), x.amax(1)], 1)))
        return frames.relu_()

    def _product(self, layer: int, x: Tensor) -> Tensor:
        weight, bias = self._layers[layer]
        return torch.addmm(bias, x, weight)


def laid(glances: Glances) -> Laid:
    """Glances cell by cell, in the order that the network joins them in."""
    flat = glances.reshape(len(glances), CHANNELS, CELLS * CELLS)
    return np.ascontiguousarray(flat[:, :, _ORDER].transpose(0, 2, 1))
