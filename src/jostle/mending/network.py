"""Network that predicts for each frame of a video whether it is damaged, from descriptors of it and its neighbours.

Each frame is compared with frames near it and with the median of the seconds around it, cell by cell; small linear
layers embed the result, and convolutions over time turn the embeddings into one probability a frame. It takes both
sides, or only the past for live use. This is the network as it is trained and exported; `folded` has its embedding for
bytes.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.mending.descriptor_layout import CELLS, CHANNELS
from jostle.mending.frame_comparison import compare_frames, merge_2x2, scale_channels
from jostle.models.onnx_export import OnnxFile, export_module

LAGS = {False: (-12, -4, -1, 1, 4, 12), True: (-24, -12, -6, -4, -2, -1)}  # neighbours, by `causal`
BLOCK = 8  # frames that share a median
MEDIAN_REACH = 64  # frames to each side of a median; twice as many in causal mode
MEDIAN_STEP = 4  # stride of the frames of a median
DILATIONS = (1, 2, 4, 8, 16)  # of the convolutions over time
WIDTH, DIM = 48, 64
SIDES = ("both", "causal")  # the two networks of an inspector


class InspectorNetwork(nn.Module):
    """Network from the descriptors of a video to one logit a frame.

    Args:
        causal: use past frames only.
    """

    def __init__(self, *, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.lags = LAGS[causal]
        channels = CHANNELS * (2 + len(self.lags))
        # Single cells, then 2 x 2 cells, then 2 x 2 of those: plain products, which every machine computes fast.
        self.cell = nn.Linear(channels, WIDTH)
        self.four = nn.Linear(4 * WIDTH, DIM)
        self.sixteen = nn.Linear(4 * DIM, DIM)
        self.frame = nn.Linear(2 * DIM, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.times = nn.ModuleList(nn.Conv1d(DIM, DIM, 3, dilation=dilation) for dilation in DILATIONS)
        self.mixed = nn.ModuleList(nn.Conv1d(DIM, DIM, 1) for _ in DILATIONS)
        self.answer = nn.Conv1d(DIM, 1, 1)

    @property
    def reach(self) -> int:
        """Frames to each side (or twice as many in the past) that the convolutions over time cover."""
        return sum(DILATIONS)

    def forward(self, descriptors: Tensor) -> Tensor:
        """Map (B, T, CHANNELS, CELLS, CELLS) bytes to (B, T) logits; each item is treated as a whole video."""
        count = descriptors.shape[1]
        own = scale_channels(descriptors)
        medians = scale_channels(
            descriptors[:, self.median_frames(torch.arange(0, count, BLOCK), count)].median(2).values
        )
        medians = medians.repeat_interleave(BLOCK, 1)[:, :count]
        others = [own[:, beside] for beside in self.neighbours(torch.arange(count), count).unbind(1)]
        inputs = compare_frames(own, others, medians)
        frames = self.embed(inputs.flatten(0, 1))
        return self.frame_logits(frames.view(*inputs.shape[:2], DIM))

    def neighbours(self, times: Tensor, total: int) -> Tensor:
        """Return (T, lags) the frames that each frame is compared with.

        Beyond an end of the video it is the frame itself, so that the difference is zero.

        Args:
            total: frames of the video, or as many as are known.
        """
        others = times[:, None] + torch.tensor(self.lags)
        return torch.where((others >= 0) & (others < total), others, times[:, None])

    def median_frames(self, blocks: Tensor, total: int) -> Tensor:
        """Return (blocks, steps) the frames of the median for blocks that begin at these frames."""
        steps = 2 * MEDIAN_REACH // MEDIAN_STEP
        if not self.causal:
            return reflect(blocks[:, None] + torch.arange(-MEDIAN_REACH, MEDIAN_REACH + 1, MEDIAN_STEP), total)
        begin = (blocks - 2 * MEDIAN_REACH).clamp(min=0)[:, None]
        return begin + (blocks[:, None] - begin) * torch.arange(steps + 1) // steps

    def embed(self, inputs: Tensor) -> Tensor:
        """Embed single frames from their comparisons with others; returns (N, DIM)."""
        cells = F.relu(self.cell(inputs))
        parts = F.relu(self.sixteen(merge_2x2(F.relu(self.four(merge_2x2(cells)))))).flatten(1, 2)
        frames: Tensor = self.norm(self.frame(torch.cat([parts.mean(1), parts.amax(1)], 1)))
        return F.relu(frames)

    def frame_logits(self, frames: Tensor, *, before: int = 0, after: int = 0) -> Tensor:
        """Map (B, before + T + after, DIM) embeddings to (B, T) logits, with zeros beyond both ends."""
        x = frames.transpose(1, 2)
        for dilation, time, mixed in zip(DILATIONS, self.times, self.mixed, strict=True):
            ends = (2 * dilation, 0) if self.causal else (dilation, dilation)
            x = x + mixed(F.relu(time(F.pad(x, ends))))
        logits: Tensor = self.answer(x)[:, 0]
        return logits[:, before : logits.shape[1] - after]


class InspectorNetworks(nn.ModuleDict):
    """Both networks of an inspector: one for recorded video and a causal one for live use."""

    def __init__(self) -> None:
        super().__init__({side: InspectorNetwork(causal=side == "causal") for side in SIDES})


class DescriptorNetwork(nn.Module):
    """One network of an inspector on plain tensors, with the embeddings of earlier frames as its state."""

    def __init__(self, network: InspectorNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, own: Tensor, others: Tensor, medians: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of all frames, those of `before` first, and the embeddings of the new ones.

        Args:
            own: (T, CHANNELS, CELLS, CELLS) bytes, descriptors of new frames.
            others: (T, lags, CHANNELS, CELLS, CELLS) bytes, of the frames that each is compared with.
            medians: (T, CHANNELS, CELLS, CELLS) bytes, median of the seconds around each.
            before: (B, DIM) embeddings of the frames before.
        """
        scaled = scale_channels(own)
        embeddings = self.network.embed(
            compare_frames(scaled, scale_channels(others).unbind(1), scale_channels(medians))
        )
        logits = self.network.frame_logits(torch.cat([before, embeddings])[None])
        return damage_probabilities(logits)[0], embeddings


def export_network(network: InspectorNetwork, path: Path, metadata: dict[str, str], name: str) -> OnnxFile:
    """Export a network as an ONNX file, from descriptors to probabilities of damage.

    Descriptors, medians and the choice of frames to compare with stay in the host: they are bytes and indices, and the
    median of bytes has no operator in ONNX.
    """
    draws = torch.Generator().manual_seed(0)

    def descriptors(*shape: int) -> Tensor:
        return torch.randint(0, 256, (*shape, CHANNELS, CELLS, CELLS), dtype=torch.uint8, generator=draws)

    frames, before = 5, 2 * network.reach
    inputs = {
        "own": descriptors(frames),
        "others": descriptors(frames, len(network.lags)),
        "medians": descriptors(frames),
        "before": torch.rand(before, DIM, generator=draws),
    }
    return export_module(
        DescriptorNetwork(network),
        inputs,
        ["probabilities", "embeddings"],
        path,
        varying={**{key: {0: "frames"} for key in ("own", "others", "medians")}, "before": {0: "before"}},
        metadata=metadata,
        name=name,
    )


def damage_probabilities(logits: Tensor) -> Tensor:
    """Return the sigmoid of logits; NaN for an infinite one, which the sigmoid would hide."""
    return logits.sigmoid() + 0 * logits


def reflect(times: Tensor, total: int) -> Tensor:
    """Mirror frame indices at the ends of a video until they lie in it.

    >>> reflect(torch.arange(-3, 6), 4).tolist()
    [3, 2, 1, 0, 1, 2, 3, 2, 1]
    """
    if total == 1:
        return torch.zeros_like(times)
    folded = times.abs() % (2 * total - 2)
    return torch.minimum(folded, 2 * total - 2 - folded)
