"""A network of one's own, by `package.module:attribute`: as it is, or made for a number of classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from jostle.core.plugins import found_at
from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Changes, Recogniser, changed, fill


def own_recogniser(
    place: str, classes: int, changes: Changes, *, option: str, weights: Mapping[str, Tensor] | None = None
) -> Recogniser:
    """The recogniser that a place means.

    What is there is a `Recogniser` or a `torch.nn.Module`, or a function that makes one; it is given the number of
    classes, if it takes an argument. A module has what it wants to see as `spec`, or the changes say all of it.

    Args:
        classes: that are told apart.
        changes: fields of its `InputSpec`.
        option: that the place was given to, for messages.
        weights: to put into it.

    Raises:
        BadValue: if it is no such thing.
        CheckpointError: F54 if the weights belong to another network.
    """
    found = found_at(place, option)
    made = found if isinstance(found, nn.Module | Recogniser) else _called(found, classes, f"{option} {place}")
    if isinstance(made, Recogniser):
        network, spec, head = made.network, made.spec, made.head
    else:
        network, spec, head = made, getattr(made, "spec", None), ""
    if not isinstance(network, nn.Module):
        raise BadValue(f"{option} {place}: a {type(made).__name__} is no torch.nn.Module, nor a Recogniser with one")
    if weights is not None:
        fill(place, network, weights)
    spec = changed(place, spec, changes) if isinstance(spec, InputSpec) else _told(place, changes)
    return Recogniser(network, spec, outputs="logits", name=place, head=head)


def _called(found: Any, classes: int, said: str) -> Any:
    if not callable(found):
        raise BadValue(f"{said}: is a {type(found).__name__}, neither a network nor a function that makes one")
    made = found(classes) if _takes_classes(found) else found()
    if not isinstance(made, nn.Module | Recogniser):
        raise BadValue(f"{said}: made a {type(made).__name__}, not a torch.nn.Module or a Recogniser")
    return made


def _takes_classes(maker: Callable[..., Any]) -> bool:
    try:
        inspect.signature(maker).bind(1)
    except TypeError:
        return False
    return True


def _told(place: str, changes: Changes) -> InputSpec:
    lacking = [name for name in ("frames", "size") if name not in changes]
    if lacking:
        raise BadValue(
            f"{place}: has no InputSpec as its `spec`, so say what it wants to see: {' and '.join(lacking)} in [input]"
        )
    usual = {"stride": changes["frames"], "resize": changes["size"]}
    return InputSpec(**{**usual, **changes})
