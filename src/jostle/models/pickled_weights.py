"""Pickled checkpoints of `torch.save`, read as data without executing them.

A `.pth` file is a pickle, a program for a small stack machine. Before anything of it runs, its instructions are
listed, and a file that names anything beyond tensors and plain containers is refused. What passes goes through
torch's own restricted reader. There is no way back to the unrestricted one.
"""

from __future__ import annotations

import io
import mmap
import pickletools
import re
import struct
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch
from torch.serialization import safe_globals

from jostle.core.formatting import join_names
from jostle.errors import CheckpointError, ResourceError

_MAX_PARTS = 10_000  # of a tuple; those of a checkpoint are shapes and strides
_LEGACY_PICKLES = 5  # a checkpoint from before torch 1.6: magic number, protocol, machine, content, storage names
# Narrower than what torch's reader allows: nothing that can be told to fill the memory.
_ALLOWED = re.compile(
    r"(__builtin__|builtins) set|collections OrderedDict|_codecs encode|argparse Namespace|easydict EasyDict"
    r"|numpy dtype|numpy\._?core\.multiarray scalar"
    r"|torch (Size|device|float\d+|bfloat16|int\d+|uint8|bool|[A-Z][a-zA-Z0-9]+Storage)"
    r"|torch\.storage (Untyped|Typed)Storage|torch\.nn\.parameter Parameter"
    r"|torch\._utils _rebuild_(tensor|tensor_v2|tensor_v3|parameter)"
)


def damaged_error(path: Path, what: str) -> CheckpointError:
    """Return the error for a file that is damaged or of another kind."""
    return CheckpointError(f"{path}: {what}; fetch or write it again", fault="F53")


class _Ignored:
    """Placeholder for pickled objects that are not needed, such as NumPy numbers and arguments."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...


class _Settings:
    """Placeholder for a dictionary with attributes (E2E-TAD's settings), which torch's reader cannot fill."""

    def __new__(cls, *_: object) -> Any:
        return OrderedDict()


_STAND_INS: list[Any] = [
    (_Settings, "easydict.EasyDict"),
    *(
        (_Ignored, name)
        for name in (
            "numpy.dtype",
            "numpy.core.multiarray.scalar",
            "numpy._core.multiarray.scalar",
            "argparse.Namespace",
        )
    ),
]


def read_pickled(path: Path, kind: Literal["zip", "pickle"]) -> object:
    """Read a file of `torch.save`, in the zip format or the one before torch 1.6.

    Raises:
        CheckpointError: F52 if it asks for code to be run, F53 if it is damaged or something else, F97 if it holds
            a tuple that takes more to look at than to write.
        ResourceError: if it does not fit into memory.
    """
    if kind == "zip":
        _check_program(io.BytesIO(_checked_archive(path)), 1, path)
    else:
        # Through a map a piece that claims to be longer than the file ends with it, and no room is made for the rest.
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            _check_program(mapped, _LEGACY_PICKLES, path)
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
        raise damaged_error(path, f"torch cannot read it ({type(error).__name__}: {first})") from None


def _checked_archive(path: Path) -> bytes:
    """Return the pickle inside a checkpoint, after checking that the archive is one that torch writes."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            pickles = [name for name in names if name.split("/")[1:] == ["data.pkl"]]
            if any(name.endswith("constants.pkl") for name in names):
                raise CheckpointError(f"{path}: a TorchScript program, not weights; export its state dict", fault="F52")
            if not pickles:
                raise CheckpointError(
                    f"{path}: a zip archive, but not one of torch.save ({join_names(names)}); unpack it first",
                    fault="F53",
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
            if sum(entry.file_size for entry in entries) > path.stat().st_size:
                raise damaged_error(path, "its archive claims more than the file holds")
            broken = archive.testzip()
            if broken is not None:
                raise damaged_error(path, f"damaged, the checksum of {broken} is wrong")
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
        raise damaged_error(path, f"cut off or damaged ({error})") from None


def _check_program(file: Any, pickles: int, path: Path) -> None:
    """Refuse a pickle that names anything but tensors and plain containers, without executing it."""
    texts = ["?", "?"]  # the last texts: newer pickles put the name of what they want on the stack first
    try:
        for _ in range(pickles):
            sizes = _Sizes()
            for code, argument, _place in pickletools.genops(file):
                if isinstance(argument, str):
                    texts = [texts[1], argument]
                if code.name == "STACK_GLOBAL":
                    _refuse(path, ".".join(texts))
                if code.name in ("INST", "EXT1", "EXT2", "EXT4"):
                    _refuse(path, str(argument))
                if code.name == "GLOBAL" and not _ALLOWED.fullmatch(str(argument)):
                    _refuse(path, str(argument))
                if sizes.after(code, argument) > _MAX_PARTS:
                    raise CheckpointError(
                        f"{path}: refused, it holds a tuple of more than {_MAX_PARTS} parts, which no weights need",
                        fault="F97",
                    )
    except (ValueError, EOFError, UnicodeDecodeError, struct.error, IndexError, KeyError) as error:
        raise damaged_error(path, f"cut off or damaged ({str(error)[:200]})") from None


class _Sizes:
    """Numbers of parts of the tuples of a pickle, counting nested ones as often as they appear.

    A tuple may be a key, and then it is hashed part by part. A few bytes can hold one that is nested deeper than the
    stack of the process, or one that holds the one before it twice, and that one the one before, forty times over.
    """

    def __init__(self) -> None:
        self._stack: list[int | None] = []  # the parts of each value, one if it is no tuple; None is a mark
        self._memo: dict[int, int] = {}

    def after(self, code: pickletools.OpcodeInfo, argument: Any) -> int:
        """Return the parts of the value on top, once an instruction is done."""
        stack, name = self._stack, code.name
        if name == "MARK":
            stack.append(None)
            return 0
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._memo[len(self._memo) if argument is None else argument] = stack[-1] or 1
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        else:
            popped = self._take(code.stack_before)
            pushed = [1 + sum(popped)] if name.startswith("TUPLE") else [1] * len(code.stack_after)
            stack.extend(pushed)
        return (stack[-1] or 0) if stack else 0

    def _take(self, stack: list[pickletools.StackObject]) -> list[int]:
        popped, single = [], len(stack)
        if pickletools.markobject in stack:
            single = stack.index(pickletools.markobject)
            while (top := self._stack.pop()) is not None:
                popped.append(top)
        return popped + [self._stack.pop() or 1 for _ in range(single)]


def _refuse(path: Path, what: str) -> NoReturn:
    name = what[:120].replace(" ", ".")
    raise CheckpointError(
        f"{path}: refused, nothing in it was run: it asks for {name}, and weights need only tensors and containers; "
        "get the weights from their authors, or convert them to safetensors where you trust the file",
        fault="F52",
    )
