"""The wheels contain exactly the packages and their data, with correct metadata and citation."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import jostle

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
DATA = {".py", ".pyi", ".typed", ".safetensors", ".jinja", ".css", ".js", ".html", ".svg", ".toml", ".txt"}

# The keys at the top of the Citation File Format that a software citation without a release may use.
CITATION_KEYS = {
    *("abstract", "authors", "cff-version", "keywords", "license", "message", "repository-code", "title", "type"),
    *("url", "version"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: pip install -e '.[test]'")
    path = build(ROOT, tmp_path_factory.mktemp("wheel"))
    assert path.name == f"jostle-{jostle.__version__}-py3-none-any.whl"
    assert path.stat().st_size < 2.5e6
    return zipfile.ZipFile(path)


def build(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=300)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_contains_the_package_its_data_and_metadata(wheel: zipfile.ZipFile) -> None:
    files = {path for path in (SOURCE / "jostle").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.suffix for path in files} == DATA
    info = f"jostle-{jostle.__version__}.dist-info"
    metadata = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert set(wheel.namelist()) == {path.relative_to(SOURCE).as_posix() for path in files} | metadata
    for path in files:
        assert wheel.getinfo(path.relative_to(SOURCE).as_posix()).file_size == path.stat().st_size


def test_the_wheel_has_correct_metadata(wheel: zipfile.ZipFile) -> None:
    metadata = wheel.read(f"jostle-{jostle.__version__}.dist-info/METADATA").decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "urls" not in project  # until there is an address to name
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "Requires-Python: >=3.11\n" in metadata
    assert (ROOT / "README.md").read_text(encoding="utf-8")[:200] in metadata


@pytest.mark.usefixtures("wheel")  # which skips without hatchling
def test_the_wheel_of_puppets_contains_weights_and_no_code(tmp_path: Path) -> None:
    files = zipfile.ZipFile(build(ROOT / "puppets", tmp_path)).namelist()
    source = ROOT / "puppets" / "src"
    weights = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert weights == {name for name in files if ".dist-info/" not in name}
    assert {Path(name).suffix for name in weights} == {".safetensors"}


def test_without_the_puppets_their_weights_are_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "without_puppets.py").write_text("import sys\nsys.modules['jostle_puppets'] = None\n")
    for command in (
        ["run", "puppets-c", "--model", "temporalmaxer_puppets", "--cells", "clean", "-o", "out"],
        ["run", "puppets-p", "--model", "puppet_c3d", "--weights", "robust", "-o", "out"],
        ["demo", "--out", "out"],
    ):
        program = [sys.executable, "-m", "jostle", *command, "--import", "without_puppets"]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 2, done.stderr
        assert "pip install 'jostle[puppets]'" in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "out").exists()


def test_the_citation_file_is_valid_for_this_version() -> None:
    """Check the rules of the Citation File Format 1.2.0 that apply to a short file."""
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed: pip install -e '.[test]'")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation) <= CITATION_KEYS
    assert (citation["cff-version"], citation["type"], citation["title"]) == ("1.2.0", "software", project["name"])
    assert str(citation["version"]) == project["version"] == jostle.__version__
    assert citation["license"] == project["license"]
    assert "url" not in citation
    assert all(set(author) <= {"name", "website", "email"} and author["name"] for author in citation["authors"])
    for value in (citation["message"], citation["abstract"], *citation["keywords"]):
        assert isinstance(value, str)
        assert value
