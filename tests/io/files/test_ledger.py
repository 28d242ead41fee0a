"""Ledgers keep their promises: whole lines only, file first and line second, one owner or several writers."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.refusals import refused
from jostle.core.schema import Count, parse
from jostle.errors import DataError, MediaError, ResourceError, SourceChanged
from jostle.io.files.atomic import write_bytes
from jostle.io.files.ledger import Ledger, Manifest, check_same, is_unchanged
from jostle.io.video.source import sha256_of_file, source_state

KINDS = [(shared, damaged) for shared in (False, True) for damaged in ("redo", "refuse")]
every_kind = pytest.mark.parametrize(("shared", "damaged"), KINDS)


@dataclass(frozen=True)
class Finished:
    """A file that was written."""

    file: str
    state: tuple[Count, int]
    sha256: str


def ledger_of(path: Path, *, shared: bool = True, damaged: Literal["redo", "refuse"] = "redo") -> Ledger[Finished]:
    line = partial(parse, Finished)
    return Ledger(path, line, shared=shared, damaged=damaged, remedy="delete it", fault="F1")


def finished(number: int) -> Finished:
    return Finished(f"ä {number}\n", (number, number), "0")


def finish(ledger: Ledger[Finished], name: str, content: bytes = b"content") -> None:
    """Write a file, then its line."""
    path = ledger.path.with_name(name)
    write_bytes(path, [content])
    with ledger:
        ledger.add(Finished(name, source_state(path), sha256_of_file(path) or ""))


def whole(ledger: Ledger[Finished]) -> set[str]:
    """Return the names of the files that are as their last line says."""
    last = {line.file: line for line in ledger.read()}
    return {name for name, line in last.items() if is_whole(ledger.path.with_name(name), line)}


def is_whole(path: Path, line: Finished) -> bool:
    try:
        return is_unchanged(path, line.state, line.sha256)
    except MediaError:
        return False


@every_kind
def test_records_come_back_in_order(tmp_path: Path, shared: bool, damaged: Literal["redo", "refuse"]) -> None:
    ledger = ledger_of(tmp_path / "ledger", shared=shared, damaged=damaged)
    assert ledger.read() == []
    assert not ledger.path.exists()
    for numbers in ((0, 1), (2,), ()):
        with ledger:
            for number in numbers:
                ledger.add(finished(number))
    assert ledger.read() == [finished(0), finished(1), finished(2)]
    separator = b"\n" if shared else b""
    assert ledger.path.read_bytes() == b"".join(
        separator + json.dumps(asdict(finished(number))).encode() + b"\n" for number in range(3)
    )


@given(data=st.data())
@every_kind
def test_half_a_last_line_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, shared: bool, damaged: Literal["redo", "refuse"]
) -> None:
    ledger = ledger_of(tmp_path_factory.mktemp("cut") / "ledger", shared=shared, damaged=damaged)
    with ledger:
        for number in range(3):
            ledger.add(finished(number))
    content = ledger.path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    ledger.path.write_bytes(content[:cut])
    rest = [finished(number) for number in range(3) if content[:cut].count(b"\n") >= (number + 1) * (1 + shared)]
    assert ledger.read() == rest
    assert ledger.path.stat().st_size == cut  # reading changes nothing
    if shared and damaged == "refuse" and content[:cut] and not content[:cut].endswith(b"\n"):
        return  # the half line of another process is no longer the last one, and damaged
    with ledger:
        ledger.add(finished(9))
    lacking_its_end = [
        finished(len(rest))
    ]  # a whole record, of which the end of the line is missing, counts from now on
    assert ledger.read() in ([*rest, finished(9)], [*rest, *lacking_its_end, finished(9)] if shared else [])


@pytest.mark.parametrize("line", ["{", "[]", "null", '{"file": 3}', "[" * 10_000, "\udcff", '{"file": "\\ud800"}'])
def test_a_damaged_line_is_redone_or_refused(tmp_path: Path, line: str) -> None:
    with ledger_of(tmp_path / "ledger", shared=False) as ledger:
        ledger.add(finished(0))
        ledger.path.write_bytes(ledger.path.read_bytes() + f"{line}\n".encode("utf-8", "surrogateescape"))
        ledger.add(finished(1))
    assert ledger.read() == [finished(0), finished(1)]
    with refused("F1", DataError, match=r"ledger: line 2 is damaged.*; delete it"):
        ledger_of(ledger.path, damaged="refuse").read()


def test_a_file_without_a_line_was_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ledger_of(tmp_path / "ledger")
    finish(ledger, "a")
    monkeypatch.setattr(Ledger, "add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        finish(ledger, "b")
    monkeypatch.undo()
    assert (tmp_path / "b").exists()
    assert whole(ledger) == {"a"}
    finish(ledger, "b")
    assert whole(ledger) == {"a", "b"}


def test_a_file_that_changed_after_its_line_is_noticed(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path / "ledger")
    for name in ("kept", "touched", "longer", "other", "gone", "again"):
        finish(ledger, name)
    os.utime(tmp_path / "touched", ns=(1, 1))
    (tmp_path / "longer").write_bytes(b"contents")
    (tmp_path / "other").write_bytes(b"c0ntent")
    os.utime(tmp_path / "other", ns=(1, 1))
    (tmp_path / "gone").unlink()
    finish(ledger, "again", b"another content")  # the last line counts
    assert whole(ledger) == {"kept", "touched", "again"}


def test_a_change_under_the_old_time_is_found_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    state, sha256 = source_state(path), sha256_of_file(path) or ""
    path.write_bytes(b"c0ntent")
    os.utime(path, ns=(state[1], state[1]))
    assert is_unchanged(path, state, sha256)
    assert not is_unchanged(path, state, sha256, verify=True)
    path.write_bytes(b"content")
    assert is_unchanged(path, state, f"sha256:{sha256}", verify=True)


def test_a_manifest_knows_its_files_by_key_and_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    manifest = Manifest(tmp_path, "delete it")
    assert not manifest.is_whole("a", "1")
    manifest.add("a", "1")
    (line,) = Manifest(tmp_path, "delete it").lines.values()
    assert (line.file, line.key, (line.size, line.mtime_ns)) == ("a", "1", source_state(tmp_path / "a"))
    assert [manifest.is_whole("a", key) for key in ("1", "2")] == [True, False]
    os.utime(tmp_path / "a", ns=(1, 1))
    assert manifest.is_whole("a", "1")
    assert Manifest(tmp_path, "delete it").lines["a"].mtime_ns == 1  # the next time it need not be read
    (tmp_path / "a").write_bytes(b"")
    assert not manifest.is_whole("a", "1")


WRITER = """
import sys
from pathlib import Path
from tests.io.files.test_ledger import finish, ledger_of
ledger = ledger_of(Path(sys.argv[1]), shared=sys.argv[2] == "shared")
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    finish(ledger, str(number))
"""


def start_writer(path: Path, shared: bool, first: int, stop: int) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[3])
    words = [sys.executable, "-c", WRITER, path, "shared" if shared else "owned", first, stop]
    return subprocess.Popen([*map(str, words)], cwd=root, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.parametrize("shared", [False, True])
def test_a_killed_writer_leaves_whole_files_only(tmp_path: Path, shared: bool) -> None:
    ledger = ledger_of(tmp_path / "ledger", shared=shared, damaged="redo" if shared else "refuse")
    for lines in (1, 20):
        process = start_writer(ledger.path, shared, 0, 10_000)
        while len(ledger.read()) < lines:
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        recorded = {line.file for line in ledger.read()}
        assert whole(ledger) == recorded
        final = {path.name for path in tmp_path.glob("[!.]*")} - {"ledger"}
        assert len(final - recorded) <= 1  # killed between the file and its line
    finish(ledger, "last")
    assert whole(ledger) == recorded | {"last"}


def test_two_writers_lose_no_line_of_each_other(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path / "ledger", damaged="refuse")
    writers = [start_writer(ledger.path, True, first, first + 60) for first in (0, 60)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert sorted(int(line.file) for line in ledger.read()) == list(range(120))
    assert len(whole(ledger)) == 120


def test_a_full_disk_keeps_the_lines_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ledger_of(tmp_path / "ledger", shared=False, damaged="refuse") as ledger:
        ledger.add(finished(0))
        real = os.write

        def write_half(handle: int, data: bytes) -> int:
            if len(data) < 20:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(handle, data[: len(data) // 2])

        monkeypatch.setattr(os, "write", write_half)
        with pytest.raises(ResourceError, match=r"no space left on the disk for .*ledger; free some"):
            ledger.add(finished(1))
        monkeypatch.undo()
    assert ledger.read() == [finished(0)]
    with ledger:
        ledger.add(finished(2))
    assert ledger.read() == [finished(0), finished(2)]


@every_kind
@pytest.mark.parametrize("what", ["pipe", "folder", "link to nowhere"])
def test_what_is_no_file_is_refused(
    tmp_path: Path, what: str, shared: bool, damaged: Literal["redo", "refuse"]
) -> None:
    ledger = ledger_of(tmp_path / "ledger", shared=shared, damaged=damaged)
    if what == "pipe":
        os.mkfifo(ledger.path)
    elif what == "folder":
        ledger.path.mkdir()
    else:
        ledger.path.symlink_to("no/where")
    problem = "cannot be" if what.startswith("link") else "not a regular file"
    with pytest.raises(DataError, match=rf"ledger: {problem}.*; delete it"):
        ledger.read()
    with pytest.raises(DataError, match=rf"ledger: {problem}.*; delete it"), ledger:
        pass


def test_a_ledger_that_must_be_whole_has_a_largest_size(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path / "ledger", shared=False, damaged="refuse")
    with ledger.path.open("wb") as file:
        file.truncate(600 << 20)  # takes no room
    with pytest.raises(DataError, match="larger than 536870912 bytes"):
        ledger.read()
    with pytest.raises(DataError, match="larger than 536870912 bytes"), ledger:
        pass
    assert ledger.path.stat().st_size == 600 << 20


def test_every_fact_that_differs_is_named(tmp_path: Path) -> None:
    before = {"seed": 0, "adapt": {"method": "bn", "steps": 1}, "model": "m", "older": 1}
    check_same(tmp_path, "another run", before, {"seed": 0, "model": "m"}, "use that one")
    now = {"seed": 3, "adapt": {"method": "bn", "steps": 2}, "model": "x" * 100, "new": None}
    with pytest.raises(SourceChanged) as caught:
        check_same(tmp_path, "another run", before, now, "use that one", "F145")
    assert str(caught.value) == (
        f"{tmp_path}: contains another run: seed was 0, now 3; adapt steps was 1, now 2; model was 'm', now "
        f"'{'x' * 79}.... Name another folder, or use that one"
    )
    assert caught.value.fault == "F145"
