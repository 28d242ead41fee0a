"""Image classifiers as recognisers of single frames, and helpers for the libraries that provide them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue, MissingExtra, ResourceError
from jostle.models.input_spec import InputSpec


class OneFrame(nn.Module):
    """Wrapper of an image network that takes clips of one frame, (B, 1, 3, H, W)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of single frames."""
        output: Tensor = self.network(clips[:, 0])
        return output


def picture_spec(
    name: str,
    resize: tuple[int, int] | int,
    crop: Sequence[int],
    interpolation: str,
    mean: Sequence[float],
    std: Sequence[float],
    **rest: Any,
) -> InputSpec:
    """Return the input spec of an image classifier, with its library's preprocessing."""
    if len(set(crop)) != 1:
        raise BadValue(f"{name}: crops must be square, not {tuple(crop)}")
    if interpolation not in ("bilinear", "bicubic"):
        raise BadValue(f"{name}: pictures are resized bilinear or bicubic here, not {interpolation!r}")
    (a, b, c), (d, e, f) = mean, std
    defaults: dict[str, Any] = {"layout": "TCHW", "odd_margin": "even", "arithmetic": "pillow", "beyond": "black"}
    return InputSpec(
        frames=1,
        stride=1,
        resize=resize,
        size=crop[0],
        mean=(a, b, c),
        std=(d, e, f),
        interpolation=interpolation,  # type: ignore[arg-type]
        **(defaults | rest),
    )


def last_layer(network: nn.Module, classes: int) -> str:
    """Return the name of the last layer of a network with so many outputs."""
    names: list[str] = [
        name
        for name, layer in network.named_modules()
        if getattr(layer, "out_features", None) == classes or getattr(layer, "out_channels", None) == classes
    ]
    return names[-1]


def library_module(name: str, module: str, extra: str) -> Any:
    """Import a module of a library that may be missing or incompatible with the installed torch."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(name, extra) from None
    except RuntimeError as error:
        raise ResourceError(
            f"{name}: torchvision is installed but does not load beside torch {torch.__version__} ({error}); install "
            "the build that belongs to it"
        ) from None
