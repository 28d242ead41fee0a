"""Loading of inspectors by name or path, and the options of mending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from jostle.corruptions.engine.damage_finder import DamageFinder
from jostle.errors import BadValue, CheckpointError
from jostle.mending.damage_finders import find_own_finder
from jostle.models.loading.names import need_torch
from jostle.models.weights.packaged import weights_file

if TYPE_CHECKING:
    from jostle.mending.inspection import Inspector

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
    from jostle.mending.inspection import build_inspector
    from jostle.models.checkpoints import read_note, read_weights
    from jostle.models.devices import device_for

    path = weights_file("inspector") if str(name) == BUNDLED else Path(name)
    tensors = read_weights(path)
    thresholds: dict[str, float] = read_note(path, "thresholds", {})
    return build_inspector(tensors, thresholds, name=str(name), device=str(device_for(device)))


@dataclass(frozen=True)
class MendingOptions:
    """Options of mending, not loaded yet."""

    # Name of a damage finder ("jostle", "known" ...), its import path, a path of weights, an `Inspector` or a
    # `DamageFinder`.
    mend: str | Path | Inspector | DamageFinder

    def check(self, *, known: bool) -> None:
        """Raise if the options are invalid, before anything large is loaded.

        Args:
            known: whether the damaged frames can be known.
        """
        if not isinstance(self.mend, str | Path) and not hasattr(self.mend, "name"):
            raise BadValue(
                f"mend is `jostle`, a file of weights, an Inspector, a damage finder or `known`, not {self.mend!r}"
            )
        if find_own_finder(self.mend) is not None or not isinstance(self.mend, str | Path):
            return
        if str(self.mend) == KNOWN:
            if not known:
                refuse_known()
        elif str(self.mend) != BUNDLED and not Path(self.mend).is_file():
            raise CheckpointError(
                f"{self.mend}: no such file; mend by `jostle`, or pass weights that `jostle train` wrote"
            )

    def get(self, device: str) -> DamageFinder:
        """Load the finder of damaged frames.

        Args:
            device: for a finder that is loaded here; an object stays where it is.
        """
        from jostle.mending.finders.known import KnownDamage
        from jostle.mending.inspected_frames import InspectorFinder

        own = find_own_finder(self.mend)
        if own is not None:
            return own.to(device) if isinstance(self.mend, str | Path) else own
        return KnownDamage() if str(self.mend) == KNOWN else InspectorFinder(as_inspector(self.mend, device))


def refuse_known() -> NoReturn:
    """Raise because the true damage is not known here."""
    raise BadValue("`known` works only with `run`, where the benchmark knows the damaged frames; mend by `jostle`")


def on_cpu(finder: DamageFinder) -> DamageFinder:
    """Return a damage finder on the CPU."""
    return finder.to("cpu") if hasattr(finder, "to") else finder


def as_inspector(inspector: Any, device: str = "cpu") -> Inspector:
    """Return the inspector that is no damage finder from outside, loaded if it is not."""
    if isinstance(inspector, str | Path):
        return load_inspector(inspector, device=device)
    if not hasattr(inspector, "inspect"):
        raise BadValue(
            f"inspector is `jostle`, a file of weights, an Inspector or a damage finder, not {inspector!r:.80}"
        )
    loaded: Inspector = inspector
    return loaded


def stream_inspector(inspector: str | Path | Inspector | None) -> Inspector:
    """Return the inspector of a stream, loaded if it is not; the bundled one for None.

    Raises:
        BadValue: for a damage finder, which needs the whole video.
    """
    inspector = BUNDLED if inspector is None else inspector
    own = find_own_finder(inspector)
    if own is not None or str(inspector) == KNOWN:
        name = KNOWN if own is None else own.name
        raise BadValue(
            f"{name}: a damage finder needs the whole video; a stream is inspected by `jostle`, weights of "
            "`jostle train` or an Inspector"
        )
    return load_inspector(inspector) if isinstance(inspector, str | Path) else inspector
