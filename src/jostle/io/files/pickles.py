"""Safe reading of pickles that hold plain containers and numeric arrays; no code in them is executed."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from jostle.errors import DataError

_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")
_MAX_DIMENSIONS = 8


class Refused(Exception):
    """The reason that a pickle is refused."""


MARK = object()


@dataclass(frozen=True)
class Name:
    """An allowed global name in a pickle; it is never imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass
class Dtype:
    """An element type under construction; its byte order follows its name."""

    code: str
    order: str = "="

    def build(self) -> np.dtype[Any]:
        dtype = np.dtype(self.code)
        return dtype if self.order in "=|" else np.dtype(self.order + self.code.lstrip("<>=|"))


@dataclass
class Array:
    """An array under construction; its content follows later."""

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


def finish_value(value: Any) -> Any:
    """Return a finished value; refuse values that only pickles have."""
    if isinstance(value, Array):
        if value.values is None:
            raise Refused("it holds an array without content")
        return value.values
    if value is MARK or isinstance(value, Name | Dtype):
        raise Refused(f"it holds {value} as a value")
    return value


def check_plain(keys: list[Any]) -> None:
    """Refuse keys other than text and numbers: the hash of a deeply nested one would overflow the C stack."""
    if not all(type(key) in (str, int, float, bool, bytes, NoneType) for key in keys):
        raise Refused("it holds a key that is neither text nor a number")


def build_array(content: object, dtype: object, shape: object, order: str) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(content, str):  # written by Python 2
        content = content.encode("latin-1")
    if not isinstance(dtype, Dtype) or not isinstance(content, bytes | bytearray):
        raise Refused("it holds an array whose elements are not numbers")
    if type(shape) is not tuple or len(shape) > _MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise Refused("it holds an array without a shape")
    element_type = dtype.build()
    count = 1
    for size in shape:
        count *= size
    if count * element_type.itemsize != len(content):
        raise Refused(f"it holds an array of shape {shape} with {len(content)} bytes")
    values = np.frombuffer(content, element_type).reshape(shape, order="F" if order == "F" else "C")
    return values.astype(element_type.newbyteorder("="))


def _make_dtype(code: object, *_: object) -> Dtype:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        label = code[:40] if isinstance(code, str) else "unknown"
        raise Refused(f"it holds an array of type {label!r}, whose elements are not numbers")
    return Dtype(code)


def _make_scalar(dtype: object, content: object = b"") -> Any:
    return build_array(content, dtype, (), "C")[()].item()


def _make_ordered_dict() -> dict[str, Any]:
    return {}


def _make_set(values: object = ()) -> set[Any]:
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
    "_frombuffer": lambda content, dtype, shape, order: Array(build_array(content, dtype, shape, order)),
    "dtype": _make_dtype,
    "scalar": _make_scalar,
    "encode": _encode,
    "OrderedDict": _make_ordered_dict,
    "set": _make_set,
}


_MAX_INTEGER_BYTES = 16


class _Truncated(Refused):
    """A pickle that ends before its last instruction."""


def read_pickle(data: bytes | bytearray, path: str | os.PathLike[str]) -> Any:
    """Read a pickle of containers, text, bytes, numbers, None and numeric arrays.

    Raises:
        DataError: F49 if it needs anything else, F39 if it is cut off.

    >>> import pickle
    >>> read_pickle(pickle.dumps({"score": [0.5, 1]}), "a.pkl")
    {'score': [0.5, 1]}
    """
    try:
        return _Unpickler(data).run()
    except _Truncated:
        raise DataError(f"{path}: the pickle is cut off; write or fetch it again", fault="F39") from None
    except Refused as error:
        raise DataError(
            f"{path}: refused, nothing in it was run: {error}; a pickle may hold only containers, numbers, text and "
            "numeric arrays; save the results as JSON or CSV instead",
            fault="F49",
        ) from None
    except (LookupError, ValueError, TypeError, ArithmeticError, struct.error) as error:
        raise DataError(f"{path}: broken pickle ({type(error).__name__}); fetch it again", fault="F39") from None


class _Unpickler:
    """Executes the pickle instructions that build data."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._bytes = data
        self._data = memoryview(data)
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        steps = _STEPS
        while True:
            if self._at >= len(self._data):
                raise _Truncated
            code = self._data[self._at]
            self._at += 1
            if code == 0x2E:  # STOP
                return finish_value(self._stack.pop())
            step = steps.get(code)
            if step is None:
                raise Refused(f"instruction 0x{code:02x} at byte {self._at - 1} is not one that builds data")
            step(self)

    def take(self, count: int) -> memoryview:
        if count < 0 or count > len(self._data) - self._at:
            raise _Truncated
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def line(self) -> str:
        end = self._bytes.find(b"\n", self._at)
        if end < 0:
            raise _Truncated
        return str(self.take(end + 1 - self._at), "latin-1")[:-1]

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        value = self._stack.pop()
        if value is MARK:
            raise ValueError("unexpected mark")
        return value

    def pop_marked(self) -> list[Any]:
        for i in range(len(self._stack) - 1, -1, -1):
            if self._stack[i] is MARK:
                values = self._stack[i + 1 :]
                del self._stack[i:]
                return values
        raise ValueError("no mark")

    def remember(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def remember_next(self) -> None:
        self.remember(len(self._memo))

    def recall(self, index: int) -> None:
        self._stack.append(self._memo[index])

    def text(self, width: int) -> None:
        self.push(str(self.take(self.number(width)), "utf-8", "surrogatepass"))

    def raw(self, width: int) -> None:
        self.push(bytes(self.take(self.number(width))))

    def old_text(self, width: int) -> None:  # text of Python 2, or the bytes of its arrays
        self.push(str(self.take(self.number(width)), "latin-1"))

    def long(self, width: int) -> None:
        size = self.number(width)
        if size > _MAX_INTEGER_BYTES:
            raise Refused(f"it holds a whole number of {size} bytes")
        self.push(int.from_bytes(self.take(size), "little", signed=True))

    def decimal(self) -> None:
        text = self.line()
        if text in ("00", "01"):
            self.push(text == "01")
            return
        if len(text) > 40:
            raise Refused("it holds a whole number of more than 40 digits")
        self.push(int(text.removesuffix("L")))

    def tuple(self, size: int) -> None:
        values = [self.pop() for _ in range(size)]
        self.push(tuple(reversed(values)))

    def append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise Refused(f"it appends to a {type(target).__name__}")
        target.extend(map(finish_value, values))

    def set_items(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise Refused(f"it sets items of a {type(target).__name__}")
        keys = values[0::2]
        check_plain(keys)
        target.update(zip(keys, map(finish_value, values[1::2]), strict=True))

    def add_items(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not set:
            raise Refused(f"it adds items to a {type(target).__name__}")
        check_plain(values)
        target.update(values)

    def name(self, module: object, name: object) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise Refused("it imports something without a name")
        if Name(module, name) not in ALLOWED:
            raise Refused(f"it imports {module[:60]}.{name[:60]}")
        self.push(Name(module, name))

    def stack_name(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(module, name)

    def reduce(self) -> None:
        arguments, name = self.pop(), self.pop()
        if not isinstance(name, Name) or type(arguments) is not tuple:
            raise Refused("it calls something other than a name")
        self.push(CALLS[ALLOWED[name]](*arguments) if ALLOWED[name] in CALLS else refuse_call(name))

    def build(self) -> None:
        state, target = self.pop(), self._stack[-1]
        if isinstance(target, Dtype) and type(state) is tuple and len(state) >= 2 and state[1] in ("<", ">", "=", "|"):
            if any(part is not None for part in state[2:5]):
                raise Refused("it holds an array whose elements have fields")
            target.order = state[1]
        elif isinstance(target, Array) and target.values is None and type(state) is tuple and len(state) == 5:
            _, shape, dtype, fortran, content = state
            target.values = build_array(content, dtype, shape, "F" if fortran else "C")
        else:
            raise Refused(f"it sets the state of a {type(target).__name__.strip('_')}")


def _push_marked_dict(machine: _Unpickler) -> None:
    values = machine.pop_marked()
    machine.push({})
    machine.set_items(values)


def _check_protocol(machine: _Unpickler) -> None:
    protocol = machine.number(1)
    if protocol > 5:
        raise Refused(f"it is of protocol {protocol}, which is newer than this reader")


_STEPS: dict[int, Callable[[_Unpickler], Any]] = {
    0x80: _check_protocol,
    0x95: lambda m: m.take(8),  # the length of a frame, for reading ahead
    ord("("): lambda m: m.push(MARK),
    ord("0"): lambda m: m.pop(),
    ord("1"): lambda m: m.pop_marked(),
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("I"): _Unpickler.decimal,
    ord("L"): _Unpickler.decimal,
    ord("J"): lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
    ord("K"): lambda m: m.push(m.number(1)),
    ord("M"): lambda m: m.push(m.number(2)),
    0x8A: lambda m: m.long(1),
    0x8B: lambda m: m.long(4),
    ord("F"): lambda m: m.push(float(m.line())),
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    ord("S"): lambda m: m.push(m.line().strip("'\"")),
    ord("T"): lambda m: m.old_text(4),
    ord("U"): lambda m: m.old_text(1),
    ord("V"): lambda m: m.push(m.line().encode("latin-1").decode("raw-unicode-escape")),
    ord("X"): lambda m: m.text(4),
    0x8C: lambda m: m.text(1),
    0x8D: lambda m: m.text(8),
    ord("B"): lambda m: m.raw(4),
    ord("C"): lambda m: m.raw(1),
    0x8E: lambda m: m.raw(8),
    0x96: lambda m: m.raw(8),
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.push(list(map(finish_value, m.pop_marked()))),
    ord("a"): lambda m: m.append([m.pop()]),
    ord("e"): lambda m: m.append(m.pop_marked()),
    ord("}"): lambda m: m.push({}),
    ord("d"): _push_marked_dict,
    ord("s"): lambda m: m.set_items([m.pop(), m.pop()][::-1]),
    ord("u"): lambda m: m.set_items(m.pop_marked()),
    0x8F: lambda m: m.push(set()),
    0x90: lambda m: m.add_items(m.pop_marked()),
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.push(tuple(m.pop_marked())),
    0x85: lambda m: m.tuple(1),
    0x86: lambda m: m.tuple(2),
    0x87: lambda m: m.tuple(3),
    ord("p"): lambda m: m.remember(int(m.line())),
    ord("q"): lambda m: m.remember(m.number(1)),
    ord("r"): lambda m: m.remember(m.number(4)),
    0x94: lambda m: m.remember_next(),
    ord("g"): lambda m: m.recall(int(m.line())),
    ord("h"): lambda m: m.recall(m.number(1)),
    ord("j"): lambda m: m.recall(m.number(4)),
    ord("c"): lambda m: m.name(m.line(), m.line()),
    0x93: _Unpickler.stack_name,
    ord("R"): _Unpickler.reduce,
    ord("b"): _Unpickler.build,
}
