"""`jostle build --clean` on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jostle.cli.app import _run
from jostle.core.types import Truth
from jostle.datasets.dataset import Dataset, DatasetKind, Request, datasets
from jostle.datasets.generated_files import fill
from jostle.datasets.puppets.trimmed import ClassList


@pytest.fixture
def small_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a data set of two files."""

    def load(request: Request) -> Dataset:
        """Data set of a few generated files."""
        folder = request.root / "few"
        done = fill(folder, [ClassList(), ClassList("again.txt")], verify=request.verify, progress=request.progress)
        truth = Truth(("v",), ("wave",), [0], [1.0], [2.0], [0])
        return Dataset("few", request.subset, folder, (truth,), {"v": folder / "classes.txt"}, done)

    monkeypatch.setitem(datasets._entries, "few", DatasetKind("few", ("train", "val"), load))


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["jostle", *map(str, words)])
    code = _run()
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("small_dataset")
def test_build_writes_and_repairs_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capsys, monkeypatch, "build", "few", "--clean", "--subset", "val", "-o", tmp_path, "-j", 1)
    folder = tmp_path / "few"
    assert (code, out) == (0, f"{folder}\n")
    assert err == "val: 1 videos; 2 files made, 0 kept, 0 rebuilt\n"
    (folder / "again.txt").write_bytes(b"half")
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    code, out, err = run(capsys, monkeypatch, "build", "few", "--clean", "--subset", "val", "--verify", "--json", "-q")
    assert (code, err) == (0, "")
    part = {"subset": "val", "folder": str(folder), "videos": 1, "instances": 1, "made": 0, "kept": 1, "rebuilt": 1}
    assert json.loads(out) == {"format": 1, "dataset": "few", "seed": 0, "subsets": [part]}


def test_unknown_and_recorded_data_sets_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capsys, monkeypatch, "build", "puppet", "--clean")
    assert (code, out) == (2, "")
    assert "no data set is called 'puppet': did you mean puppets" in err
    code, _, err = run(capsys, monkeypatch, "build", "puppets", "--clean", "--subset", "tets", "-o", tmp_path)
    assert code == 2
    assert "no subset of puppets is called 'tets': did you mean test?" in err
    code, _, err = run(capsys, monkeypatch, "build", "thumos14", "--clean")
    assert code == 2
    assert "thumos14 is recorded, not drawn; docs/how-to/get-the-data.md says where it comes from" in err
    (tmp_path / "file").write_text("")
    code, _, err = run(capsys, monkeypatch, "build", "puppets", "--clean", "--subset", "test", "-o", tmp_path / "file")
    assert code == 3
    assert "cannot be read (Not a directory); correct that, or choose another folder by $JOSTLE_CACHE" in err


def test_options_of_copies_and_of_data_sets_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(capsys, monkeypatch, "build", "puppets", "--clean", "--lossless", "-o", tmp_path)
    assert (code, "--lossless is for corrupted copies; leave it out with --clean" in err) == (2, True)
    code, _, err = run(capsys, monkeypatch, "build", "puppets-c", "--verify", "-o", tmp_path)
    assert (code, "--verify goes with --clean" in err) == (2, True)
    code, _, err = run(capsys, monkeypatch, "build", "puppets-c", "--subset", "test", "--subset", "training", "-o", "x")
    assert (code, "give --subset once" in err) == (2, True)
    code, _, err = run(capsys, monkeypatch, "build", "puppets-c")
    assert (code, "say where the copies go: -o DIR" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_leaves_no_partial_files(tmp_path: Path, jobs: int, number: signal.Signals) -> None:
    words = ["build", "puppets", "--clean", "--subset", "test", "-o", str(tmp_path), "-j", str(jobs)]
    process = subprocess.Popen(
        [sys.executable, "-m", "jostle", *words], start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    while not (list(tmp_path.rglob("*.mp4")) and list(tmp_path.rglob("*.part-*"))):
        assert process.poll() is None
        time.sleep(0.05)
    if number == signal.SIGINT:  # to all processes, as a terminal sends it
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "stopped; nothing half-written is left, run the same command again" in stderr
    assert "Traceback" not in stderr
    assert not list(tmp_path.rglob("*.part-*"))
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
