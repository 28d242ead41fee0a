"""Tensors by name, held against what a network wants: how the two differ, in a few words however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

LISTED = 3  # names of a kind in a message


class Shaped(Protocol):
    """A tensor, as far as this goes."""

    @property
    def shape(self) -> Sequence[int]: ...


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def differences(expected: Mapping[str, Sequence[int]], found: Mapping[str, Shaped]) -> str:
    """What keeps weights from fitting a network, kind by kind; an empty text if they fit.

    Args:
        expected: shapes by name, as the network has them.
        found: tensors by name, as the checkpoint has them.

    >>> import numpy as np
    >>> print(differences({"a": (2, 3), "b": (1,)}, {"a": np.zeros((2, 4)), "c": np.zeros(1)}))
    1 missing: b
    1 unexpected: c
    1 of another shape: a is (2, 4), not (2, 3)
    """
    missing = [name for name in expected if name not in found]
    unexpected = [name for name in found if name not in expected]
    other = [
        f"{name} is {tuple(found[name].shape)}, not {tuple(shape)}"
        for name, shape in expected.items()
        if name in found and tuple(found[name].shape) != tuple(shape)
    ]
    kinds = (("missing", missing), ("unexpected", unexpected), ("of another shape", other))
    return "\n".join(f"{len(names)} {kind}: {listed(names)}" for kind, names in kinds if names)
