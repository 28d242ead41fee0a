"""Reuse of a vision tower's outputs for pictures that it has seen before.

Towers of the known families look at each picture (Qwen: each pair of pictures) by itself. Here they get them in batches
of one size, filled up with black, as libraries choose their kernels by the shape: so the output for a picture has the
same bits in any company and can be kept. Frames that a corruption left alone are computed once for all cells and
questions of a video. What is kept is found by its content and compared value by value.
"""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

TOWERS = {
    "qwen2_vl": "visual",
    "qwen2_5_vl": "visual",
    "qwen3_vl": "visual",
    "llava_onevision": "vision_tower",
    "llava_next_video": "vision_tower",
    "internvl": "vision_tower",
    "smolvlm": "vision_model",
    "video_llama_3": "vision_model",
}
GRID = "grid_thw"  # argument of towers that take pictures as rows of patches
BY_PICTURE = ("patch_attention_mask", "merge_sizes")  # arguments with a row for each picture, or for each video
KEPT = 128  # outputs of pictures
BATCH_VALUES = 2**22  # numbers that a GPU puts through the tower at once, about


@dataclass(frozen=True)
class _Picture:
    """Arguments of a tower for one picture, or one pair."""

    pixels: Tensor
    others: dict[str, Tensor]

    def equals(self, other: _Picture) -> bool:
        return torch.equal(self.pixels, other.pixels) and all(
            torch.equal(value, other.others[name]) for name, value in self.others.items()
        )

    def copy(self) -> _Picture:
        return _Picture(self.pixels.clone(), self.others)


class VisionCache:
    """Outputs of a vision tower by picture; replaces the tower's `forward`.

    Args:
        tower: module that looks at pictures.
        layers: indices of the hidden states that are used, which alone are kept; None for all.
        kept: pictures whose outputs are kept, the latest ones.

    Attributes:
        computed: pictures that the tower has processed.
        reused: pictures whose outputs were known.
    """

    def __init__(self, tower: nn.Module, layers: Collection[int] | None = None, kept: int = KEPT) -> None:
        self._forward, self._layers, self._kept = tower.forward, layers, kept
        self._signature = inspect.signature(self._forward)
        self._known: OrderedDict[tuple[Any, ...], tuple[_Picture, Any]] = OrderedDict()
        self.computed = self.reused = 0
        tower.forward = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the tower, joined from those of single pictures."""
        bound = self._signature.bind(*args, **kwargs)
        arguments = {**bound.arguments, **bound.arguments.get("kwargs", {})}
        arguments.pop("kwargs", None)
        first = next(iter(self._signature.parameters))
        tensors = {name for name, value in arguments.items() if isinstance(value, Tensor)}
        if not tensors <= {first, GRID, *BY_PICTURE}:  # of a meaning that is not known here
            return self._forward(*args, **kwargs)
        pixels, others = arguments.pop(first), {name: arguments.pop(name) for name in tensors - {first}}
        pictures = list(_split_pictures(pixels, others))
        sums = torch.stack([checksum(one.pixels) for one in pictures]).tolist()
        keys = [(total, one.pixels.shape, *sorted(arguments)) for total, one in zip(sums, pictures, strict=True)]
        outputs = [self._find(key, one) for key, one in zip(keys, pictures, strict=True)]
        missing: dict[torch.Size, list[int]] = {}  # places by shape
        twins: dict[int, int] = {}  # place of an equal picture before
        places_by_key: dict[tuple[Any, ...], int] = {}
        for place, output in enumerate(outputs):
            if output is not None:
                continue
            before = places_by_key.setdefault(keys[place], place)
            if before != place and pictures[before].equals(pictures[place]):
                twins[place] = before
            else:
                missing.setdefault(pictures[place].pixels.shape, []).append(place)
        for shape, places in missing.items():
            size = _pictures_at_once(pixels.device, shape)
            for some in (places[lo : lo + size] for lo in range(0, len(places), size)):
                new = self._compute(first, [pictures[place] for place in some], size, arguments)
                for place, output in zip(some, new, strict=True):
                    outputs[place] = output
                    self._known[keys[place]] = (pictures[place].copy(), output)
        for place, before in twins.items():
            outputs[place] = outputs[before]
        while len(self._known) > self._kept:
            self._known.popitem(last=False)
        return _join(outputs)

    def _find(self, key: tuple[Any, ...], picture: _Picture) -> Any:
        """Return the output for a picture that is kept, else None."""
        if key not in self._known or not self._known[key][0].equals(picture):
            return None
        self.reused += 1
        self._known.move_to_end(key)
        return self._known[key][1]

    def _compute(self, first: str, pictures: list[_Picture], size: int, arguments: dict[str, Any]) -> list[Any]:
        """Return the outputs for pictures of one shape, at most a batch of them."""
        self.computed += len(pictures)
        lacking = size - len(pictures)
        filled = [*pictures, *[_Picture(torch.zeros_like(pictures[0].pixels), pictures[0].others)] * lacking]
        others = {name: torch.cat([one.others[name] for one in filled]) for name in pictures[0].others}
        output = self._forward(**{first: torch.cat([one.pixels for one in filled])}, **others, **arguments)
        if self._layers is not None and getattr(output, "hidden_states", None) is not None:
            states = output.hidden_states
            used = {layer % len(states) for layer in self._layers}
            output.hidden_states = tuple(state if i in used else None for i, state in enumerate(states))
        return [_part(output, number, size) for number in range(len(pictures))]


def _split_pictures(pixels: Tensor, others: dict[str, Tensor]) -> Iterator[_Picture]:
    """Yield the arguments of a tower picture by picture."""
    if GRID not in others:
        for i in range(len(pixels)):
            yield _Picture(pixels[i : i + 1], {name: value[i : i + 1] for name, value in others.items()})
        return
    row = 0
    for video, (count, height, width) in enumerate(others[GRID].tolist()):
        own = {name: value[video : video + 1] for name, value in others.items() if name != GRID}
        grid = torch.tensor([[1, height, width]]).to(others[GRID])
        for _ in range(count):
            yield _Picture(pixels[row : row + height * width], {GRID: grid, **own})
            row += height * width


def _pictures_at_once(device: torch.device, shape: torch.Size) -> int:
    """Return the number of pictures in a batch: on a GPU a power of two, by their size alone."""
    if device.type != "cuda":
        return 1
    return int(2 ** max(round(math.log2(BATCH_VALUES / shape.numel())), 0))


def checksum(pixels: Tensor) -> Tensor:
    """Return a number that is the same for the same pixels, on any device."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[pixels.element_size()]
    values = pixels.contiguous().view(whole).flatten().long()
    return (values * torch.arange(1, 2 * len(values), 2, device=values.device)).sum()


def _part(output: Any, number: int, count: int) -> Any:
    """Return what an output of a batch has of one of its pictures."""
    if isinstance(output, Tensor):
        return torch.unflatten(output, 0, (count, -1))[number].clone()  # without the rest of the batch
    if isinstance(output, list | tuple):
        return type(output)(_part(one, number, count) for one in output)
    if output is None:
        return None
    return type(output)(**{name: _part(output[name], number, count) for name in output})


def _join(outputs: list[Any]) -> Any:
    """Join outputs of pictures: tensors row by row, and what holds tensors part by part."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return torch.cat(outputs)
    if isinstance(first, list | tuple):
        return type(first)(_join(list(parts)) for parts in zip(*outputs, strict=True))
    if first is None:
        return None
    return type(first)(**{name: _join([one[name] for one in outputs]) for name in first})


def attach_vision_cache(network: Any, family: str) -> VisionCache | None:
    """Let the vision tower of a network reuse its outputs; None for a network without a tower that is known."""
    tower = getattr(getattr(network, "model", network), TOWERS.get(family, ""), None)
    if not isinstance(tower, nn.Module):
        return None
    layer = getattr(network.config, "vision_feature_layer", None)
    layers = None if layer is None else [layer] if isinstance(layer, int) else list(layer)
    return VisionCache(tower, layers)
