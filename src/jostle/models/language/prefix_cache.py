"""Reuse of a language model's keys and values for tokens that prompts have in common.

Frames come before the question, and what a language model computes of a token depends on that token and those before
it. Here it reads a prompt in pieces of a fixed number of tokens, and keeps the keys and values of each. A piece that
begins a prompt as it began another one is not read again: a further question about the same frames costs its own
tokens, and a corrupted cell those from its first corrupted frame on. Pieces begin at the same tokens in every prompt,
as libraries choose their kernels by the shape: so a kept piece has the bits of a computed one. What is kept is found by
its content and compared value by value.
"""

from __future__ import annotations

import importlib
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jostle.models.language.vision_cache import checksum

LANGUAGE_MODELS = ("language_model", "text_model")  # attributes of the known families
TOKEN_AXES = {"inputs_embeds": 1, "position_ids": -1, "visual_pos_masks": 1}
DEEPSTACK = (
    "deepstack_visual_embeds"  # Qwen3-VL: a tensor for each of the first layers, with a row for each visual token
)
CPU_TOKENS, LEAST_TOKENS = 256, 512
PIECE_WORK = 12e12  # operations that outlast the start of a piece's kernels on a GPU
CPU_BYTES = 2**30
DEVICE_SHARE = 1 / 8


@dataclass(frozen=True)
class _Piece:
    """Arguments of a language model for one piece of a prompt."""

    tensors: dict[str, Tensor]
    deepstack: tuple[Tensor, ...]

    def equals(self, other: _Piece) -> bool:
        """Return whether another piece, of the same names and shapes, has the same values."""
        return all(torch.equal(value, other.tensors[name]) for name, value in self.tensors.items()) and all(
            torch.equal(mine, theirs) for mine, theirs in zip(self.deepstack, other.deepstack, strict=True)
        )

    def copy(self) -> _Piece:
        return _Piece(
            {name: value.clone() for name, value in self.tensors.items()}, tuple(one.clone() for one in self.deepstack)
        )

    def arguments(self) -> dict[str, Any]:
        return {**self.tensors, DEEPSTACK: list(self.deepstack)} if self.deepstack else dict(self.tensors)


@dataclass(frozen=True)
class _Computed:
    """A piece with the keys and values of every layer and the last hidden states of its tokens."""

    number: int
    piece: _Piece
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    hidden: Tensor

    @property
    def nbytes(self) -> int:
        tensors = (*self.piece.tensors.values(), *self.piece.deepstack, *self.keys, *self.values, self.hidden)
        return sum(one.nbytes for one in tensors)


class PrefixCache:
    """Keys and values of a language model by piece of a prompt; replaces the model's `forward`.

    Args:
        model: causal language model, which sees all tokens before each.
        tokens: number of tokens of a piece.
        kept_bytes: memory for pieces, the latest ones.

    Attributes:
        computed: pieces that the model has read, without the last of each prompt.
        reused: pieces that were known.
    """

    def __init__(self, model: nn.Module, tokens: int, kept_bytes: int) -> None:
        self._forward, self._tokens, self._kept_bytes = model.forward, tokens, kept_bytes
        self._known: OrderedDict[tuple[Any, ...], _Computed] = OrderedDict()
        self._bytes = self._last_number = 0
        self.computed = self.reused = 0
        model.forward = self

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        """Return the output of the model, with the hidden states of all tokens."""
        if args or not _can_be_split(arguments) or arguments["inputs_embeds"].shape[1] <= self._tokens:
            return self._forward(*args, **arguments)
        pieces = list(_split(arguments, self._tokens))
        others = {name: value for name, value in arguments.items() if name not in (*TOKEN_AXES, DEEPSTACK)}
        mask = others.pop("attention_mask", None)
        sums = torch.stack([checksum(one.tensors["inputs_embeds"]) for one in pieces[:-1]]).tolist()
        chain = self._find(pieces[:-1], sums)
        self.reused += len(chain)
        hidden = [known.hidden for _, known in chain]
        cache = others.get("past_key_values")
        if cache is None:
            cache = importlib.import_module("transformers").DynamicCache()
        _fill(cache, [known for _, known in chain])
        others |= {"past_key_values": cache, "use_cache": True}
        stop = len(chain) * self._tokens
        for place in range(len(chain), len(pieces)):
            piece = pieces[place]
            start, stop = stop, stop + piece.tensors["inputs_embeds"].shape[1]
            if mask is not None:
                others["attention_mask"] = mask[:, :stop]
            output = self._forward(**piece.arguments(), **others)
            hidden.append(output.last_hidden_state)
            if place < len(pieces) - 1:  # the last one has another length, and no prompt continues it
                before = chain[-1][1].number if chain else 0
                chain.append((_key(before, sums[place], piece), self._keep(piece, output, start)))
        # A piece goes before those that lead to it: without them it could not be found.
        for key, known in reversed(chain):
            if key not in self._known:
                self._bytes += known.nbytes
            self._known[key] = known
            self._known.move_to_end(key)
        while self._bytes > self._kept_bytes:
            self._bytes -= self._known.popitem(last=False)[1].nbytes
        output.last_hidden_state = torch.cat(hidden, 1)
        return output

    def _find(self, pieces: list[_Piece], sums: list[int]) -> list[tuple[tuple[Any, ...], _Computed]]:
        """Return the kept pieces with which a prompt begins."""
        chain: list[tuple[tuple[Any, ...], _Computed]] = []
        number = 0
        for total, piece in zip(sums, pieces, strict=True):
            key = _key(number, total, piece)
            known = self._known.get(key)
            if known is None or not known.piece.equals(piece):
                break
            chain.append((key, known))
            number = known.number
        return chain

    def _keep(self, piece: _Piece, output: Any, start: int) -> _Computed:
        """Return a piece with copies of what was computed of it."""
        self.computed += 1
        self._last_number += 1
        layers = output.past_key_values.layers
        keys = tuple(one.keys[:, :, start:].clone() for one in layers)
        values = tuple(one.values[:, :, start:].clone() for one in layers)
        return _Computed(self._last_number, piece.copy(), keys, values, output.last_hidden_state)


def _can_be_split(arguments: dict[str, Any]) -> bool:
    """Return whether arguments are those of one whole prompt, without padding, and all have a known meaning."""
    embedded, mask, cache = (arguments.get(name) for name in ("inputs_embeds", "attention_mask", "past_key_values"))
    if embedded is None or len(embedded) != 1:
        return False
    if cache is not None and (type(cache).__name__ != "DynamicCache" or cache.get_seq_length()):
        return False
    if any(arguments.get(name) for name in ("output_hidden_states", "output_attentions")):
        return False
    tensors = {name for name, value in arguments.items() if isinstance(value, Tensor)}
    if not tensors <= {*TOKEN_AXES, "attention_mask"}:
        return False
    return mask is None or (isinstance(mask, Tensor) and mask.ndim == 2 and bool(mask.all()))


def _split(arguments: dict[str, Any], tokens: int) -> list[_Piece]:
    """Return the arguments piece by piece."""
    length = arguments["inputs_embeds"].shape[1]
    tensors = {name: arguments[name] for name in TOKEN_AXES if isinstance(arguments.get(name), Tensor)}
    deepstack = tuple(arguments.get(DEEPSTACK) or ())
    visual = tensors.get("visual_pos_masks")
    pieces, row = [], 0
    for start in range(0, length, tokens):
        stop = min(start + tokens, length)
        part = {name: value.narrow(TOKEN_AXES[name], start, stop - start) for name, value in tensors.items()}
        rows = int(part["visual_pos_masks"].sum()) if deepstack and visual is not None else 0
        pieces.append(_Piece(part, tuple(one[row : row + rows] for one in deepstack)))
        row += rows
    return pieces


def _key(before: int, total: int, piece: _Piece) -> tuple[Any, ...]:
    shapes = [one.shape for one in (*piece.tensors.values(), *piece.deepstack)]
    return before, total, *sorted(piece.tensors), *shapes


def _fill(cache: Any, known: list[_Computed]) -> None:
    """Put the keys and values of pieces into an empty cache of transformers."""
    for layer in range(len(known[0].keys) if known else 0):
        keys = torch.cat([one.keys[layer] for one in known], 2)
        cache.update(keys, torch.cat([one.values[layer] for one in known], 2), layer)


def tokens_of_piece(model: nn.Module, device: torch.device) -> int:
    """Return the number of tokens of a piece: on a GPU so many that computing them takes longer than starting kernels.

    >>> tokens_of_piece(nn.Linear(1, 1), torch.device("cpu"))
    256
    """
    if device.type != "cuda":
        return CPU_TOKENS
    needed = PIECE_WORK / (2 * sum(one.numel() for one in model.parameters()))
    return max(LEAST_TOKENS, int(2 ** math.ceil(math.log2(needed))))


def attach_prefix_cache(network: Any) -> PrefixCache | None:
    """Let the language model of a network reuse its keys and values; None where not every layer sees all tokens."""
    inner = getattr(network, "model", network)
    model = next((one for name in LANGUAGE_MODELS if isinstance(one := getattr(inner, name, None), nn.Module)), None)
    if model is None or set(getattr(model.config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        return None
    device: torch.device = network.device
    kept = CPU_BYTES
    if device.type == "cuda":
        kept = int(DEVICE_SHARE * torch.cuda.get_device_properties(device).total_memory)
    return PrefixCache(model, tokens_of_piece(model, device), kept)
