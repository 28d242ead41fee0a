"""Options of a run are declared once: keyword, flag and key of a settings file are one word, and give one run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.striped_videos import StripeReader, run_stripes, write_benchmark

pytest.importorskip("torch")
READER = "from helpers.striped_videos import StripeReader\n\nreader = StripeReader((), (1,))\n"
SETTINGS = """
benchmark = "{benchmark}"
model = "own_reader:reader"
data = "{data}"
fps = 25
cells = ["gaussian_noise:3"]
jobs = 1
seed = 3
"""


def jostle_run(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line where a module of one's own is."""
    command = [sys.executable, "-m", "jostle", "run", *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def bytes_of(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in ("run.json", "scores.json", "predictions/clean.npz")}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a benchmark, a module with a model, and a file of options."""
    folder = tmp_path_factory.mktemp("options")
    benchmark = write_benchmark(folder, 4)
    (folder / "own_reader.py").write_text(READER)
    (folder / "run.toml").write_text(SETTINGS.format(benchmark=benchmark.name, data=folder / "films"))
    return folder


def test_flags_and_a_file_of_options_give_one_run(world: Path) -> None:
    common = ("--data", world / "films", "--fps", 25, "--cells", "gaussian_noise:3", "-j", 1, "--seed", 3)
    done = jostle_run("stripes-c.toml", "-m", "own_reader:reader", "-o", "flags", *common, folder=world)
    assert done.returncode == 0, done.stderr
    done = jostle_run("--from", "run.toml", "-o", "file", folder=world)
    assert done.returncode == 0, done.stderr
    assert bytes_of(world / "flags") == bytes_of(world / "file")


def test_the_command_line_comes_before_the_file(world: Path) -> None:
    done = jostle_run("--from", "run.toml", "-o", "other", "--seed", 4, "--cells", "brightness:3", folder=world)
    assert done.returncode == 0, done.stderr
    assert '"seed": 4' in (world / "other" / "run.json").read_text()
    assert "brightness" in (world / "other" / "scores.json").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('precison = "tf32"', "no option precison: did you mean precision?"),
        ('precision = "tf33"', "precision: 'tf33' is not one of"),
        ('jobs = "many"', "jobs: 'many' is not a whole number"),
        ("watch = 1", "no option watch"),
    ],
)
def test_a_wrong_line_of_the_file_is_named(world: Path, line: str, message: str) -> None:
    text = (world / "run.toml").read_text().replace("jobs = 1\n", "") + line
    (world / "wrong.toml").write_text(text)
    done = jostle_run("--from", "wrong.toml", "-o", "wrong", folder=world)
    assert done.returncode == 2
    assert "wrong.toml" in done.stderr
    assert message in done.stderr
    assert not (world / "wrong").exists()


def test_what_is_missing_is_named_by_its_flag(world: Path) -> None:
    done = jostle_run("--from", "run.toml", folder=world)
    assert (done.returncode, "--out must be given" in done.stderr) == (2, True)


def test_a_misspelt_keyword_is_a_type_error_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="did you mean retry_failed"):
        run_stripes(write_benchmark(tmp_path, 2), tmp_path / "run", retry_faild=True)


def test_a_type_checker_knows_every_option(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    (tmp_path / "caller.py").write_text(
        "import jostle\n"
        'jostle.run("b", model="m", out="o", precision="float32")\n'
        'jostle.run("b", model="m", out="o", precision="float33")\n'
        'jostle.run("b", model="m", out="o", precison="float32")\n'
        'jostle.run("b", out="o")\n'
    )
    root = Path(__file__).parents[2]
    cache = root / ".mypy_cache"  # that of `make types`, so that the package is not read anew
    found, _, _ = mypy.run(
        ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(cache), str(tmp_path / "caller.py")]
    )
    lines = [line.split("caller.py:")[1] for line in found.splitlines() if "caller.py:" in line and "error" in line]
    assert [line.split(":")[0] for line in lines] == ["3", "4", "5"], found
    assert "did you mean" in lines[1]


def test_threads_of_networks_are_recorded_and_have_to_be_the_same(tmp_path: Path) -> None:
    import torch

    benchmark, reader, seen = write_benchmark(tmp_path, 2), StripeReader(), set()

    def counting(clips: Any) -> Any:
        seen.add(torch.get_num_threads())
        return reader(clips)

    before = torch.get_num_threads()
    run_stripes(benchmark, tmp_path / "two", counting, threads=2, cells=["gaussian_noise:3"])
    assert (seen, torch.get_num_threads()) == ({2}, before)
    assert json.loads((tmp_path / "two" / "run.json").read_text())["threads"] == 2
    with pytest.raises(jostle.errors.SourceChanged, match="threads was 2, now 1"):
        run_stripes(benchmark, tmp_path / "two", counting, cells=["gaussian_noise:3"])
