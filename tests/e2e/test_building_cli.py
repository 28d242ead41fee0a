"""`jostle build` on the command line: corrupted copies, and generated data sets by `--clean`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.benchmark_files import write_benchmark
from helpers.command_line import assert_refused, call, succeed
from helpers.numpy_extractor import write_video
from jostle.core.types import Truth
from jostle.datasets.dataset import Dataset, DatasetKind, Request, datasets
from jostle.datasets.generated_files import fill
from jostle.datasets.puppets.trimmed import ClassList

COPIES = ("build", "tiny-c.toml", "--data", "data", "-o", "out", "-j", 1)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "test" / "wave").mkdir(parents=True)
    write_video(tmp_path / "data" / "test" / "wave" / "a.mkv", frames=12)
    write_benchmark(tmp_path, "recognition", "freeze:3", "fog:1", name="tiny-c")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_copies_are_made_for_other_programs_too(workspace: Path) -> None:
    planned = succeed(*COPIES, "--dry-run", "--json").json
    assert (planned["cells"], planned["files"]) == (["freeze:3", "fog:1"], 2)
    assert not (workspace / "out").exists()
    built = succeed(*COPIES)
    assert built.out == "out\n"
    assert "2 files made, 0 kept, 0 rebuilt" in built.err
    assert (workspace / "out/freeze/3/test/wave/a.mp4").is_file()
    layouts = ("--layout", "hub", "--layout", "croissant")
    assert "for other programs: metadata.jsonl, README.md, croissant.json" in succeed(*COPIES, *layouts).err
    printed = succeed(*COPIES, *layouts, "--json").json
    assert (printed["kept"], printed["layouts"]) == (2, ["metadata.jsonl", "README.md", "croissant.json"])
    assert (workspace / "out/croissant.json").is_file()
    assert_refused(2, "no layout is called 'zip'", *COPIES, *layouts, "--layout", "zip")


def test_bad_videos_exit_with_code_4(workspace: Path) -> None:
    (workspace / "data/test/wave/b.mp4").write_bytes(b"nothing")
    built = call(*COPIES, "--json")
    assert built.code == 4
    assert sorted(built.json["failures"]) == ["fog/1/test/wave/b.mp4", "freeze/3/test/wave/b.mp4"]
    assert "fog/1/test/wave/b.mp4: set aside: " in built.err


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a data set of two files."""

    def load(request: Request) -> Dataset:
        """Data set of a few generated files."""
        folder = request.root / "few"
        done = fill(folder, [ClassList(), ClassList("again.txt")], verify=request.verify, progress=request.progress)
        truth = Truth(("v",), ("wave",), [0], [1.0], [2.0], [0])
        return Dataset("few", request.subset, folder, (truth,), {"v": folder / "classes.txt"}, done)

    monkeypatch.setitem(datasets._entries, "few", DatasetKind("few", ("train", "val"), load))


@pytest.mark.usefixtures("few")
def test_generated_files_are_written_and_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, folder = ("build", "few", "--clean", "--subset", "val"), tmp_path / "few"
    assert call(*words, "-o", tmp_path, "-j", 1) == (
        0,
        f"{folder}\n",
        "val: 1 videos; 2 files made, 0 kept, 0 rebuilt\n",
    )
    (folder / "again.txt").write_bytes(b"half")
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    verified = succeed(*words, "--verify", "--json", "-q")
    part = {"subset": "val", "folder": str(folder), "videos": 1, "instances": 1, "made": 0, "kept": 1, "rebuilt": 1}
    assert verified.json == {"format": 1, "dataset": "few", "seed": 0, "subsets": [part]}
    assert verified.err == ""


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "no data set is called 'puppet': did you mean puppets", "puppet --clean"),
        (2, "no subset of puppets is called 'tets': did you mean test?", "puppets --clean --subset tets -o new"),
        (2, "thumos14 is recorded, not drawn; docs/how-to/get-the-data.md says where", "thumos14 --clean"),
        (3, "cannot be read (Not a directory); correct that, or choose another folder by $JOSTLE_CACHE",
         "puppets --clean --subset test -o file"),
        (2, "--lossless is for corrupted copies; leave it out with --clean", "puppets --clean --lossless -o new"),
        (2, "--verify goes with --clean", "puppets-c --verify -o new"),
        (2, "give --subset once", "puppets-c --subset test --subset training -o x"),
        (2, "say where the copies go: -o DIR", "puppets-c"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_refused(code: int, message: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(code, message, "build", *words.split(), cwd=tmp_path)


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
