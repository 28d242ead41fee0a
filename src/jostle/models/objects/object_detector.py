"""Object detectors: networks called on raw frames that return boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from jostle.core.registry import Registry
from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue
from jostle.models.input_spec import Frames

Weights = Mapping[str, Tensor] | str | PathLike[str]


class BoxNetworkAdapter(Protocol):
    """Protocol of the network-specific part of an object detector."""

    def __call__(self, frames: Tensor) -> Sequence[Boxes]:
        """Return the objects in each of (N, 3, H, W) from 0 to 1, in pixels of the frame."""


class ObjectDetector:
    """Object detector: scored `Boxes` for each of (N, H, W, 3) uint8 frames.

    Frames go through the network one by one, so that what is found in one does not depend on its company.

    Args:
        network: what is moved to a device and set to inference.
        find: gives the boxes of frames, with the network.
        classes: their names, in the order of the labels; "" for a label that stands for nothing.
        name: for messages.
    """

    def __init__(
        self, network: nn.Module, find: BoxNetworkAdapter, *, classes: Sequence[str] = (), name: str = ""
    ) -> None:
        self.network, self._find = network.eval(), find
        self.classes, self.name = tuple(classes), name or type(network).__name__
        self._device = torch.device("cpu")

    def to(self, device: str) -> ObjectDetector:
        """Move the network to a device."""
        self._device = torch.device(device)
        self.network.to(self._device)
        return self

    @torch.inference_mode()
    def __call__(self, frames: Frames) -> list[Boxes]:
        """Return the boxes of each frame."""
        if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8:
            raise BadValue(f"{self.name}: frames are (N, H, W, 3) uint8, got {frames.shape} {frames.dtype}")
        boxes: list[Boxes] = []
        for frame in frames:
            tensor = torch.from_numpy(np.ascontiguousarray(frame)).to(self._device)
            boxes += self._find((tensor.permute(2, 0, 1).float() / 255)[None])
        return boxes


@dataclass(frozen=True)
class ObjectDetectorKind:
    """Registry entry of an object detector."""

    name: str
    load: Callable[[Weights], ObjectDetector]  # gives the detector with weights
    source: str  # where weights come from, in words
    takes: Literal["file", "folder"] = "file"  # whether weights are a file or a folder

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return " ".join((self.load.__doc__ or "").strip().split("\n\n")[0].split())


object_detectors: Registry[ObjectDetectorKind] = Registry("object detector", "jostle.models.objects")


def object_detector(
    name: str, *, source: str, takes: Literal["file", "folder"] = "file"
) -> Callable[[Callable[[Weights], ObjectDetector]], Callable[[Weights], ObjectDetector]]:
    """Register a function that loads an object detector; see `ObjectDetectorKind`."""

    def register(load: Callable[[Weights], ObjectDetector]) -> Callable[[Weights], ObjectDetector]:
        object_detectors.add(name, ObjectDetectorKind(name, load, source, takes))
        return load

    return register


def add_object_detector(name: str, summary: str, load: Callable[..., ObjectDetector], **about: Any) -> None:
    """Register one of several object detectors that share a function, which takes the name first.

    Args:
        summary: what it is, in a sentence.
        about: see `object_detector`.
    """
    loader = partial(load, name)
    loader.__doc__ = summary
    object_detector(name, **about)(loader)


def as_object_detector(thing: Any, name: str) -> Any:
    """Validate a user's object detector: a callable on frames."""
    if isinstance(thing, nn.Module) and not isinstance(thing, ObjectDetector):
        raise BadValue(
            f"{name}: a torch.nn.Module does not say what its outputs mean; give a callable from frames, (N, H, W, 3) "
            "uint8, to a list of Boxes with scores, or an ObjectDetector around the module"
        )
    if not callable(thing):
        raise BadValue(f"{name}: an object detector is called on frames, (N, H, W, 3) uint8")
    return thing
