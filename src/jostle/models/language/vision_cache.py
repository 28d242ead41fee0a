"""Reuse of a vision tower's outputs for pictures that it has seen before.

Towers of the known families look at each picture (Qwen: each pair of pictures) by itself. Here they get them in batches
of one size, filled up with black, in which the output for a picture is proved to have the same bits whatever the batch:
so it can be kept. Frames that a corruption left alone are computed once for all cells and questions of a video. What
is kept is found by its content and compared value by value.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from jostle.core.cuda import GraphReplays
from jostle.models.rows import RowBatches

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
REPLAYED = ("qwen2_vl", "llava_onevision")  # families whose towers a GPU runs as CUDA graphs
# Numbers that a GPU puts through a tower at once, about; a graph starts as fast whatever its batch.
BATCH_VALUES, REPLAYED_VALUES = 2**22, 2**20


@dataclass(frozen=True)
class _Picture:
    """Arguments of a tower for one picture, or one pair."""

    pixels: Tensor
    others: dict[str, Tensor]
    grid: tuple[int, ...] = ()  # height and width in patches, where pictures are rows of them

    def equals(self, other: _Picture) -> bool:
        return torch.equal(self.pixels, other.pixels) and all(
            torch.equal(value, other.others[name]) for name, value in self.others.items()
        )

    def copy(self) -> _Picture:
        return replace(self, pixels=self.pixels.clone())


class VisionCache:
    """Outputs of a vision tower by picture; replaces the tower's `forward`.

    Args:
        tower: module that looks at pictures.
        layers: indices of the hidden states that are used, which alone are kept; None for all.
        kept: pictures whose outputs are kept, the latest ones.
        replayed: whether a GPU runs the tower as a CUDA graph; it must launch the same operations for all pictures of
            one shape.

    Attributes:
        computed: pictures that the tower has processed.
        reused: pictures whose outputs were known.
    """

    def __init__(
        self, tower: nn.Module, layers: Collection[int] | None = None, kept: int = KEPT, *, replayed: bool = False
    ) -> None:
        self._tower, self._forward, self._layers, self._kept = tower, tower.forward, layers, kept
        self._replays = GraphReplays(tower) if replayed else None
        self._row_batches = RowBatches(tower)
        self._launchers: dict[Hashable, Callable[[Tensor], Any]] = {}
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
            values = BATCH_VALUES if self._replays is None else REPLAYED_VALUES
            largest = _pictures_at_once(pixels.device, shape, values)
            size = self._proved_size(first, pictures[places[0]], largest, arguments)
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

    def _proved_size(self, first: str, picture: _Picture, largest: int, arguments: dict[str, Any]) -> int:
        """Return the number of pictures in a batch, in which no picture's output depends on the others."""

        def outputs(rows: Tensor) -> Tensor:
            others = {name: torch.cat([value] * len(rows)) for name, value in picture.others.items()}
            output = self._forward(**{first: rows.flatten(0, 1)}, **others, **arguments)
            return torch.stack([torch.cat(_tensors(_part(output, i, len(rows)))) for i in range(len(rows))])

        name = f"{picture.grid} {sorted((name, repr(value)) for name, value in arguments.items())}"
        return self._row_batches.size(name, outputs, picture.pixels[None], largest)

    def _compute(self, first: str, pictures: list[_Picture], size: int, arguments: dict[str, Any]) -> list[Any]:
        """Return the outputs for pictures of one shape, at most a batch of them."""
        self.computed += len(pictures)
        lacking = size - len(pictures)
        filled = [*pictures, *[replace(pictures[0], pixels=torch.zeros_like(pictures[0].pixels))] * lacking]
        others = {name: torch.cat([one.others[name] for one in filled]) for name in pictures[0].others}
        pixels = torch.cat([one.pixels for one in filled])
        grids = tuple(one.grid for one in filled)
        output = self._launch(first, pixels, others, arguments, grids)
        if self._layers is not None and getattr(output, "hidden_states", None) is not None:
            states = output.hidden_states
            used = {layer % len(states) for layer in self._layers}
            output.hidden_states = tuple(state if i in used else None for i, state in enumerate(states))
        return [_part(output, number, size) for number in range(len(pictures))]

    def _launch(
        self, first: str, pixels: Tensor, others: dict[str, Tensor], arguments: dict[str, Any], grids: Hashable
    ) -> Any:
        """Return the output for a batch of pictures."""
        if self._replays is None or not pixels.is_cuda or not others.keys() <= {GRID}:
            return self._forward(**{first: pixels}, **others, **arguments)
        key = (pixels.shape, grids, *sorted((name, repr(value)) for name, value in arguments.items()))
        if key not in self._launchers:
            fixed = {**others, **_places_of(self._tower, others), **arguments}
            self._launchers[key] = lambda batch: self._forward(**{first: batch}, **fixed)
        return self._replays(self._launchers[key], pixels)


def _places_of(tower: Any, others: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what Qwen2-VL's tower works out from the grids of pictures: places, and where each picture begins.

    The beginnings stay on the CPU, where each layer looks at them without waiting for the GPU.
    """
    if GRID not in others:
        return {}
    library = importlib.import_module("transformers.vision_utils")
    places = library.get_vision_position_ids(others[GRID], tower.spatial_merge_size)
    return {"position_ids": places, "cu_seqlens": library.get_vision_cu_seqlens(others[GRID].cpu())}


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
            yield _Picture(pixels[row : row + height * width], {GRID: grid, **own}, (height, width))
            row += height * width


def _pictures_at_once(device: torch.device, shape: torch.Size, values: int) -> int:
    """Return the number of pictures in a batch: on a GPU a power of two with about so many values."""
    if device.type != "cuda":
        return 1
    return int(2 ** max(round(math.log2(values / shape.numel())), 0))


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


def _tensors(output: Any) -> list[Tensor]:
    """Return the bytes of every tensor of an output."""
    if isinstance(output, Tensor):
        return [output.contiguous().view(torch.uint8).flatten()]
    parts = [] if output is None else output.values() if isinstance(output, dict) else output
    return [tensor for part in parts for tensor in _tensors(part)]


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
    # Other attention looks at where pictures begin, on the GPU.
    replayed = family in REPLAYED and getattr(tower.config, "_attn_implementation", None) == "sdpa"
    return VisionCache(tower, layers, replayed=replayed)


def pool_in_channels_last(network: Any) -> None:
    """Let LLaVA-OneVision pool features of frames as they lie in memory, to the same bits.

    The library brings channels to the front, where a GPU interpolates with one thread for each place of a frame.
    """
    library_pooling, vision = network.model.apply_pooling, network.config.vision_config

    def apply_pooling(features: Tensor) -> Tensor:
        if not features.is_cuda:
            pooled: Tensor = library_pooling(features)
            return pooled
        side = vision.image_size // vision.patch_size
        pictures = features.view(len(features), side, side, -1).permute(0, 3, 1, 2)
        pooled = nn.functional.interpolate(pictures, [-(-side // 2)] * 2, mode="bilinear")
        return pooled.permute(0, 2, 3, 1).flatten(1, 2)

    network.model.apply_pooling = apply_pooling
