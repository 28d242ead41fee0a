"""Words of the pages work as typed: names without torch, and functions behind `import jostle`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import jostle

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ("models", "detectors", "extractors", "objectdetectors")
# One process lists all four kinds, the last from the command line: `None` marks a module that cannot be imported.
WITHOUT_TORCH = """
import runpy, sys
for name in ("torch", "safetensors", "torchvision", "timm", "transformers"):
    sys.modules[name] = None
import jostle
*first, last = sys.argv[1:]
for kind in first:
    print("##", kind, *jostle.names(kind))
print("##", last, flush=True)
sys.argv[:] = ["jostle", "names", last]
runpy.run_module("jostle", run_name="__main__")
"""


def list_without_torch() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_TORCH, *NETWORKS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {part.split()[0]: part.split()[1:] for part in done.stdout.split("## ")[1:]}


def test_names_of_networks_need_no_torch() -> None:
    listed = list_without_torch()
    assert set(listed) == set(NETWORKS)
    assert "puppet_frames" in listed["models"]
    assert "tridet_puppets" in listed["detectors"]
    assert "puppet_net" in listed["extractors"]
    assert listed["objectdetectors"]
    for names in listed.values():
        assert names == sorted(names)


def test_the_names_without_torch_are_those_with_it() -> None:
    pytest.importorskip("torch")
    code = "import jostle, sys; [print('##', kind, *jostle.names(kind)) for kind in sys.argv[1:]]"
    full = subprocess.run([sys.executable, "-c", code, *NETWORKS], capture_output=True, text=True, check=True)
    assert list_without_torch() == {part.split()[0]: part.split()[1:] for part in full.stdout.split("## ")[1:]}


def test_functions_of_the_pages_are_there_after_import_jostle() -> None:
    pages = [ROOT / "README.md", *ROOT.joinpath("docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"`(jostle\.api\.\w+)", page.read_text(encoding="utf-8"))}
    assert {
        "jostle.api.inspection",
        "jostle.api.fetch_weights",
        "jostle.api.run_many",
        "jostle.api.pm_k_boxes",
    } <= named
    code = "import sys, jostle\nfor name in sys.argv[1:]:\n    assert callable(eval(name)), name"
    done = subprocess.run([sys.executable, "-c", code, *sorted(named)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code = "import jostle, sys; jostle.api; jostle.extend; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert jostle.api.names is jostle.names
