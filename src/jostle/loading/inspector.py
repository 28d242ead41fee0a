"""Inspectors by name: the one that comes with jostle, or one of your own from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jostle.loading.installed import need_torch
from jostle.shipped import weights_file

if TYPE_CHECKING:
    from jostle.models.inspector import Inspector

OWN = "jostle"  # the name of the one that comes along


def load_inspector(name: str | Path = OWN, *, device: str = "cpu") -> Inspector:
    """An inspector, which says of each frame of a video how probably it was struck.

    Args:
        name: `jostle` for the one that comes along, or the path of weights that `jostle train` wrote.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        CheckpointError: if the file is not of an inspector.
        MissingExtra: if torch is not installed.
    """
    need_torch("the inspector")
    from jostle.detectors.checkpoints import read_note, read_weights
    from jostle.detectors.devices import device_for
    from jostle.models.inspector import inspector_of

    path = weights_file("inspector") if str(name) == OWN else Path(name)
    tensors = read_weights(path)
    noted: dict[str, float] = read_note(path, "thresholds", {})
    return inspector_of(tensors, noted, name=str(name), device=str(device_for(device)))
