"""Comparison of a checkpoint's tensors with those that a network expects, in a short message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from jostle.core.formatting import join_names

MAX_NAMES = 3  # of each kind, in messages


class HasShape(Protocol):
    """Anything with a shape, such as a tensor."""

    @property
    def shape(self) -> Sequence[int]: ...


def describe_mismatch(expected: Mapping[str, Sequence[int]], actual: Mapping[str, HasShape]) -> str:
    """Describe why a checkpoint does not fit a network; an empty string if it does.

    >>> import numpy as np
    >>> print(describe_mismatch({"a": (2, 3), "b": (1,)}, {"a": np.zeros((2, 4)), "c": np.zeros(1)}))
    1 missing: b
    1 unexpected: c
    1 of another shape: a is (2, 4), not (2, 3)
    """
    missing = [name for name in expected if name not in actual]
    unexpected = [name for name in actual if name not in expected]
    reshaped = [
        f"{name} is {tuple(actual[name].shape)}, not {tuple(shape)}"
        for name, shape in expected.items()
        if name in actual and tuple(actual[name].shape) != tuple(shape)
    ]
    kinds = (("missing", missing), ("unexpected", unexpected), ("of another shape", reshaped))
    return "\n".join(f"{len(names)} {kind}: {join_names(names)}" for kind, names in kinds if names)
