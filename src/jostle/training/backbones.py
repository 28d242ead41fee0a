"""A detector's backbone as it was learned elsewhere: the public weights of a video network, put where they belong."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from jostle.core.state_dict import differences, listed
from jostle.errors import CheckpointError
from jostle.models.checkpoints import read_weights

PLACE = "backbone."
INNER = ("_model.", "backbone.")  # what AFSD and E2E-TAD call the network inside
COUNTED = "num_batches_tracked"  # which some programs do not write, and nothing needs


def fill_backbone(model: nn.Module, weights: str | Path, name: str) -> None:
    """Put public weights into the backbone of a detector.

    A tensor is found by its name in the network, whatever the program that wrote the file has put before it; others,
    such as those of a classifier, are left.

    Raises:
        CheckpointError: F54 if some are lacking, or of another shape.
    """
    held = read_weights(weights, ema=None)
    wanted = {own: _core(own) for own in model.state_dict() if own.startswith(PLACE)}
    longest = max((core for core in wanted.values() if not core.endswith(COUNTED)), key=len)
    before = {"", *(key.removesuffix(longest) for key in held if key.endswith(f".{longest}"))}
    prefix = max(sorted(before), key=lambda some: sum(some + core in held for core in wanted.values()))
    found: dict[str, torch.Tensor] = {own: held[prefix + core] for own, core in wanted.items() if prefix + core in held}
    lacking = [core for own, core in wanted.items() if own not in found and not core.endswith(COUNTED)]
    if lacking:
        raise CheckpointError(
            f"{weights}: not a backbone of {name}: it has no {listed(lacking)}, but {listed(list(held))}", fault="F54"
        )
    shapes = {own: tuple(tensor.shape) for own, tensor in model.state_dict().items() if own in found}
    if apart := differences(shapes, found):
        raise CheckpointError(f"{weights}: not a backbone of {name}: {apart}", fault="F54")
    model.load_state_dict(found, strict=False)


def _core(own: str) -> str:
    """The name of a tensor in the video network itself."""
    inside = own.removeprefix(PLACE)
    return next((inside.removeprefix(part) for part in INNER if inside.startswith(part)), inside)
