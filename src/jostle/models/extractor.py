"""Feature extractors: a network and its `InputSpec`, called on raw frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.errors import BadValue, CheckpointError
from jostle.models.input_spec import Frames, InputSpec
from jostle.registry import Registry


class FeatureNetwork(Protocol):
    """What an extractor asks of its network."""

    def features(self, clips: Tensor) -> Tensor:
        """(B, C) from (B, 3, T, H, W)."""


@dataclass(frozen=True)
class ExtractorKind:
    """An entry of the shelf: how to build the network, what it wants to see, and where its weights come from."""

    name: str
    build: Callable[[], nn.Module]
    spec: InputSpec
    dim: int
    least_frames: int
    source: str


extractors: Registry[ExtractorKind] = Registry("extractor", "jostle.models")


def extractor(
    name: str, *, spec: InputSpec, dim: int, least_frames: int = 1, source: str
) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
    """Put a function that builds a network on the shelf of extractors.

    Args:
        dim: length of a feature.
        least_frames: shortest clip the network can take.
        source: where the public weights are, in words that end an error message.
    """

    def put(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        extractors.add(name, ExtractorKind(name, build, spec, dim, least_frames, source))
        return build

    return put


class Extractor:
    """A network in evaluation mode that turns clips into features.

    Attributes:
        kind: its entry on the shelf.
        network: the network itself.
    """

    def __init__(self, kind: ExtractorKind, network: nn.Module) -> None:
        self.kind = kind
        self.network = network.eval()

    @property
    def spec(self) -> InputSpec:
        """What it wants to see."""
        return self.kind.spec

    @property
    def dim(self) -> int:
        """Length of a feature."""
        return self.kind.dim

    def __call__(self, clip_frames: Frames) -> npt.NDArray[np.float32]:
        """(B, C) float32 from (B, T, H, W, 3) uint8; a feature is the mean over the crops."""
        clips = np.asarray(clip_frames)
        if clips.ndim != 5 or clips.shape[-1] != 3 or clips.dtype != np.uint8:
            raise BadValue(f"{self.kind.name}: clips must be (B, T, H, W, 3) uint8, not {clips.shape} {clips.dtype}")
        if clips.shape[1] < self.kind.least_frames:
            raise BadValue(
                f"{self.kind.name}: a clip must have at least {self.kind.least_frames} frames, not {clips.shape[1]}; "
                f"{self.spec.frames} are usual"
            )
        device = next(self.network.parameters()).device
        network = cast(FeatureNetwork, self.network)
        features = np.empty((len(clips), self.dim), np.float32)
        with torch.inference_mode():
            # One clip at a time: its crops fill a batch, and memory does not grow with the number of clips.
            for i, clip in enumerate(clips):
                crops = self.spec.prepare(torch.tensor(clip, device=device))  # (crops, 3, T, size, size)
                features[i] = network.features(crops).mean(0).float().cpu().numpy()
        return features


def load_extractor(
    name: str, *, weights: Mapping[str, Tensor] | Literal["random"] | None = None, device: str = "cpu"
) -> Extractor:
    """An extractor by name, with the weights given.

    Args:
        weights: tensors by name; `random` for weights that mean nothing but are the same every time, for tests.

    Raises:
        BadValue: if no weights are given; the message says where the public ones are.
        CheckpointError: F54 if they belong to another network.
    """
    kind = extractors[name]
    if weights is None:
        raise BadValue(f"{name}: features of an untrained network mean nothing; give its weights: {kind.source}")
    if isinstance(weights, str) and weights != "random":
        raise BadValue(f"{name}: weights are tensors by name or 'random', not {weights!r}; read the file first")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = kind.build()
    if not isinstance(weights, str):
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise CheckpointError(f"{name}: the weights belong to another network: {error}", fault="F54") from None
    return Extractor(kind, network.to(device))
