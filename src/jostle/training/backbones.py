"""Loading of public video-network weights into a detector's backbone."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from jostle.core.state_dict import describe_mismatch, join_names
from jostle.errors import CheckpointError
from jostle.models.checkpoints import read_weights

PREFIX = "backbone."
INNER = ("_model.", "backbone.")  # prefixes of the inner network in AFSD and E2E-TAD
BATCH_COUNTER = "num_batches_tracked"  # missing in some files, and not needed


def fill_backbone(model: nn.Module, weights: str | Path, name: str) -> None:
    """Load public weights into the backbone of a detector.

    Tensors are matched by their names in the network, whatever prefix the file has; others, such as those of a
    classifier, are ignored.

    Raises:
        CheckpointError: F54 if tensors are missing, or have another shape.
    """
    tensors = read_weights(weights, ema=None)
    names = {own: _network_name(own) for own in model.state_dict() if own.startswith(PREFIX)}
    longest = max((core for core in names.values() if not core.endswith(BATCH_COUNTER)), key=len)
    before = {"", *(key.removesuffix(longest) for key in tensors if key.endswith(f".{longest}"))}
    prefix = max(sorted(before), key=lambda some: sum(some + core in tensors for core in names.values()))
    matched: dict[str, torch.Tensor] = {
        own: tensors[prefix + core] for own, core in names.items() if prefix + core in tensors
    }
    lacking = [core for own, core in names.items() if own not in matched and not core.endswith(BATCH_COUNTER)]
    if lacking:
        raise CheckpointError(
            f"{weights}: not a backbone of {name}: it has no {join_names(lacking)}, but {join_names(list(tensors))}",
            fault="F54",
        )
    shapes = {own: tuple(tensor.shape) for own, tensor in model.state_dict().items() if own in matched}
    if apart := describe_mismatch(shapes, matched):
        raise CheckpointError(f"{weights}: not a backbone of {name}: {apart}", fault="F54")
    model.load_state_dict(matched, strict=False)


def _network_name(own: str) -> str:
    """Return the name of a tensor in the video network itself."""
    inside = own.removeprefix(PREFIX)
    return next((inside.removeprefix(part) for part in INNER if inside.startswith(part)), inside)
