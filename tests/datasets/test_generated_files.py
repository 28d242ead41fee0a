"""Folders of generated files are completed and repaired after any damage or interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.small_recipes import Deadly, Refused, Text, songs
from jostle.core.random import rng_for
from jostle.datasets.dataset import FileCounts
from jostle.datasets.generated_files import fill
from jostle.errors import DataError, JostleError, ResourceError
from jostle.io.files.atomic import STALE_S
from jostle.io.files.ledger import MANIFEST


def contents(folder: Path) -> dict[str, bytes]:
    """Read all files with final names except the manifest."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST and ".part-" not in path.name
    }


@pytest.fixture
def complete_folder(tmp_path: Path) -> Path:
    """Fill a folder with four songs."""
    assert fill(tmp_path / "whole", songs(4)) == FileCounts(made=4)
    return tmp_path / "whole"


def test_files_are_generated_once(complete_folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in complete_folder.rglob("*.txt")}
    assert fill(complete_folder, songs(4)) == FileCounts(kept=4)
    assert fill(complete_folder, songs(6)) == FileCounts(made=2, kept=4)
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_bytes_do_not_depend_on_the_jobs(tmp_path: Path, complete_folder: Path, jobs: int) -> None:
    progress_calls: list[tuple[int, int]] = []
    fill(tmp_path / "again", songs(4), jobs=jobs, progress=lambda done, of: progress_calls.append((done, of)))
    assert contents(tmp_path / "again") == contents(complete_folder)
    assert progress_calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("damage", [b"", b"half", b"x" * 1000, None], ids=["empty", "half", "longer", "a byte"])
def test_a_changed_file_is_rebuilt(complete_folder: Path, damage: bytes | None) -> None:
    """A file of the same size is found by its modification time."""
    good, path = contents(complete_folder), complete_folder / "b/song 1.txt"
    changed = path.read_bytes().replace(b"7 song", b"7 sung") if damage is None else damage
    path.write_bytes(changed)
    assert fill(complete_folder, songs(4)) == FileCounts(kept=3, rebuilt=1)
    assert contents(complete_folder) == good


def test_verify_detects_changes_with_the_old_modification_time(complete_folder: Path) -> None:
    good = contents(complete_folder)
    path = complete_folder / "b/song 1.txt"
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"7 song", b"7 sung"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert fill(complete_folder, songs(4)) == FileCounts(kept=4)
    assert fill(complete_folder, songs(4), verify=True) == FileCounts(kept=3, rebuilt=1)
    assert contents(complete_folder) == good


def test_a_touched_file_is_read_once_and_kept(complete_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(complete_folder / "a/song 0.txt", ns=(1, 1))
    assert fill(complete_folder, songs(4)) == FileCounts(kept=4)
    monkeypatch.setattr("jostle.io.files.ledger.fingerprint_of", lambda path: pytest.fail("read again"))
    assert fill(complete_folder, songs(4)) == FileCounts(kept=4)


def test_missing_and_unrecorded_files_are_generated(complete_folder: Path) -> None:
    (complete_folder / "a/song 0.txt").unlink()
    (complete_folder / "a/song 4.txt").write_text("who wrote this?")
    assert fill(complete_folder, songs(5)) == FileCounts(made=1, kept=3, rebuilt=1)
    assert (complete_folder / "a/song 4.txt").read_text().startswith("0 song 4\n")


def test_another_key_is_another_file(complete_folder: Path) -> None:
    other = [replace(song, key="2", line="new\n") for song in songs(2)]
    assert fill(complete_folder, other) == FileCounts(rebuilt=2)
    assert (complete_folder / "a/song 0.txt").read_text().startswith("0 new\n")
    assert fill(complete_folder, songs(4)) == FileCounts(kept=2, rebuilt=2)


@given(cut=st.integers(0, 1200), junk=st.binary(max_size=40))
@settings(max_examples=20, deadline=None)
def test_a_damaged_manifest_is_recovered(tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "whole"
    fill(folder, songs(4))
    good = contents(folder)
    manifest = folder / MANIFEST
    manifest.write_bytes(manifest.read_bytes()[:cut] + junk)
    done = fill(folder, songs(4))
    assert done.kept + done.rebuilt == 4
    assert contents(folder) == good
    assert fill(folder, songs(4)) == FileCounts(kept=4)


def test_a_truncated_line_costs_only_its_own_file(complete_folder: Path) -> None:
    with (complete_folder / MANIFEST).open("rb+") as file:
        file.truncate((complete_folder / MANIFEST).stat().st_size - 30)
    assert fill(complete_folder, songs(5)) == FileCounts(made=1, kept=3, rebuilt=1)
    assert fill(complete_folder, songs(5)) == FileCounts(kept=5)


def test_old_partial_files_are_removed(complete_folder: Path) -> None:
    old, new = complete_folder / "a/.song 6.txt.part-1-0", complete_folder / "a/.song 6.txt.part-2-0"
    for left in (old, new):
        left.write_text("half")
    os.utime(old, times=(time.time() - 2 * STALE_S,) * 2)
    fill(complete_folder, songs(7))
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_stops_the_work_and_keeps_finished_files(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(DataError, match="refused") as caught:
        fill(tmp_path, [*songs(2), Refused("no.txt")], jobs=jobs)
    assert caught.value.fault == "F1"
    assert not (tmp_path / "no.txt").exists()
    done = fill(tmp_path, songs(3))
    assert done.made + done.rebuilt + done.kept == 3
    assert done.kept == 2 or jobs > 1
    assert contents(tmp_path).keys() == {song.name for song in songs(3)}


def test_a_worker_that_dies_is_a_resource_error(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"process died with code 9 at .*[ab]\.txt.*; .* fewer jobs"):
        fill(tmp_path, [Deadly("a.txt"), Deadly("b.txt")], jobs=2)


def run(code: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(code, *words), capture_output=True, text=True, timeout=60)


def command(code: str, *words: object) -> list[str]:
    head = "import sys\nfrom pathlib import Path\n"
    head += "from jostle.datasets.generated_files import fill\nfrom helpers.small_recipes import songs, Text\n"
    return [sys.executable, "-c", head + code, *map(str, words)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_keeps_finished_files(tmp_path: Path, jobs: int) -> None:
    """A limit on file sizes simulates a full disk."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "fill(Path(sys.argv[1]), songs(2))\n"
        "try:\n"
        "    fill(Path(sys.argv[1]), [*songs(2), Text('large.txt', times=2000)] * 2, jobs=int(sys.argv[2]))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = run(code, tmp_path, jobs)
    assert (
        done.stdout
        == f"ResourceError no space left on the disk for {tmp_path / 'large.txt'}; free some, then run again\n"
    )
    assert sorted(os.listdir(tmp_path)) == ["a", "b", MANIFEST]
    assert fill(tmp_path, songs(2)) == FileCounts(kept=2)


def test_a_full_disk_under_the_manifest(tmp_path: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: fill(Path(sys.argv[1]), songs(40))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = run(code, tmp_path)
    assert (
        done.stdout == f"ResourceError no space left on the disk for {tmp_path / MANIFEST}; free some, then run again\n"
    )
    done_now = fill(tmp_path, songs(40))
    assert 1 < done_now.kept < 40
    assert done_now.rebuilt == 1  # written, but not recorded


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_process_resumes_to_the_same_bytes(tmp_path: Path, jobs: int) -> None:
    fill(tmp_path / "undisturbed", songs(12))
    folder = tmp_path / "killed"
    code = "fill(Path(sys.argv[1]), songs(12, pause_s=0.03), jobs=int(sys.argv[2]))"
    rng = rng_for(5, "kills", jobs)
    for attempt in range(4):
        before = size_of(folder / MANIFEST)
        process = subprocess.Popen(command(code, folder, jobs), start_new_session=True)
        while attempt % 2 and size_of(folder / MANIFEST) == before and process.poll() is None:
            time.sleep(0.002)  # until it has finished something; the other times it is killed early
        time.sleep(float(rng.uniform(0, 0.15)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name, data in contents(folder).items():  # files with final names are complete
            assert data == (tmp_path / "undisturbed" / name).read_bytes()
        assert gone(process.pid), "workers outlived the process they worked for"
    last = fill(folder, songs(12))
    assert last.kept > 0
    assert contents(folder) == contents(tmp_path / "undisturbed")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def gone(group: int) -> bool:
    """Return whether every process of a group ends within a few seconds."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_two_processes_may_fill_one_folder(tmp_path: Path) -> None:
    fill(tmp_path / "alone", songs(10))
    code = "print(fill(Path(sys.argv[1]), songs(10, pause_s=0.02), jobs=2))"
    pair = [subprocess.Popen(command(code, tmp_path / "both")) for _ in range(2)]
    assert [process.wait(60) for process in pair] == [0, 0]
    assert contents(tmp_path / "both") == contents(tmp_path / "alone")
    assert fill(tmp_path / "both", songs(10)) == FileCounts(kept=10)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file/set.*: cannot be .* choose another folder by \$JOSTLE_CACHE"):
        fill(tmp_path / "file" / "set", songs(1))
    (tmp_path / "odd" / MANIFEST).mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / MANIFEST)
    for folder in ("odd", "pipe"):
        with pytest.raises(DataError, match=rf"{MANIFEST}: not a regular file; correct that, or choose another folder"):
            fill(tmp_path / folder, songs(1))


def test_a_folder_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(JostleError, match=rf"{tmp_path / MANIFEST}: cannot be read \(Permission denied\)") as caught:
        fill(tmp_path, songs(1))
    assert caught.value.exit_code == 3


def test_a_complete_folder_may_be_read_only(complete_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written in a complete shared cache, even if copying changed the modification times."""
    os.utime(complete_folder / "a/song 0.txt", ns=(1, 1))

    def read_only(*_: object, **__: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    assert fill(complete_folder, songs(4)) == FileCounts(kept=4)
    with pytest.raises(DataError, match="cannot be written \\(Read-only file system\\)"):
        fill(complete_folder, [*songs(4), Text("a/another.txt")])
