"""Inspectors by name: the one that comes with jostle, or one of your own from a file; and mending by one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import BadValue, CheckpointError
from jostle.models.loading.names import need_torch
from jostle.models.weights.shipped import weights_file

if TYPE_CHECKING:
    from jostle.mending.damage import Mending
    from jostle.mending.inspector import Inspector

OWN = "jostle"  # the name of the one that comes along
KNOWN = "known"  # not by an inspector, but by the placement itself


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
    from jostle.mending.inspector import inspector_of
    from jostle.models.checkpoints import read_note, read_weights
    from jostle.models.devices import device_for

    path = weights_file("inspector") if str(name) == OWN else Path(name)
    tensors = read_weights(path)
    noted: dict[str, float] = read_note(path, "thresholds", {})
    return inspector_of(tensors, noted, name=str(name), device=str(device_for(device)))


@dataclass(frozen=True)
class AskedMending:
    """Mending as it was asked for.

    Attributes:
        mend: `jostle`, the path of weights, an `Inspector`; or `known`, where a benchmark itself strikes the frames.
    """

    mend: str | Path | Inspector

    def check(self, *, known: bool) -> None:
        """Raise where it cannot be had, before anything large is loaded.

        Args:
            known: whether it can be known which frames are struck.

        Raises:
            BadValue: if it is known where that cannot be.
            CheckpointError: if there is no such file.
        """
        if not isinstance(self.mend, str | Path) or str(self.mend) == OWN:
            return
        if str(self.mend) == KNOWN:
            if not known:
                raise BadValue("which frames were struck is known in a benchmark alone, to `run`; mend by `jostle`")
        elif not Path(self.mend).is_file():
            raise CheckpointError(
                f"{self.mend}: no such file; mend by `jostle`, or give weights that `jostle train` wrote"
            )

    def get(self, device: str) -> Mending:
        """What tells which frames were struck."""
        from jostle.mending.damage import Mending

        if not isinstance(self.mend, str | Path):
            return Mending(self.mend)
        return Mending(None if str(self.mend) == KNOWN else load_inspector(self.mend, device=device))
