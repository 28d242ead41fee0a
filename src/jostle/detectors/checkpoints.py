"""Weights in and out: safetensors of our own, and the originals' pickled checkpoints read without trusting them.

A `.pth` file is a pickle, a program for a small stack machine. Before anything of it runs, its instructions are
listed, and a file that names anything beyond tensors and plain containers is refused. What passes goes through
torch's own restricted reader. There is no way back to the unrestricted one.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import pickletools
import re
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import safetensors
import safetensors.torch
import torch
from torch.serialization import safe_globals

from jostle.errors import BadValue, CheckpointError, ResourceError

Weights = dict[str, torch.Tensor]

_MAX_HEADER = 100_000_000  # bytes; the limit of the safetensors format
_LISTED = 8  # names of each kind that a list of differences shows
_RAW, _EMA = "state_dict", "state_dict_ema"  # as the originals and OpenTAD call them
_INNER = ("model", "module")  # as the trainers of TSP and VideoMAE V2 do, which keep much else beside the weights
_LEGACY_PICKLES = 5  # a checkpoint from before torch 1.6: magic number, protocol, machine, content, storage names

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
# Narrower than what torch's reader allows: nothing that can be told to fill the memory.
_ALLOWED = re.compile(
    r"(__builtin__|builtins) set|collections OrderedDict|_codecs encode|argparse Namespace"
    r"|numpy dtype|numpy\._?core\.multiarray scalar"
    r"|torch (Size|device|float\d+|bfloat16|int\d+|uint8|bool|[A-Z][a-zA-Z0-9]+Storage)"
    r"|torch\.storage (Untyped|Typed)Storage|torch\.nn\.parameter Parameter"
    r"|torch\._utils _rebuild_(tensor|tensor_v2|tensor_v3|parameter)"
)
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


def read_weights(path: str | os.PathLike[str], *, ema: bool = True) -> Weights:
    """The tensors of a checkpoint by name, on the CPU, without the `module.` that DataParallel puts in front.

    Reads `.safetensors`, the `.pth.tar` files of ActionFormer, TriDet and TemporalMaxer, the `.pth` of OpenTAD, TSP
    and VideoMAE V2, and plain pickled state dicts. The kind is told from the content, not from the name.

    Args:
        ema: take the averaged weights (`state_dict_ema`), which the originals evaluate with. A checkpoint that has
            only raw ones gives those, with a warning.

    Raises:
        CheckpointError: F52 if it asks for code to be run, F53 if it is damaged or something else, F55 if its
            safetensors header contradicts itself.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; give the path of a .safetensors, .pth or .pth.tar checkpoint")
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from None
    kind = _kind(head, path)
    if kind == "safetensors":
        return _without_prefix(_read_safetensors(path), path)
    return _without_prefix(_chosen(_read_pickled(path, kind), ema, path), path)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The text kept beside the tensors of a safetensors file; empty for other files."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except (safetensors.SafetensorError, OSError):
        return {}


def write_weights(
    weights: Mapping[str, torch.Tensor], path: str | os.PathLike[str], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors as safetensors, all at once: the name never holds half a file, even if the process is killed.

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
    with _placed(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            flat = weights[name].detach().cpu().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)


def differences(expected: Mapping[str, Sequence[int]], found: Mapping[str, torch.Tensor]) -> str:
    """What keeps weights from fitting a network, kind by kind; an empty text if they fit.

    Args:
        expected: shapes by name, as the network has them.
        found: tensors by name, as the checkpoint has them.

    >>> print(differences({"a": (2, 3), "b": (1,)}, {"a": torch.zeros(2, 4), "c": torch.zeros(1)}))
    1 missing: b
    1 unexpected: c
    1 of another shape: a is (2, 4), not (2, 3)
    """
    missing = [name for name in expected if name not in found]
    unexpected = [name for name in found if name not in expected]
    other = [
        f"{name} is {tuple(found[name].shape)}, not {tuple(shape)}"
        for name, shape in expected.items()
        if name in found and tuple(found[name].shape) != tuple(shape)
    ]
    kinds = (("missing", missing), ("unexpected", unexpected), ("of another shape", other))
    return "\n".join(f"{len(names)} {kind}: {_listed(names)}" for kind, names in kinds if names)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _damaged(path: Path, what: str) -> NoReturn:
    raise CheckpointError(f"{path}: {what}; fetch or write it again", fault="F53")


def _without_prefix(weights: Mapping[str, Any], path: Path) -> Weights:
    made: Weights = {}
    for key, tensor in weights.items():
        if not isinstance(key, str) or not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            raise CheckpointError(
                f"{path}: {str(key)[:80]!r} is a {type(tensor).__name__}, not a dense tensor; this is no state dict"
            )
        name = key.removeprefix("module.")
        if name in made:
            raise CheckpointError(f"{path}: {name!r} is there both with and without 'module.' in front", fault="F54")
        made[name] = tensor.detach().contiguous()
    if not made:
        raise CheckpointError(f"{path}: it holds no tensors", fault="F54")
    return made


def _kind(head: bytes, path: Path) -> Literal["safetensors", "zip", "pickle"]:
    """Which of the readable kinds the first bytes show; anything else is refused by what it looks like."""
    if not head:
        _damaged(path, "the file is empty")
    braced = head[8:9] == b"{"  # safetensors begins with the length of a JSON header, then the header
    if braced and int.from_bytes(head[:8], "little") <= path.stat().st_size - 8:
        return "safetensors"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"\x80"):
        return "pickle"
    for begin, look in _LOOKS:
        if re.match(begin, head, re.IGNORECASE | re.DOTALL):
            _damaged(path, f"not a checkpoint; it looks like {look}")
    if braced or path.suffix == ".safetensors":
        return "safetensors"
    _damaged(path, "not a checkpoint of any known kind")


def _chosen(content: object, ema: bool, path: Path) -> Mapping[str, Any]:
    """The state dict among what a checkpoint holds."""
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path}: it holds a {type(content).__name__}, not weights by name")
    inner = {name: content[name] for name in (_RAW, _EMA) if isinstance(content.get(name), Mapping)}
    if not inner:
        return next((content[name] for name in _INNER if isinstance(content.get(name), Mapping)), content)
    name = _EMA if (ema and _EMA in inner) or _RAW not in inner else _RAW
    if (name == _EMA) != ema:
        held, asked = ("averaged", "raw") if name == _EMA else ("raw", "averaged")
        warnings.warn(f"{path}: it has no {asked} weights; the {held} ones ({name}) are used", stacklevel=4)
    chosen: Mapping[str, Any] = inner[name]
    return chosen


class _Ignored:
    """Stands where a pickle asks for what nobody needs: TemporalMaxer's mAP, a number of NumPy's; TSP's arguments."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...


_STAND_INS: list[Any] = [
    (_Ignored, name)
    for name in ("numpy.dtype", "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "argparse.Namespace")
]


def _read_pickled(path: Path, kind: str) -> object:
    if kind == "zip":
        _check_names(io.BytesIO(_checked_archive(path)), 1, path)
    else:
        with path.open("rb") as file:
            _check_names(file, _LEGACY_PICKLES, path)
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        raise CheckpointError(
            f"{path}: torch {torch.__version__} cannot read pickled weights safely (CVE-2025-32434); "
            "install torch 2.6 or newer, or convert the file to safetensors elsewhere"
        )
    try:
        with safe_globals(_STAND_INS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols and old storages, nothing a reader can act on
            return torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise ResourceError(f"{path}: it asks for more memory than there is") from None
    except Exception as error:  # torch answers a broken file with whatever the broken piece happens to raise
        first = str(error).split("\n")[0][:200]
        _damaged(path, f"torch cannot read it ({type(error).__name__}: {first})")


def _checked_archive(path: Path) -> bytes:
    """The pickle inside a checkpoint, once the archive around it is known to be whole and as torch writes it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            pickles = [name for name in names if name.split("/")[1:] == ["data.pkl"]]
            if any(name.endswith("constants.pkl") for name in names):
                raise CheckpointError(f"{path}: a TorchScript program, not weights; export its state dict", fault="F52")
            if not pickles:
                raise CheckpointError(
                    f"{path}: a zip archive, but not one of torch.save ({_listed(names)}); unpack it first", fault="F53"
                )
            folder = pickles[0].split("/")[0]
            odd = next((name for name in names if not name.startswith(f"{folder}/") or ".." in name.split("/")), None)
            # torch finds an entry whatever its case, so names that differ only in that are doubled too.
            if len({name.lower() for name in names}) < len(names) or len(pickles) > 1 or odd is not None:
                raise CheckpointError(f"{path}: refused, its archive has doubled or stray entries", fault="F52")
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise CheckpointError(
                    f"{path}: refused, its archive is compressed, as torch.save never does", fault="F52"
                )
            broken = archive.testzip()
            if broken is not None:
                _damaged(path, f"damaged, the checksum of {broken} is wrong")
            return archive.read(pickles[0])
    except (
        zipfile.BadZipFile,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        struct.error,
        OSError,
    ) as error:
        _damaged(path, f"cut off or damaged ({error})")


def _check_names(file: Any, pickles: int, path: Path) -> None:
    """Refuse a pickle that names anything but tensors and plain containers; nothing is executed here."""
    said = ["?", "?"]  # the last texts: newer pickles put the name of what they want on the stack first
    try:
        for _ in range(pickles):
            for code, argument, _place in pickletools.genops(file):
                if isinstance(argument, str):
                    said = [said[1], argument]
                if code.name == "STACK_GLOBAL":
                    _refuse(path, ".".join(said))
                if code.name in ("INST", "EXT1", "EXT2", "EXT4"):
                    _refuse(path, str(argument))
                if code.name == "GLOBAL" and not _ALLOWED.fullmatch(str(argument)):
                    _refuse(path, str(argument))
    except (ValueError, EOFError, UnicodeDecodeError, struct.error, IndexError) as error:
        _damaged(path, f"cut off or damaged ({error})")


def _refuse(path: Path, what: str) -> NoReturn:
    name = what[:120].replace(" ", ".")
    raise CheckpointError(
        f"{path}: refused, nothing in it was run: it asks for {name}, and weights need only tensors and containers; "
        "get the weights from their authors, or convert them to safetensors where you trust the file",
        fault="F52",
    )


def _read_safetensors(path: Path) -> Weights:
    """Read what the library reads; it refuses overlaps, gaps and offsets out of the file, but not doubled names."""
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
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)[:80]!r} is there twice")
    return made


_counter = itertools.count()


@contextlib.contextmanager
def _placed(path: Path) -> Iterator[Any]:
    """A file beside the target, flushed to the disk, that takes the target's place at the end."""
    if not path.parent.is_dir():
        raise BadValue(f"{path}: its folder does not exist; create {path.parent}")
    temporary = path.parent / f".{path.name[:80]}.part-{os.getpid()}-{next(_counter)}"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        if hasattr(os, "O_DIRECTORY"):  # where folders can be flushed, the new name is on the disk too
            folder = os.open(path.parent, os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written ({error.strerror}); what was there before is kept") from None
    finally:
        temporary.unlink(missing_ok=True)
