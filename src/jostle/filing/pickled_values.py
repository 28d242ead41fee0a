"""What a pickle may hold besides plain containers: numeric arrays, put together from the names NumPy stores them by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, NoReturn

import numpy as np

_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")
_MAX_DIMENSIONS = 8


class Refused(Exception):
    """Why the pickle is refused."""


MARK = object()


@dataclass(frozen=True)
class Name:
    """A name that the pickle wants imported, one of those below; it stays a name."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass
class Dtype:
    """An element type in the making; its byte order comes later than its name."""

    code: str
    order: str = "="

    def made(self) -> np.dtype[Any]:
        dtype = np.dtype(self.code)
        return dtype if self.order in "=|" else np.dtype(self.order + self.code.lstrip("<>=|"))


@dataclass
class Array:
    """An array in the making; its content comes later."""

    values: np.ndarray[Any, np.dtype[Any]] | None = None


_NUMPY = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
ALLOWED = {
    **{Name(module, name): name for module in _NUMPY for name in ("ndarray", "dtype", "_reconstruct", "scalar")},
    **{Name(module, "_frombuffer"): "_frombuffer" for module in _NUMPY},
    Name("_codecs", "encode"): "encode",
    Name("collections", "OrderedDict"): "OrderedDict",
    Name("builtins", "set"): "set",
    Name("__builtin__", "set"): "set",
}


def finished(made: Any) -> Any:
    """A finished value, or a refusal of one that only pickles have."""
    if isinstance(made, Array):
        if made.values is None:
            raise Refused("it holds an array without content")
        return made.values
    if made is MARK or isinstance(made, Name | Dtype):
        raise Refused(f"it holds {made} as a value")
    return made


def check_plain(keys: list[Any]) -> None:
    """Refuse keys other than text and numbers: the hash of a deeply nested one would overflow the C stack."""
    if not all(type(key) in (str, int, float, bool, bytes, NoneType) for key in keys):
        raise Refused("it holds a key that is neither text nor a number")


def array_of(content: object, dtype: object, shape: object, order: str) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(content, str):  # by Python 2
        content = content.encode("latin-1")
    if not isinstance(dtype, Dtype) or not isinstance(content, bytes | bytearray):
        raise Refused("it holds an array whose elements are not numbers")
    if type(shape) is not tuple or len(shape) > _MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise Refused("it holds an array without a shape")
    made = dtype.made()
    count = 1
    for size in shape:
        count *= size
    if count * made.itemsize != len(content):
        raise Refused(f"it holds an array of shape {shape} with {len(content)} bytes")
    values = np.frombuffer(content, made).reshape(shape, order="F" if order == "F" else "C")
    return values.astype(made.newbyteorder("="))


def _dtype(code: object, *_: object) -> Dtype:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        said = code[:40] if isinstance(code, str) else "unknown"
        raise Refused(f"it holds an array of type {said!r}, whose elements are not numbers")
    return Dtype(code)


def _scalar(dtype: object, content: object = b"") -> Any:
    return array_of(content, dtype, (), "C")[()].item()


def _ordered() -> dict[str, Any]:
    return {}


def _set(values: object = ()) -> set[Any]:
    if not isinstance(values, list | tuple):
        raise Refused("it calls set")
    check_plain(list(values))
    return set(values)


def _encode(text: object, encoding: object = None) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise Refused("it calls _codecs.encode")
    return text.encode("latin-1")


def refuse_call(name: Name) -> NoReturn:
    raise Refused(f"it calls {name}")


def _reconstruct(kind: object, *_: object) -> Array:
    if not isinstance(kind, Name) or ALLOWED[kind] != "ndarray":
        raise Refused("it makes an array of an unknown kind")
    return Array()


CALLS: dict[str, Callable[..., Any]] = {
    "_reconstruct": _reconstruct,
    "_frombuffer": lambda content, dtype, shape, order: Array(array_of(content, dtype, shape, order)),
    "dtype": _dtype,
    "scalar": _scalar,
    "encode": _encode,
    "OrderedDict": _ordered,
    "set": _set,
}
