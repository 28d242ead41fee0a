"""The networks of an inspector as ONNX files, from descriptors to probabilities of damage.

Descriptors, medians and the choice of frames to compare with stay in the host: they are bytes and indices, and the
median of bytes has no operator in ONNX.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.mending.descriptor_layout import CELLS, CHANNELS
from jostle.mending.frame_comparison import compare_frames, scale_channels
from jostle.mending.inspector import DIM, SIDES, Inspector, InspectorNetwork, damage_probabilities
from jostle.models.onnx_export import OnnxFile, export_module


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


def export_inspector(inspector: Inspector, path: Path, *, side: str = "causal") -> OnnxFile:
    """Export a network of an inspector: `causal`, or `both` for recorded video."""
    if side not in SIDES:
        raise BadValue(f"an inspector has the networks {' and '.join(SIDES)}, not {side!r}")
    network = inspector.to("cpu").side(side)
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
    metadata = {
        "jostle.inspector": inspector.name,
        "jostle.fingerprint": inspector.fingerprint,
        "jostle.network": side,
        "jostle.threshold": repr(inspector.threshold(causal=side == "causal")),
        "jostle.lags": json.dumps(network.lags),
        "jostle.reach": str(network.reach),
    }
    return export_module(
        DescriptorNetwork(network),
        inputs,
        ["probabilities", "embeddings"],
        path,
        varying={**{key: {0: "frames"} for key in ("own", "others", "medians")}, "before": {0: "before"}},
        metadata=metadata,
        name=f"inspector {inspector.name}, {side}",
    )
