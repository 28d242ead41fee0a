"""Processes side by side: all results, errors as they were, and nobody left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import small_work
from jostle.errors import BadValue, ForeignExit, MissingExtra, ResourceError, SourceChanged, UnknownName
from jostle.parallel import workers
from jostle.parallel.workers import OrphanSupervisor, map_unordered


def children() -> list[int]:
    """Workers that this process started and that are not gone; other tests may have left processes of other kinds."""
    started = [int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return [child for child in started if _is_worker(child)]


def _is_worker(process: int) -> bool:
    try:
        return b"jostle.parallel.workers" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    before = children()
    yield
    assert set(children()) <= set(before)


@given(items=st.lists(st.binary(max_size=3), max_size=9), jobs=st.integers(-1, 3))
@settings(max_examples=8, deadline=None)
def test_every_item_has_its_result(items: list[bytes], jobs: int) -> None:
    found = list(map_unordered(small_work.reversing, items, jobs))
    assert sorted(found) == sorted((item, item[::-1]) for item in items)
    assert jobs > 1 or [item for item, _ in found] == items


@pytest.mark.parametrize("jobs", [-1, 0, 1])
def test_one_job_works_here_and_starts_nobody(jobs: int) -> None:
    found = list(map_unordered(small_work.telling, "abc", jobs))
    assert found == [(item, (os.getpid(), k)) for k, item in enumerate("abc")]
    assert children() == []


@pytest.mark.fault("F122")
@pytest.mark.parametrize(("item", "name"), [("exit", "SystemExit: 0"), ("interrupt", "Keyboard"), ("other", "Gener")])
def test_f122_an_item_that_ends_the_program_is_an_error(item: str, name: str) -> None:
    with pytest.raises(ForeignExit, match=f"{name}.* in .*small_work.py, line .* must not end the program") as caught:
        list(map_unordered(small_work.ending_the_program, [item, item], 2))
    assert (caught.value.fault, caught.value.exit_code) == ("F122", 3)


def test_there_are_never_more_processes_than_items() -> None:
    for items, most in (([1], 0), ([1, 2], 2)):
        work = map_unordered(small_work.telling, items, 9)
        next(work)
        assert len(children()) == most
        work.close()


def test_each_process_starts_once_and_all_take_part() -> None:
    by_process: dict[int, list[int]] = {}
    for _, (process, before) in map_unordered(small_work.telling, range(40), 2):
        by_process.setdefault(process, []).append(before)
    assert os.getpid() not in by_process
    assert len(by_process) == 2
    assert all(counts == list(range(len(counts))) for counts in by_process.values())


def test_workers_may_give_way_and_this_process_does_not() -> None:
    rank = os.nice(0)
    assert dict(map_unordered(small_work.giving_way, [1, 2], 2)) == dict.fromkeys(
        [1, 2], min(rank + workers.NICENESS, 19)
    )
    assert dict(map_unordered(small_work.giving_way, [1, 2], 1)) == {1: rank, 2: rank}


def test_items_and_results_may_be_large() -> None:
    items = [bytes([k]) * 3_000_000 + b"." for k in range(6)]
    assert sorted(map_unordered(small_work.reversing, items, 2)) == [(item, item[::-1]) for item in items]


def test_a_slow_caller_slows_the_work(tmp_path: Path) -> None:
    work = map_unordered(partial(small_work.marking, tmp_path), range(100), 2)
    next(work)
    time.sleep(0.3)
    for count in range(1, 20):
        assert len(list(tmp_path.iterdir())) <= count + 4  # those given out, and those done that nobody took
        next(work)
    work.close()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", sorted(small_work.ERRORS))
def test_errors_are_those_of_the_work(name: str, jobs: int) -> None:
    known = small_work.ERRORS[name]()
    kind = RuntimeError if (name, jobs) == ("odd", 2) else type(known)
    words = f"Odd: {known}" if kind is RuntimeError else str(known)
    with pytest.raises(kind) as caught:
        list(map_unordered(small_work.failing, ["good", name], jobs))
    assert type(caught.value) is kind
    assert str(caught.value) == words
    if kind is not RuntimeError:
        assert {**vars(known), "__notes__": 0} == {**vars(caught.value), "__notes__": 0}
    if jobs > 1:
        assert "small_work.py" in str(caught.value.__cause__)  # where it was raised, for those who look for the reason


def test_what_was_done_before_an_error_is_given_first() -> None:
    seen: list[str] = []
    work = map_unordered(small_work.failing, ["a", "b", "c", "d", "plain", *"efghij"], 2)
    with pytest.raises(SourceChanged, match="changed"):
        seen.extend(item for item, _ in work)
    assert len({"a", "b", "c", "d"} - set(seen)) <= 1  # what the other process had in hand


def test_errors_of_ours_may_be_results() -> None:
    found = dict(map_unordered(small_work.failing, ["return unknown", "return extra"], 2))
    assert isinstance(found["return unknown"], UnknownName)
    assert found["return unknown"].close == ("pear",)
    assert isinstance(found["return extra"], MissingExtra)
    assert "pip install 'jostle[salad]'" in str(found["return extra"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_who_cannot_start_says_why(jobs: int) -> None:
    with pytest.raises(SourceChanged, match="no weights") as caught:
        list(map_unordered(small_work.failing_to_start, [1, 2, 3], jobs))
    assert caught.value.fault == "F4"


@pytest.mark.parametrize(("how", "words"), [("exit", "with code 9 at exit"), ("kill", "by signal 9 at kill")])
def test_a_process_that_dies_is_a_resource_error(how: str, words: str) -> None:
    with pytest.raises(ResourceError, match=f"a worker process died {words}; if memory .* fewer jobs"):
        list(map_unordered(small_work.dying, [how] * 3, 2))


@pytest.mark.fault("F63")
def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    found = list(map_unordered(partial(small_work.dying_once, tmp_path), range(8), 2))
    assert sorted(found) == [(item, item) for item in range(8)]
    assert (tmp_path / "died").exists()


@pytest.mark.fault("F63")
def test_who_wants_may_go_on_without_a_deadly_item() -> None:
    def note(item: str, error: ResourceError) -> str:
        assert error.fault == "F63"
        return f"{item}: lost"

    found = dict(map_unordered(small_work.dying_of_some, ["a", "kill", "b", "exit", "c"], 2, lost=note))
    assert found == {"a": "A", "b": "B", "c": "C", "kill": "kill: lost", "exit": "exit: lost"}


def test_processes_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.sys, "executable", "/nowhere/python")
    with pytest.raises(ResourceError, match=r"no more processes can be started .* use fewer jobs"):
        list(map_unordered(small_work.squaring, [1, 2], 2))


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(BadValue, match=r"cannot be sent to another process .*; use one job"):
        list(map_unordered(lambda: abs, [1, 2], 2))
    with pytest.raises(BadValue, match=r"cannot be sent to another process .*; use one job"):
        list(map_unordered(small_work.squaring, [1, (x for x in "a")], 2))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="cannot pickle"):
        list(map_unordered(small_work.giving_what_cannot_travel, [1, 2], 2))


def test_what_is_printed_goes_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    assert sorted(map_unordered(small_work.printing, [1, 2, 3], 2)) == [(1, 1), (2, 2), (3, 3)]
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("not a reply") == err.count("nor this") == 3


def test_closing_early_ends_the_work(tmp_path: Path) -> None:
    with contextlib.closing(map_unordered(partial(small_work.marking, tmp_path), range(1000), 2)) as work:
        next(work)
        assert len(children()) == 2
    assert children() == []
    assert len(list(tmp_path.iterdir())) < 10


def test_who_is_let_go_cleans_up(tmp_path: Path) -> None:
    with pytest.raises(SourceChanged):
        list(map_unordered(partial(small_work.writing, tmp_path), [0, 1, 2], 2))
    assert list(tmp_path.iterdir()) == []


def test_who_does_not_leave_is_made_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "GRACE_S", 0.2)
    work = map_unordered(partial(small_work.stubborn, tmp_path), [1, 2], 2)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        with pytest.raises(KeyboardInterrupt):
            next(work)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert children() == []


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background would ignore it
from functools import partial
from pathlib import Path
from helpers import small_work
from jostle.parallel.workers import map_unordered
print(sorted(map_unordered(small_work.squaring, [1, 2, 3], 2)), flush=True)
if len(sys.argv) > 1:
    list(map_unordered(partial(small_work.writing, Path(sys.argv[1])), [1, 2, 3], 2))
"""


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[(1, 1), (2, 4), (3, 9)]\n", "")


def test_work_from_the_script_itself_is_refused(tmp_path: Path) -> None:
    code = (
        "from jostle.parallel.workers import map_unordered\n"
        "def start(): return abs\n"
        "try: list(map_unordered(start, [1, 2], 2))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("BadValue a worker process cannot import its task")
    assert "define it in a module instead of the script itself, or use one job" in done.stdout


@pytest.mark.fault("F63")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_processes_leave_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    """However it ends, in the middle of the work: nobody lives on, nothing half-written is left, nobody complains."""
    script, folder = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, script, folder], start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    while len(list(folder.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.01)
    if number == signal.SIGINT:  # as a terminal sends it, to all of them
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    _, said = parent.communicate(timeout=30)  # the children hold stderr as well, so this waits for them
    assert said.count("Traceback") == (number == signal.SIGINT)
    assert list(folder.iterdir()) == []
    assert is_gone(parent.pid)


@pytest.mark.fault("F111")
@pytest.mark.parametrize("how", ["letting the lock go", "holding the lock"])
def test_f111_processes_in_long_calls_leave_with_their_parent(tmp_path: Path, how: str) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "out"
    work = "partial(small_work.in_a_long_call, Path(sys.argv[1]))"
    script.write_text(SCRIPT.partition("print(")[0] + f"list(map_unordered({work}, [{how!r}] * 2, 2))\n")
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, script, folder], start_new_session=True, stderr=subprocess.PIPE)
    while len(list(folder.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)  # they are in the call by now
    parent.kill()
    begun = time.monotonic()
    parent.communicate(timeout=30)  # the children hold stderr as well, so this waits for them
    assert time.monotonic() - begun < 5  # a second and a quarter, on a machine that has time
    assert is_gone(parent.pid)


@pytest.mark.fault("F111")
def test_f111_whoever_was_let_go_is_not_held(tmp_path: Path) -> None:
    """The number of a process that is gone may be somebody else's by the time the parent ends."""
    child = subprocess.Popen(["sleep", "60"])
    supervisor = OrphanSupervisor()
    supervisor.watch([child.pid])
    supervisor.watch([])
    assert supervisor._process.stdin is not None
    supervisor._process.stdin.close()  # as the end of this process would
    assert supervisor._process.wait(10) == 0
    assert child.poll() is None
    child.kill()
    child.wait()


def is_gone(group: int) -> bool:
    """Whether no process of a group is left, in a moment: somebody else buries orphans."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
