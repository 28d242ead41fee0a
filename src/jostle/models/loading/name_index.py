"""Names of jostle's own networks, read off the source of their modules: importing those takes torch, and seconds.

A network is registered under a constant: the first argument of a decorator, a key of a table that is registered as a
whole, or one of a table that a loop at the end of a module goes through. Names that are computed are not found here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("detection", "extractors", "objects", "recognition")  # of `jostle.models`
# Functions that register a network, and the registry that each is for.
_DECORATORS = {
    "extractor": "extractors",
    "object_detector": "objectdetectors",
    "recogniser": "models",
}
_LIBRARY = "library"  # decorator of a whole library of recognisers
_TABLE = "detector_variants"  # registers a table, its second argument
_IN_LOOPS = {"add_object_detector": "objectdetectors", "add_recogniser": "models"}


@cache
def own_names() -> dict[str, list[str]]:
    """Return the names of jostle's own networks by registry."""
    spec = find_spec("jostle.models")
    assert spec is not None
    folders = [Path(folder) / package for folder in spec.submodule_search_locations or () for package in _PACKAGES]
    found = {name for folder in folders for path in folder.glob("*.py") for name in _registered(path)}
    return {registry: sorted(name for one, name in found if one == registry) for registry in {one for one, _ in found}}


def _registered(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the registry and name of every network that a module registers."""
    text = path.read_text(encoding="utf-8")
    if not any(f"{word}(" in text for word in (*_DECORATORS, *_IN_LOOPS, _LIBRARY, _TABLE, "detector")):
        return
    module = ast.parse(text)
    tables = dict(_tables(module))
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            for call in node.decorator_list:
                if not isinstance(call, ast.Call):
                    continue
                word = _called(call)
                if word == "detector":
                    yield "detectors", node.name
                elif word in _DECORATORS:
                    yield _DECORATORS[word], str(ast.literal_eval(call.args[0]))
                elif word == _LIBRARY:
                    yield "models", f"{ast.literal_eval(call.args[0])}/NAME"
        elif isinstance(node, ast.For):
            rows = [name for one in ast.walk(node.iter) if isinstance(one, ast.Name) for name in tables.get(one.id, ())]
            for word in {_called(call) for call in ast.walk(node) if isinstance(call, ast.Call)} & _IN_LOOPS.keys():
                yield from ((_IN_LOOPS[word], name) for name in rows)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _called(node.value) == _TABLE:
            table = node.value.args[1]
            assert isinstance(table, ast.Name)
            yield from (("detectors", name) for name in tables[table.id])


def _tables(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and keys of every mapping at the top of a module whose keys are constants."""
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
            if isinstance(target, ast.Name):
                yield target.id, [key for key in keys if isinstance(key, str)]


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""
