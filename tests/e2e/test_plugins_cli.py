"""Plugins on the command line: a package with entry points, and a module beside the videos."""

from __future__ import annotations

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import succeed
from helpers.examples import install, jostle_with
from helpers.started import run
from jostle import api
from jostle.api.installation import Health
from jostle.core.plugins import Origin, Part, Plugin
from jostle.io.video.encode import Writer

RECIPE = """
name = "lines-on-mine"
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "balanced_accuracy"
k = 1
[[groups]]
name = "lines"
corruptions = ["scan_lines"]
severities = [3, 5]
[[groups]]
name = "late"
cells = ["scan_lines:5"]
placements = ["halves:2"]
"""
MINE = '''
from jostle.corruptions.engine.corruption import corruption


@corruption(level="frame", scale=(1, 2, 3, 4, 5), cites="jostle")
def dimmed(frame, shift, at):
    """Every value shifted down by some bits."""
    return frame >> shift
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("jostle-scanlines", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of dark and bright clips, one folder per class."""
    folder = tmp_path_factory.mktemp("clips")
    for label, value in (("bright", 200), ("dark", 60)):
        (folder / "test" / label).mkdir(parents=True)
        for i in range(3):
            with Writer(folder / "test" / label / f"{label}_{i}.mp4", size=(48, 48), fps=10) as writer:
                for _ in range(8):
                    writer.write(np.full((48, 48, 3), value + i, np.uint8))
    return folder


@pytest.fixture(scope="module")
def broken_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a package whose plugin cannot be imported."""
    folder = tmp_path_factory.mktemp("broken")
    package = folder / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[jostle.plugins]\nparts = broken_parts\n")
    (folder / "broken_parts.py").write_text("import what_is_not_there\n")
    return folder


def test_names_and_doctor_list_origins_of_parts(site: Path, broken_site: Path, tmp_path: Path) -> None:
    listed = json.loads(jostle_with("names", "corruptions", "--origin", "--json", site=site, cwd=tmp_path).stdout)
    assert listed["scan_lines"] == "jostle-scanlines 0.1.0"
    assert listed["fog"] == "jostle"
    both = f"{site}{os.pathsep}{broken_site}"
    health = json.loads(jostle_with("doctor", "--json", site=both, cwd=tmp_path).stdout)
    plugins = {plugin["name"]: plugin for plugin in health["plugins"]}
    assert plugins.keys() == {"jostle-scanlines 0.1.0", "broken 1.0"}
    assert plugins["broken 1.0"]["failure"].startswith("ModuleNotFoundError")
    plugin = plugins["jostle-scanlines 0.1.0"]
    assert {"corruptions/scan_lines", "placements/halves"} <= set(plugin["parts"])
    assert ("models/scanline_colours" in plugin["parts"]) == (find_spec("torch") is not None)
    assert plugin["failure"] is None
    assert "scan_lines" not in jostle_with("names", "corruptions", cwd=tmp_path).stdout


@pytest.mark.processes
def test_corrupt_extract_and_run_with_workers(site: Path, clips: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from jostle.models.checkpoints import write_weights

    clip = clips / "test" / "bright" / "bright_0.mp4"
    jostle_with(
        "corrupt", clip, "-c", "scan_lines:3", "--placement", "halves:1", "-o", "out.mp4", site=site, cwd=tmp_path
    )
    tensors = {"2.weight": torch.tensor([[9.0] * 3, [-9.0] * 3]), "2.bias": torch.tensor([-12.0, 12.0])}
    write_weights(tensors, tmp_path / "colours.safetensors", metadata={})
    weights = ("--weights", "colours.safetensors")
    jostle_with("extract", clip, "--extractor", "scanline_colours", *weights, "-o", "features", site=site, cwd=tmp_path)
    (tmp_path / "mine.toml").write_text(RECIPE)
    run = ("run", "mine.toml", "--model", "scanline_colours", *weights, "--data", clips, "-o", "run")
    jostle_with(*run, "-j", "2", site=site, cwd=tmp_path)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["clean"] == 1.0
    assert [cell["cell"] for cell in scores["cells"]] == ["scan_lines:3", "scan_lines:5", "scan_lines:5@halves:2"]
    parts = json.loads((tmp_path / "run" / "run.json").read_text())["parts"]
    assert [(part["shelf"], part["name"], part["package"], part["version"]) for part in parts] == [
        ("corruptions", "scan_lines", "jostle-scanlines", "0.1.0"),
        ("metrics", "balanced_accuracy", "jostle-scanlines", "0.1.0"),
        ("models", "scanline_colours", "jostle-scanlines", "0.1.0"),
        ("placements", "halves", "jostle-scanlines", "0.1.0"),
    ]
    assert all(part["checksum"].startswith("sha256:") for part in parts)
    without = jostle_with(*run, cwd=tmp_path, code=2).stderr
    assert "no metric is called 'balanced_accuracy'" in without
    assert "to install it: pip install jostle-scanlines==0.1.0" in without
    jostle_with("report", "run", "-o", "report.html", cwd=tmp_path)
    assert "jostle-scanlines" in (tmp_path / "report.html").read_text()


def test_module_is_imported_only_on_request(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOSTLE_IMPORT", raising=False)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "sub").mkdir()
    plain, with_module = (run("names", "corruptions", *words, cwd=tmp_path) for words in ((), ("--import", "mine")))
    assert (plain.returncode, with_module.returncode) == (0, 0), with_module.stderr
    assert "fog" in plain.stdout
    assert "dimmed" not in plain.stdout
    assert "dimmed" in with_module.stdout
    elsewhere = run("names", "corruptions", "--import", "mine", cwd=tmp_path / "sub")
    message = "--import mine: cannot be imported (ModuleNotFoundError: No module named 'mine')"
    assert (elsewhere.returncode, message in elsewhere.stderr) == (2, True), elsewhere.stderr
    clip = clips / "test" / "bright" / "bright_0.mp4"
    result = run("corrupt", clip, "-c", "dimmed:2", "--import", "mine", "-o", "out.mp4", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.mp4").stat().st_size


def test_failing_plugin_does_not_break_jostle_with(broken_site: Path, tmp_path: Path) -> None:
    result = jostle_with("names", "placements", site=broken_site, cwd=tmp_path)
    assert "everywhere" in result.stdout
    assert result.stderr.count("broken 1.0: cannot be imported, so its parts are not there: ModuleNotFoundError") == 1
    stderr = jostle_with(
        "corrupt", "x.mp4", "-c", "scan_lins:3", "-o", "y.mp4", site=broken_site, cwd=tmp_path, code=2
    ).stderr
    assert "no corruption is called 'scan_lins'" in stderr
    assert "it may be part of a plugin that is missing here: broken 1.0 cannot be imported (ModuleNotFound" in stderr


def test_doctor_lists_plugins_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Part("corruptions", "scan_lines", Origin("scanlines"))
    plugins = (
        Plugin("jostle-scanlines 0.1.0", (), (part,)),
        Plugin("broken 1.0", (), (), "ModuleNotFoundError: No module named 'what_is_not_there'"),
        Plugin("empty 2.0", (), ()),
    )
    monkeypatch.setattr(api, "doctor", lambda: Health({}, {}, {}, {}, {}, {}, (), plugins))
    assert [re.split(r"  +", line) for line in succeed("doctor").out.splitlines()[1:]] == [
        ["plugin jostle-scanlines 0.1.0", "scan_lines"],
        ["plugin broken 1.0", "FAILS: ModuleNotFoundError: No module named 'what_is_not_there'"],
        ["plugin empty 2.0", "no parts"],
    ]
