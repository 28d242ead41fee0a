"""Any recogniser as an extractor: its features are what the last layer makes scores of."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.extractors.extractor import Extractor, ExtractorKind
from jostle.models.recognition.recogniser import Recogniser


def as_extractor(recogniser: Recogniser) -> Extractor:
    """The recogniser's network and eyes; a window is as many frames as a clip spans, and of it the same are seen.

    Raises:
        BadValue: if it is no module, or does not say which layer is the last.
    """
    network, spec, name = recogniser.network, recogniser.spec, recogniser.name
    if not isinstance(network, nn.Module) or spec is None or not recogniser.head:
        raise BadValue(
            f"{name} cannot make features: it has to be a torch.nn.Module with an InputSpec, and to name the layer "
            "that makes scores of features: Recogniser(network, spec, head=...)"
        )
    inner = Penultimate(network, recogniser.head, name)
    span = spec.frames * spec.step
    kind = ExtractorKind(
        name,
        build=partial(Penultimate, network, recogniser.head, name),
        spec=replace(spec, frames=span, step=1, spread="step", clips=None, starts="ends"),
        dim=inner.dim,
        least_frames=span,
        source="",
        most_frames=span,
        picks=None if spec.step == 1 else spec.picks,
    )
    return Extractor(kind, inner)


class Penultimate(nn.Module):
    """A network whose features are the input of one of its layers.

    Args:
        network: what gives scores.
        head: name of the layer, linear or a convolution of single places.

    Attributes:
        dim: length of a feature.
    """

    def __init__(self, network: nn.Module, head: str, name: str) -> None:
        super().__init__()
        try:
            layer = network.get_submodule(head)
        except AttributeError:
            raise BadValue(f"{name}: its network has no layer {head!r}; name the one that makes the scores") from None
        if isinstance(layer, nn.Linear):
            self.dim = layer.in_features
        elif isinstance(layer, nn.Conv3d) and layer.kernel_size == (1, 1, 1) and layer.groups == 1:
            self.dim = layer.in_channels
        else:
            raise BadValue(f"{name}: {head!r} is a {type(layer).__name__}, not a linear layer or 1x1x1 convolution")
        self.network, self.name, self.head = network, name, head
        self._seen: Tensor | None = None
        layer.register_forward_pre_hook(self._look)

    def _look(self, layer: nn.Module, given: tuple[Any, ...]) -> None:
        self._seen = given[0]

    def features(self, clips: Tensor) -> Tensor:
        """(B, dim) of prepared clips; the mean over all places where a convolution makes scores at each of them."""
        self._seen = None
        self.network(clips)
        seen, self._seen = self._seen, None
        if seen is None or len(seen) != len(clips) or seen.ndim < 2 or seen.shape[1] != self.dim:
            found = "nothing" if seen is None else f"{tuple(seen.shape)}"
            raise BadValue(f"{self.name}: {self.head} was given {found}, not ({len(clips)}, {self.dim}) features")
        return seen.flatten(2).mean(2) if seen.ndim > 2 else seen
