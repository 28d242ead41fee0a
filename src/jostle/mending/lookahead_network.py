"""Networks that predict damage and its kind for each frame of a stream from the past and a few later frames.

Each frame is compared, cell by cell, with frames before and, as far as the look-ahead allows, after it, and with
medians of the recent past; small linear layers embed the result, and convolutions over time turn the embeddings into
logits. Medians and indices are computed outside of `embed` and `classify`, which need only plain products,
convolutions and a layer norm.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.mending.descriptor_layout import CHANNELS
from jostle.mending.frame_comparison import DIFFERENCE_SCALE, merge_2x2, scale_channels
from jostle.mending.verdicts import KINDS

LOOKAHEADS = (0, 5, 15)  # frames of future that there is a network for
DAMAGE_KINDS = KINDS[1:-1]  # without `clean` and `unknown`, which a network has no class for
PAST = (-1, -2, -4, -12, -32)  # frames that each frame is compared with
FUTURE = {0: (), 5: (1, 2), 15: (1, 3, 8)}  # and later ones, by look-ahead
REACHES = (48, 256)  # frames of the past that the two medians cover
STEPS = 32  # a median is of one more frames, evenly spread
BLOCK = 8  # frames that share their medians
DILATIONS = (1, 2, 4, 8, 16)  # of the convolutions over time
AHEAD = {0: (0, 0, 0, 0, 0), 5: (1, 2, 0, 0, 0), 15: (1, 2, 4, 0, 0)}  # later frames that each of them covers
WIDTH, DIM = 64, 80


class LookaheadNetwork(nn.Module):
    """Network from the descriptors of a stream to logits of damage and of its kinds for each frame.

    Args:
        lookahead: later frames that a frame's logits depend on, one of `LOOKAHEADS`.
    """

    def __init__(self, lookahead: int) -> None:
        super().__init__()
        self.lookahead = lookahead
        self.lags = (*PAST, *FUTURE[lookahead])
        self.ahead = AHEAD[lookahead]
        self.cell = nn.Linear(CHANNELS * (1 + len(self.lags) + len(REACHES)), WIDTH)
        self.four = nn.Linear(4 * WIDTH, DIM)
        self.sixteen = nn.Linear(4 * DIM, DIM)
        self.frame = nn.Linear(3 * DIM, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.times = nn.ModuleList(nn.Conv1d(DIM, DIM, 3, dilation=dilation) for dilation in DILATIONS)
        self.mixed = nn.ModuleList(nn.Conv1d(DIM, DIM, 1) for _ in DILATIONS)
        self.answer = nn.Conv1d(DIM, 1 + len(DAMAGE_KINDS), 1)

    @property
    def next_frames(self) -> int:
        """Later frames that the embedding of a frame depends on."""
        return max(self.lags[-1], 0)

    @property
    def next_embeddings(self) -> int:
        """Later embeddings that the logits of a frame depend on."""
        return sum(self.ahead)

    def forward(self, descriptors: Tensor, medians: list[Tensor] | None = None) -> Tensor:
        """Map (B, T, CHANNELS, CELLS, CELLS) bytes of whole streams to (B, T, 1 + kinds) logits.

        Args:
            medians: what `compute_medians` returns, where several networks share it.
        """
        count = descriptors.shape[1]
        medians = compute_medians(descriptors) if medians is None else medians
        own = scale_channels(descriptors)
        others = [own[:, beside] for beside in self.neighbours(torch.arange(count), count).unbind(1)]
        inputs = torch.cat([own, *(DIFFERENCE_SCALE * (own - other) for other in (*others, *medians))], -1)
        embeddings = self.embed(inputs.flatten(0, 1)).view(-1, count, DIM)
        return self.classify(embeddings)

    def neighbours(self, times: Tensor, total: int) -> Tensor:
        """Return (T, lags) the frames that each frame is compared with: itself beyond an end of the stream."""
        others = times[:, None] + torch.tensor(self.lags)
        return torch.where((others >= 0) & (others < total), others, times[:, None])

    def embed(self, inputs: Tensor) -> Tensor:
        """Embed (N, CELLS, CELLS, channels) comparisons of single frames; returns (N, DIM)."""
        cells = F.relu(self.cell(inputs))
        parts = F.relu(self.sixteen(merge_2x2(F.relu(self.four(merge_2x2(cells)))))).flatten(1, 2)
        frames: Tensor = self.norm(self.frame(torch.cat([parts.mean(1), parts.amax(1), parts.amin(1)], 1)))
        return F.relu(frames)

    def classify(self, embeddings: Tensor) -> Tensor:
        """Map (B, T, DIM) embeddings to (B, T, 1 + kinds) logits, with zeros beyond both ends."""
        x = embeddings.transpose(1, 2)
        for dilation, ahead, time, mixed in zip(DILATIONS, self.ahead, self.times, self.mixed, strict=True):
            x = x + mixed(F.relu(time(F.pad(x, (2 * dilation - ahead, ahead)))))
        logits: Tensor = self.answer(x)
        return logits.transpose(1, 2)


class LookaheadNetworks(nn.ModuleDict):
    """The networks of all look-aheads."""

    def __init__(self) -> None:
        super().__init__({f"ahead_{lookahead}": LookaheadNetwork(lookahead) for lookahead in LOOKAHEADS})

    def network(self, lookahead: int) -> LookaheadNetwork:
        """Return the network of a look-ahead."""
        network = self[f"ahead_{lookahead}"]
        assert isinstance(network, LookaheadNetwork)
        return network


def compute_medians(descriptors: Tensor) -> list[Tensor]:
    """Return for each of `REACHES` the scaled median of each frame's past; (B, T, CELLS, CELLS, CHANNELS)."""
    count = descriptors.shape[1]
    return [
        scale_channels(median_bytes(descriptors[:, frames])).repeat_interleave(BLOCK, 1)[:, :count]
        for frames in median_frames(torch.arange(0, count, BLOCK))
    ]


def median_frames(blocks: Tensor) -> list[Tensor]:
    """Return for each of `REACHES` the (blocks, STEPS + 1) frames of the median for blocks that begin there."""
    frames = []
    for reach in REACHES:
        begin = (blocks - reach).clamp(min=0)[:, None]
        frames.append(begin + (blocks[:, None] - begin) * torch.arange(STEPS + 1) // STEPS)
    return frames


def median_bytes(values: Tensor) -> Tensor:
    """Return the median of an odd number of bytes along dimension 2, as `blank_frames.median` does."""
    half = values.shape[2] // 2
    result = torch.zeros_like(values[:, :, 0])
    for bit in (128, 64, 32, 16, 8, 4, 2, 1):
        candidate = result | bit
        above = (values >= candidate[:, :, None]).sum(2, dtype=torch.uint8)
        result = torch.where(above > half, candidate, result)
    return result
