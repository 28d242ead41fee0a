"""A folder of made files is whole or is made whole, whatever befell it."""

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
from jostle.datasets.generated_files import MANIFEST, STALE_S, fill
from jostle.errors import DataError, JostleError, ResourceError


def contents(folder: Path) -> dict[str, bytes]:
    """What lies under final names, apart from the manifest."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST and ".part-" not in path.name
    }


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A folder with four songs."""
    assert fill(tmp_path / "whole", songs(4)) == FileCounts(made=4)
    return tmp_path / "whole"


def test_files_are_made_once(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.txt")}
    assert fill(whole, songs(4)) == FileCounts(kept=4)
    assert fill(whole, songs(6)) == FileCounts(made=2, kept=4)
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_bytes_do_not_depend_on_the_jobs(tmp_path: Path, whole: Path, jobs: int) -> None:
    seen: list[tuple[int, int]] = []
    fill(tmp_path / "again", songs(4), jobs=jobs, progress=lambda done, of: seen.append((done, of)))
    assert contents(tmp_path / "again") == contents(whole)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("damage", [b"", b"half", b"x" * 1000])
def test_a_file_of_another_size_is_rebuilt(whole: Path, damage: bytes) -> None:
    good = contents(whole)
    (whole / "a/song 0.txt").write_bytes(damage)
    assert fill(whole, songs(4)) == FileCounts(kept=3, rebuilt=1)
    assert contents(whole) == good


def test_a_changed_byte_is_found_by_the_time_of_the_file(whole: Path) -> None:
    good = contents(whole)
    path = whole / "b/song 1.txt"
    path.write_bytes(path.read_bytes().replace(b"7 song", b"7 sung"))
    assert fill(whole, songs(4)) == FileCounts(kept=3, rebuilt=1)
    assert contents(whole) == good


def test_a_changed_byte_under_the_old_time_is_found_when_asked_to_verify(whole: Path) -> None:
    good = contents(whole)
    path = whole / "b/song 1.txt"
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"7 song", b"7 sung"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert fill(whole, songs(4)) == FileCounts(kept=4)
    assert fill(whole, songs(4), verify=True) == FileCounts(kept=3, rebuilt=1)
    assert contents(whole) == good


def test_a_file_that_was_only_touched_is_read_once_and_kept(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(whole / "a/song 0.txt", ns=(1, 1))
    assert fill(whole, songs(4)) == FileCounts(kept=4)
    monkeypatch.setattr("jostle.datasets.generated_files.sha256_of", lambda path: pytest.fail("read again"))
    assert fill(whole, songs(4)) == FileCounts(kept=4)


def test_a_file_that_went_is_made_and_one_that_is_not_recorded_is_not_trusted(whole: Path) -> None:
    (whole / "a/song 0.txt").unlink()
    (whole / "a/song 4.txt").write_text("who wrote this?")
    assert fill(whole, songs(5)) == FileCounts(made=1, kept=3, rebuilt=1)
    assert (whole / "a/song 4.txt").read_text().startswith("0 song 4\n")


def test_another_key_is_another_file(whole: Path) -> None:
    other = [replace(song, key="2", line="new\n") for song in songs(2)]
    assert fill(whole, other) == FileCounts(rebuilt=2)
    assert (whole / "a/song 0.txt").read_text().startswith("0 new\n")
    assert fill(whole, songs(4)) == FileCounts(kept=2, rebuilt=2)


@given(cut=st.integers(0, 1200), junk=st.binary(max_size=40))
@settings(max_examples=20, deadline=None)
def test_a_damaged_manifest_costs_work_but_never_truth(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "whole"
    fill(folder, songs(4))
    good = contents(folder)
    manifest = folder / MANIFEST
    manifest.write_bytes(manifest.read_bytes()[:cut] + junk)
    done = fill(folder, songs(4))
    assert done.kept + done.rebuilt == 4
    assert contents(folder) == good
    assert fill(folder, songs(4)) == FileCounts(kept=4)


def test_half_a_line_costs_no_more_than_its_own_file(whole: Path) -> None:
    with (whole / MANIFEST).open("rb+") as file:
        file.truncate((whole / MANIFEST).stat().st_size - 30)
    assert fill(whole, songs(5)) == FileCounts(made=1, kept=3, rebuilt=1)
    assert fill(whole, songs(5)) == FileCounts(kept=5)


def test_what_killed_processes_left_is_swept_when_it_is_old(whole: Path) -> None:
    old, new = whole / "a/.song 6.txt.part-1-0", whole / "a/.song 6.txt.part-2-0"
    for left in (old, new):
        left.write_text("half")
    os.utime(old, times=(time.time() - 2 * STALE_S,) * 2)
    fill(whole, songs(7))
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_ends_the_work_and_what_was_finished_stays(tmp_path: Path, jobs: int) -> None:
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
def test_a_full_disk_keeps_what_was_finished(tmp_path: Path, jobs: int) -> None:
    """A limit on the size of a file is the full disk of a process."""
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
    assert done_now.rebuilt == 1  # in its place, but not recorded


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_any_moment_and_continued_gives_the_same_bytes(tmp_path: Path, jobs: int) -> None:
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
        for name, found in contents(folder).items():  # whatever stands under a final name is whole
            assert found == (tmp_path / "undisturbed" / name).read_bytes()
        assert gone(process.pid), "workers outlived the process they worked for"
    last = fill(folder, songs(12))
    assert last.kept > 0
    assert contents(folder) == contents(tmp_path / "undisturbed")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def gone(group: int) -> bool:
    """Whether every process of a group ends within a few seconds."""
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
        with pytest.raises(DataError, match=rf"{MANIFEST}: not a regular file; delete it, or choose another folder"):
            fill(tmp_path / folder, songs(1))


def test_a_folder_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(JostleError, match=rf"{tmp_path / MANIFEST}: cannot be read \(Permission denied\)") as caught:
        fill(tmp_path, songs(1))
    assert caught.value.exit_code == 3


def test_a_whole_folder_may_be_read_only(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that others share: nothing is missing, so nothing is written, though a copy changed the times."""
    os.utime(whole / "a/song 0.txt", ns=(1, 1))

    def read_only(*_: object, **__: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("jostle.datasets.generated_files.os.open", read_only)
    assert fill(whole, songs(4)) == FileCounts(kept=4)
    with pytest.raises(DataError, match="cannot be written \\(Read-only file system\\)"):
        fill(whole, [*songs(4), Text("a/another.txt")])
