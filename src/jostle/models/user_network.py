"""Users' networks by `package.module:attribute`: an object, or a factory called with the number of classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from jostle.core.plugins import import_object
from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Changes, Recogniser, changed, load_weights


def load_user_recogniser(
    place: str, classes: int, changes: Changes, *, option: str, weights: Mapping[str, Tensor] | None = None
) -> Recogniser:
    """Load the recogniser of an import path.

    What is there is a `Recogniser` or a `torch.nn.Module`, or a function that makes one; it is given the number of
    classes, if it takes an argument. A module has what it wants to see as `spec`, or the changes say all of it.

    Args:
        classes: number of classes.
        changes: fields of its `InputSpec`.
        option: that the place was given to, for messages.
        weights: to put into it.

    Raises:
        BadValue: if it is no such thing.
        CheckpointError: F54 if the weights belong to another network.
    """
    imported = import_object(place, option)
    model = (
        imported
        if isinstance(imported, nn.Module | Recogniser)
        else _build_network(imported, classes, f"{option} {place}")
    )
    if isinstance(model, Recogniser):
        network, spec, head = model.network, model.spec, model.head
    else:
        network, spec, head = model, getattr(model, "spec", None), ""
    if not isinstance(network, nn.Module):
        raise BadValue(f"{option} {place}: a {type(model).__name__} is no torch.nn.Module, nor a Recogniser with one")
    if weights is not None:
        load_weights(place, network, weights)
    spec = changed(place, spec, changes) if isinstance(spec, InputSpec) else _spec_from_changes(place, changes)
    return Recogniser(network, spec, outputs="logits", name=place, head=head)


def _build_network(factory: Any, classes: int, path: str) -> Any:
    if not callable(factory):
        raise BadValue(f"{path}: is a {type(factory).__name__}, neither a network nor a function that makes one")
    model = factory(classes) if _takes_classes(factory) else factory()
    if not isinstance(model, nn.Module | Recogniser):
        raise BadValue(f"{path}: made a {type(model).__name__}, not a torch.nn.Module or a Recogniser")
    return model


def _takes_classes(maker: Callable[..., Any]) -> bool:
    try:
        inspect.signature(maker).bind(1)
    except TypeError:
        return False
    return True


def _spec_from_changes(place: str, changes: Changes) -> InputSpec:
    lacking = [name for name in ("frames", "size") if name not in changes]
    if lacking:
        raise BadValue(
            f"{place}: has no InputSpec as its `spec`, so say what it wants to see: {' and '.join(lacking)} in [input]"
        )
    defaults = {"stride": changes["frames"], "resize": changes["size"]}
    return InputSpec(**{**defaults, **changes})
