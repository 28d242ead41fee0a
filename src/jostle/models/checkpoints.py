"""Checkpoint files: jostle's safetensors, and public pickled checkpoints, read without executing them.

The content of a checkpoint is checked before it is used: a few bytes can claim a tensor of any size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import struct
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from jostle.errors import BadValue, CheckpointError, ResourceError
from jostle.io.files.atomic import replacing
from jostle.models.finite import check_weights
from jostle.models.pickled_weights import damaged_error, read_pickled

Weights = dict[str, torch.Tensor]
T = TypeVar("T")

_MAX_HEADER = 100_000_000  # bytes; the limit of the safetensors format
_RAW, _EMA = "state_dict", "state_dict_ema"  # as the originals and OpenTAD call them
# As the trainers of PyTorchVideo, E2E-TAD, TSP and VideoMAE V2 do, which keep much else beside the weights.
_INNER = ("model_state", "model", "module")

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
# What a file of the wrong kind begins with.
_LOOKS = (
    (rb"\s*<(!doctype|html|\?xml)", "a web page: the download was answered by a form or an error"),
    (rb"version https://git-lfs", "a Git LFS pointer: run git lfs pull for the file itself"),
    (rb"\x1f\x8b", "a gzip archive: unpack it first"),
    (rb"\x93NUMPY", "a NumPy array"),
    (rb"\x89HDF", "an HDF5 file"),
    (rb".{257}ustar", "a tar archive: unpack it first, or save it again with a torch of this decade"),
    (rb"\s*[\[{]", "JSON"),
)


def read_weights(path: str | os.PathLike[str], *, ema: bool | None = True) -> Weights:
    """Read the tensors of a checkpoint by name, on the CPU, without DataParallel's `module.` prefix.

    Reads `.safetensors`, the `.pth.tar` files of ActionFormer, TriDet and TemporalMaxer, the `.pth` of OpenTAD,
    E2E-TAD, TSP and VideoMAE V2, the `.pyth` of PyTorchVideo and SlowFast, and plain pickled state dicts. The kind is
    detected by the content, not by the name.

    Args:
        ema: take the averaged weights (`state_dict_ema`), which the originals evaluate with. A checkpoint that has
            only raw ones gives those, with a warning; None where either will do.

    Raises:
        CheckpointError: F52 if it asks for code to be run, F53 if it is damaged or something else, F55 if its
            safetensors header contradicts itself, F97 if a tensor claims more values than the file holds.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; give the path of a .safetensors, .pth or .pth.tar checkpoint")
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from None
    kind = _detect_format(head, path)
    if kind == "safetensors":
        return _without_prefix(_read_safetensors(path), path)
    return _without_prefix(_select_state_dict(read_pickled(path, kind), ema, path), path)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the metadata of a safetensors file; empty for other files."""
    if not Path(path).is_file():  # a pipe would block
        return {}
    try:
        with safetensors.safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except (safetensors.SafetensorError, OSError):
        return {}


def read_note(path: str | os.PathLike[str], name: str, default: T) -> T:
    """Read a JSON value from the metadata of a safetensors file, or return `default`.

    Raises:
        CheckpointError: F106 if it is not JSON, or of another kind than `default`.
    """
    text = read_metadata(path).get(name)
    if text is None:
        return default
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, type(default)):
        raise CheckpointError(
            f"{path}: what it notes as {name!r} is damaged: {text[:60]!r}; fetch or write it again", fault="F106"
        )
    return value


def write_weights(
    weights: Mapping[str, torch.Tensor], path: str | os.PathLike[str], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors as safetensors atomically: the file is complete, even if the process is killed.

    Equal weights and metadata give equal bytes. Tensors that share memory are written once each.

    Args:
        metadata: text to keep beside the tensors, such as the name of the detector.
    """
    path = Path(path)
    odd = next((name for name, tensor in weights.items() if tensor.dtype not in _DTYPES), None)
    if odd is not None:
        raise BadValue(f"{path}: {odd} is of type {weights[odd].dtype}, which safetensors has no name for")
    # Wide types first, so that every tensor lies aligned to its own width.
    order = sorted(weights, key=lambda name: (-weights[name].element_size(), str(weights[name].dtype), name))
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    begin = 0
    for name in order:
        tensor = weights[name]
        end = begin + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with _replace_atomically(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            flat = weights[name].detach().cpu().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)


def _without_prefix(weights: Mapping[str, Any], path: Path) -> Weights:
    weights_by_name: Weights = {}
    copied, size = 0, path.stat().st_size
    for key, tensor in weights.items():
        if not isinstance(key, str) or not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            raise CheckpointError(
                f"{path}: {str(key)[:80]!r} is a {type(tensor).__name__}, not a dense tensor; this is no state dict"
            )
        name = key.removeprefix("module.")
        if name in weights_by_name:
            raise CheckpointError(f"{path}: {name!r} is there both with and without 'module.' in front", fault="F54")
        claimed = tensor.numel() * tensor.element_size()
        copied += 0 if tensor.is_contiguous() else claimed
        # A view may show one value as often as it likes, and only a copy would take the room.
        if claimed > tensor.untyped_storage().nbytes() or copied > size:
            raise CheckpointError(
                f"{path}: {name[:80]!r} claims {tensor.numel()} values of shape {tuple(tensor.shape)}, more than the "
                "file holds; save the weights again with tensor.contiguous()",
                fault="F97",
            )
        weights_by_name[name] = tensor.detach().contiguous()
    if not weights_by_name:
        raise CheckpointError(f"{path}: it holds no tensors", fault="F54")
    return weights_by_name


def _detect_format(head: bytes, path: Path) -> Literal["safetensors", "zip", "pickle"]:
    """Detect the format of a checkpoint by its first bytes, or raise."""
    if not head:
        raise damaged_error(path, "the file is empty")
    braced = head[8:9] == b"{"  # safetensors begins with the length of a JSON header, then the header
    if braced and int.from_bytes(head[:8], "little") <= path.stat().st_size - 8:
        return "safetensors"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"\x80"):
        return "pickle"
    for begin, look in _LOOKS:
        if re.match(begin, head, re.IGNORECASE | re.DOTALL):
            raise damaged_error(path, f"not a checkpoint; it looks like {look}")
    if braced or path.suffix == ".safetensors":
        return "safetensors"
    raise damaged_error(path, "not a checkpoint of any known kind")


def _select_state_dict(content: object, ema: bool | None, path: Path) -> Mapping[str, Any]:
    """Select the state dict in the content of a checkpoint."""
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path}: it holds a {type(content).__name__}, not weights by name")
    inner = {name: content[name] for name in (_RAW, _EMA) if isinstance(content.get(name), Mapping)}
    if not inner:
        return next((content[name] for name in _INNER if isinstance(content.get(name), Mapping)), content)
    name = _EMA if (ema is not False and _EMA in inner) or _RAW not in inner else _RAW
    if ema is not None and (name == _EMA) != ema:
        held, missing = ("averaged", "raw") if name == _EMA else ("raw", "averaged")
        warnings.warn(f"{path}: it has no {missing} weights; the {held} ones ({name}) are used", stacklevel=4)
    chosen: Mapping[str, Any] = inner[name]
    return chosen


def _read_safetensors(path: Path) -> Weights:
    """Read a safetensors file; the library checks offsets, and this function checks repeated names."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.read(8)
        length = int.from_bytes(start, "little") if len(start) == 8 else 0
        if not 2 <= length <= min(_MAX_HEADER, size - 8):
            _contradicts(path, f"a header of {length} bytes in a file of {size}")
        text = file.read(length)
    try:
        json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        _contradicts(path, str(error).split("\n")[0][:200])
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, ValueError, RuntimeError, KeyError, OSError) as error:
        _contradicts(path, str(error).split("\n")[0][:200])


def _contradicts(path: Path, why: str) -> NoReturn:
    raise CheckpointError(f"{path}: not a whole safetensors file ({why}); fetch or write it again", fault="F55")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {twice[:80]!r} is there twice")
    return mapping


@contextlib.contextmanager
def _replace_atomically(path: Path) -> Iterator[Any]:
    """Open a temporary file beside the target that replaces it at the end, flushed to disk."""
    if not path.parent.is_dir():
        raise BadValue(f"{path}: its folder does not exist; create {path.parent}")
    try:
        with replacing(path) as temporary, temporary.open("xb") as file:
            yield file
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written ({error.strerror}); what was there before is kept") from None


def tensors_fingerprint(thing: object) -> str | None:
    """Return `sha256:` and a hash of the names, shapes and values of a module's tensors, or None.

    Raises:
        CheckpointError: F120 if a weight is not finite; networks that users build are loaded by themselves.
    """
    network = getattr(thing, "network", thing)  # a recogniser has its network inside
    if not isinstance(network, nn.Module):
        return None
    check_weights(network, getattr(thing, "name", "") or type(network).__name__)
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return f"sha256:{digest.hexdigest()}"


_DRAWS = (nn.init.kaiming_uniform_, nn.init.uniform_, nn.init.normal_)


class Uninitialised(TorchFunctionMode):
    """Mode in which layers leave their parameters as they were allocated.

    It is for networks whose weights are loaded next, as drawing them takes longer than that. Buffers are drawn as ever:
    not all of them are among the weights. A tensor without values is not drawn either, which would import torch's
    compiler, for 1.6 s.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in _DRAWS:
            tensor = args[0] if args else kwargs["tensor"]
            if isinstance(tensor, nn.Parameter) or tensor.is_meta:
                return tensor
        if function is Tensor.normal_ and args[0].is_meta:
            return args[0]
        return function(*args, **kwargs)
