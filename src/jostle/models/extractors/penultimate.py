"""Recognisers as extractors: features are the input of the last layer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.extractors.extractor import Extractor, ExtractorKind
from jostle.models.recognition.recogniser import Recogniser


def as_extractor(recogniser: Recogniser) -> Extractor:
    """Return an extractor with the recogniser's network and input spec; a window spans one clip.

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
    """Network whose features are the input of one of its layers.

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

    def _look(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._seen = inputs[0]

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, dim) features of prepared clips, averaged over positions for convolutional layers."""
        self._seen = None
        self.network(clips)
        features, self._seen = self._seen, None
        if features is None or len(features) != len(clips) or features.ndim < 2 or features.shape[1] != self.dim:
            description = "nothing" if features is None else f"{tuple(features.shape)}"
            raise BadValue(f"{self.name}: {self.head} was given {description}, not ({len(clips)}, {self.dim}) features")
        return features.flatten(2).mean(2) if features.ndim > 2 else features
