"""The package layers: direction of imports, where torch may be imported, length of files and functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "jostle"

# An import goes to a lower layer; packages of one layer do not import each other.
LAYERS = (
    {"errors"},
    {"core"},
    {"parallel", "metrics", "io"},
    {"corruptions", "datasets", "models"},
    {"features", "mending"},
    {"training", "evaluation"},
    {"gate"},
    {"reporting"},
    {"api"},
    {"", "extend", "torch"},
    {"cli"},
    {"__main__"},
)
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}
# Packages with networks; `core.cuda` feeds a device, `corruptions.gpu` corrupts tensors.
TORCH = ("jostle.models", "jostle.training", "jostle.mending", "jostle.core.cuda", "jostle.corruptions.gpu")
HEAVY = {"numpy", "torch", "av", "numba", "cv2", "rich", "fastapi", "ray", "transformers", "matplotlib", "jinja2"}
LONGEST, LONGEST_FUNCTION = 600, 80  # lines

FILES = sorted(PACKAGE.rglob("*.py"))


def package_of(module: str) -> str:
    """Return `io` for `jostle.io.video.decode`, and the empty string for `jostle` itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom))]


def imports_of(path: Path) -> list[str]:
    names = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            from_top = node.module == "jostle"
            names += [f"jostle.{alias.name}" if from_top else node.module for alias in node.names]
    return names


def test_imports_go_to_lower_layers() -> None:
    upward = []
    for path in FILES:
        package = package_of(module_of(path))
        assert package in LAYER, f"package {package!r} has no layer in tests/test_layers.py"
        for module in imports_of(path):
            if module.split(".")[0] != "jostle":
                continue
            imported = package_of(module) if package_of(module) in LAYER else ""  # a public name such as jostle.Clip
            if imported != package and LAYER[imported] >= LAYER[package]:
                upward.append(f"{module_of(path)} imports {module}")
    assert upward == []


def test_imports_have_no_cycles() -> None:
    """Check imports inside functions and for type checking as well."""
    modules = {module_of(path): path for path in FILES}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        froms = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module]
        imported = {(node.module, f"{node.module}.{alias.name}") for node in froms for alias in node.names}
        graph[name] = {below if below in modules else above for above, below in imported} & (set(modules) - {name})
    TopologicalSorter(graph).prepare()  # an error names the modules of the cycle


def test_torch_is_imported_by_network_packages_only() -> None:
    for path in FILES:
        if not module_of(path).startswith(TORCH):
            assert "torch" not in {module.split(".")[0] for module in imports_of(path)}, path


def test_two_modules_know_the_parser() -> None:
    known = [module_of(path) for path in FILES if "typer" in imports_of(path)]
    assert known == ["jostle.cli.app", "jostle.cli.options"]


def test_files_have_a_limited_length() -> None:
    assert [path for path in FILES if len(path.read_text().splitlines()) > LONGEST] == []


def test_functions_have_a_limited_length() -> None:
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_there_are_sixteen_packages_each_with_a_docstring() -> None:
    assert (
        len(
            [
                package
                for packages in LAYERS
                for package in packages
                if package not in ("", "extend", "torch", "__main__")
            ]
        )
        == 16
    )
    for path in PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_import_is_light() -> None:
    code = f"import sys, jostle; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_accessible() -> None:
    import jostle

    for name in jostle.__all__:
        assert getattr(jostle, name) is not None
        assert name in dir(jostle)
    with pytest.raises(AttributeError, match="module 'jostle' has no attribute 'corupt'"):
        jostle.corupt  # noqa: B018


def test_corruptions_work_without_pyav() -> None:
    code = (
        "import sys; sys.modules['av'] = None\n"
        "import numpy as np, jostle\n"
        "frames = np.zeros((2, 40, 40, 3), np.uint8)\n"
        "assert 'h265_crf' in jostle.names('corruptions')\n"
        "assert jostle.corrupt(frames, 'brightness:3').any()\n"
        "for spec in ('h264_crf:3', 'packet_loss:1', 'bit_error:2'):\n"
        "    try:\n"
        "        jostle.corrupt(frames, spec)\n"
        "    except jostle.JostleError as error:\n"
        "        assert 'needs PyAV, which is not installed: pip install av' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(spec)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_differ_from_packages() -> None:
    """Importing a package would replace a function of the same name, such as `jostle.report`."""
    import jostle

    assert not set(jostle.__all__) & set(LAYER)
