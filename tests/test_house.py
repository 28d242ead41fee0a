"""The shape of the house: which way imports run, where torch may live, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "jostle"

# An import only goes down, and rooms on one floor do not see each other.
FLOORS = (
    {"errors", "builds"},
    {"parcels", "lifeline", "plugins", "showing", "compiling", "programs"},
    {
        "types",
        "registry",
        "seeds",
        "settings",
        "progress",
        "compiled",
        "cache",
        "shipped",
        "shapes",
        "workers",
        "stopwatch",
    },
    {"metrics", "models", "filing", "figures", "media", "feeding"},
    {"detectors", "formats", "datasets", "cluster"},
    {"diagnosis", "corrupting", "puppets", "runs", "papers", "fetching"},
    {"corruptions", "extraction", "mending"},
    {"training", "benchmarks"},
    {"looking", "loading", "doctor"},
    {"tasks"},
    {"running"},
    {"findings"},
    {"pages", "viewer", "trackers", "cards"},
    {"demo"},
    {"api"},
    {""},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
TORCH_ROOMS = {"models", "detectors", "training"}
TENSORS = "jostle.corruptions.tensors"  # corruptions of frames that lie on a GPU
HEAVY = {"numpy", "torch", "av", "numba", "cv2", "rich", "fastapi", "ray", "transformers", "matplotlib", "jinja2"}
LONGEST = 400

FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    """`jostle.media.decode` lives in `media`; the package's own face is the empty name."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = node.module == "jostle"
            found += [f"jostle.{alias.name}" if whole else node.module for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_down(path: Path) -> None:
    here = room_of(module_of(path))
    assert here in FLOOR, f"room {here!r} has no floor in tests/test_house.py"
    for module in imports_of(path):
        if module.split(".")[0] != "jostle":
            continue
        there = room_of(module)
        if there not in FLOOR:  # a name of the package's face, such as jostle.Clip
            there = ""
        if there == here:
            continue
        assert FLOOR[there] < FLOOR[here], f"{here or 'jostle'} imports {module}, which is not below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_torch_stays_where_networks_live(path: Path) -> None:
    if room_of(module_of(path)) not in TORCH_ROOMS and not module_of(path).startswith(TENSORS):
        assert "torch" not in {module.split(".")[0] for module in imports_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_holds_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


def test_import_is_light() -> None:
    code = f"import sys, jostle; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
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


def test_no_public_name_is_that_of_a_room() -> None:
    """Importing anything from a room would put the room in place of the verb: `jostle.report` would be no function."""
    import jostle

    assert not set(jostle.__all__) & set(FLOOR)
