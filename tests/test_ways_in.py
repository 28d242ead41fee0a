"""Container images and the conda recipe: consistent with pyproject.toml, and linted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {"opencv-python-headless": "py-opencv", "torch": "pytorch", "matplotlib": "matplotlib-base"}


def stages(text: str) -> dict[str, list[tuple[str, str]]]:
    """Parse the instructions of each stage of a Dockerfile, by name; the first is FROM."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    stage_instructions: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            name = rest.rpartition(" AS ")[2]
            stage_instructions[name] = []
        stage_instructions[name].append((word, " ".join(rest.split())))
    return stage_instructions


@pytest.fixture(scope="module")
def dockerfile() -> dict[str, list[tuple[str, str]]]:
    return stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))


def test_both_images_run_the_demo_without_root(dockerfile: dict[str, list[tuple[str, str]]]) -> None:
    assert list(dockerfile)[-1] == "cpu"  # the default target
    for name in ("cpu", "cuda"):
        words = dict(dockerfile[name])
        assert words["USER"] not in ("root", "0")
        assert json.loads(words["ENTRYPOINT"]) == ["jostle"]
        assert json.loads(words["CMD"])[0] == "demo"
        order = [word for word, _ in dockerfile[name]]
        assert "RUN" not in order[order.index("USER") :]


def test_the_dockerfile_avoids_common_mistakes(dockerfile: dict[str, list[tuple[str, str]]]) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for instructions in dockerfile.values():
        for word, rest in instructions:
            if word == "FROM":
                image = rest.partition(" ")[0]
                assert image in dockerfile or re.fullmatch(r"[a-z/]+:[\w.-]*\d[\w.-]*", image), image  # pinned
            if word == "COPY" and not rest.startswith("--from="):
                for source in rest.split()[:-1]:
                    assert (ROOT / source).exists(), source
                    assert f"!{source}" in ignored, source
            for command in rest.split("&&") if word == "RUN" else ():
                assert "sudo" not in command
                assert "pip install" not in command or "--no-cache-dir" in command
            assert word != "ADD"
    torch = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert torch is not None
    assert f"torch=={torch[1]}" in dict(dockerfile["cpu"])["RUN"]


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_passes() -> None:
    command = ["hadolint", "--failure-threshold", "warning", "Dockerfile"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def requirements(lines: list[str]) -> dict[str, str]:
    """Parse version bounds by package, as in `numpy>=2.0,<3`."""
    matches = [re.match(r"([\w-]+)\s*(.*)", line) for line in lines]
    return {match[1]: match[2].replace(" ", "") for match in matches if match}


def test_the_conda_recipe_has_the_requirements_of_pyproject() -> None:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed: pip install -e '.[test]'")
    recipe: Any = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert (ROOT / recipe["about"]["license_file"]).is_file()
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry.split(" = ") == ["jostle", PROJECT["scripts"]["jostle"]]
    own = {CONDA_NAMES.get(name, name): bounds for name, bounds in requirements(PROJECT["dependencies"]).items()}
    assert requirements(recipe["requirements"]["run"]) == {"python": PROJECT["requires-python"], **own}
    extras = requirements([*PROJECT["optional-dependencies"]["torch"], *PROJECT["optional-dependencies"]["report"]])
    optional = {CONDA_NAMES.get(name, name): bounds for name, bounds in extras.items()}
    assert requirements(recipe["requirements"]["run_constraints"]) == optional


def test_tests_that_the_makefile_names_exist() -> None:
    named = re.findall(r"(tests/\S+\.py)::(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert named
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{name}"
