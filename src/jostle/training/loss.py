"""Registries of losses: of recognisers, and of the distance between predictions for clean and corrupted input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.core.registry import Registry
from jostle.errors import BadValue

if TYPE_CHECKING:
    from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Loss:
    """A registered loss of recognisers."""

    name: str
    function: Callable[[Tensor, Tensor, Any], Tensor]
    whole_sets: bool  # takes every frame of a set, not its anchor alone

    def __call__(self, logits: Tensor, labels: Tensor, config: Any) -> Tensor:
        """Return the loss of logits (B, S, K) of S frames or one clip each, and classes (B,).

        Raises:
            BadValue: if the function returns anything but one number.
        """
        return _one_number(f"loss {self.name}", self.function(logits, labels, config))


@dataclass(frozen=True)
class Divergence:
    """A registered divergence of two lists of numbers."""

    name: str
    function: Callable[[Tensor, Tensor, float], Tensor]
    is_mean: bool  # over the numbers; others are sums

    def __call__(self, p: Tensor, q: Tensor, epsilon: float = 1e-6) -> Tensor:
        """Return the divergence of numbers from 0 to 1; no logarithm is of less than `epsilon`.

        Raises:
            BadValue: if the function returns anything but one number.
        """
        return _one_number(f"divergence {self.name}", self.function(p, q, epsilon))


losses: Registry[Loss] = Registry("loss", "jostle.training.losses")
divergences: Registry[Divergence] = Registry("divergence", "jostle.training.losses")


def loss(name: str, *, whole_sets: bool = False) -> Callable[[F], F]:
    """Register the decorated function as a loss of recognisers, and return it unchanged.

    It takes logits (B, S, K), classes (B,) and the settings of the run, and returns a scalar: a mean over the B clips,
    as a batch may be shared by several processes. S is 1, unless it takes whole sets.

    Args:
        name: value of `loss` in a training file.
        whole_sets: it takes logits of all S frames of each set of frames, not of its anchor alone.
    """

    def register(function: F) -> F:
        losses.add(name, Loss(name, function, whole_sets))
        return function

    return register


def divergence(name: str, *, is_mean: bool = False) -> Callable[[F], F]:
    """Register the decorated function as a divergence of the consistency loss, and return it unchanged.

    It takes two tensors of equal shape with errors or overlaps, from 0 to 1, for clean and for corrupted input, and
    the epsilon of the settings, and returns a scalar.

    Args:
        name: value of `consistency.divergence` in a training file.
        is_mean: it is a mean over the numbers; others are sums, which the paper's form divides by the actions.
    """

    def register(function: F) -> F:
        divergences.add(name, Divergence(name, function, is_mean))
        return function

    return register


def _one_number(what: str, value: Any) -> Tensor:
    if getattr(value, "shape", None) != ():
        shape = getattr(value, "shape", None)
        got = f"{type(value).__name__}" if shape is None else f"a tensor {tuple(shape)}"
        raise BadValue(f"{what} returned {got}; it must return a tensor of one number")
    number: Tensor = value
    return number
