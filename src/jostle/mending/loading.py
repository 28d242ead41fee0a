"""Loading of inspectors by name or path, and the options of mending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import BadValue, CheckpointError
from jostle.models.loading.names import need_torch
from jostle.models.weights.packaged import weights_file

if TYPE_CHECKING:
    from jostle.mending.damage_finders import Mending
    from jostle.mending.inspector import Inspector

BUNDLED = "jostle"  # name of the inspector that ships with jostle
KNOWN = "known"  # oracle: damage is read from the placement


def load_inspector(name: str | Path = BUNDLED, *, device: str = "cpu") -> Inspector:
    """Load an inspector, which predicts for each frame of a video the probability that it is damaged.

    Args:
        name: `jostle` for the bundled one, or the path of weights that `jostle train` wrote.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        CheckpointError: if the file does not hold an inspector.
        MissingExtra: if torch is not installed.
    """
    need_torch("the inspector")
    from jostle.mending.inspector import build_inspector
    from jostle.models.checkpoints import read_note, read_weights
    from jostle.models.devices import device_for

    path = weights_file("inspector") if str(name) == BUNDLED else Path(name)
    tensors = read_weights(path)
    thresholds: dict[str, float] = read_note(path, "thresholds", {})
    return build_inspector(tensors, thresholds, name=str(name), device=str(device_for(device)))


@dataclass(frozen=True)
class MendingOptions:
    """Options of mending, not loaded yet."""

    # "jostle" (the bundled inspector), a path of weights, an `Inspector`, or "known" (oracle: the true frames).
    mend: str | Path | Inspector

    def check(self, *, known: bool) -> None:
        """Raise if the options are invalid, before anything large is loaded.

        Args:
            known: whether the damaged frames can be known.
        """
        if not isinstance(self.mend, str | Path):
            if not hasattr(self.mend, "name"):
                raise BadValue(f"mend is `jostle`, a file of weights, an Inspector or `known`, not {self.mend!r}")
            return
        if str(self.mend) == BUNDLED:
            return
        if str(self.mend) == KNOWN:
            if not known:
                raise BadValue(
                    "`known` works only with `run`, where the benchmark knows the damaged frames; mend by `jostle`"
                )
        elif not Path(self.mend).is_file():
            raise CheckpointError(
                f"{self.mend}: no such file; mend by `jostle`, or pass weights that `jostle train` wrote"
            )

    def get(self, device: str) -> Mending:
        """Load the inspector and return the strategy that finds damaged frames."""
        from jostle.mending.damage_finders import Mending

        if not isinstance(self.mend, str | Path):
            return Mending(self.mend)
        return Mending(None if str(self.mend) == KNOWN else load_inspector(self.mend, device=device))
