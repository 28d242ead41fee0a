"""Worker processes: complete results, unchanged errors, and no process left behind."""

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
from helpers.refusals import refused
from helpers.tiny_run import is_gone
from jostle.errors import BadValue, ForeignExit, MissingExtra, ResourceError, SourceChanged, UnknownName
from jostle.parallel import workers
from jostle.parallel.workers import OrphanSupervisor, map_unordered


def children() -> list[int]:
    """Return live workers of this process; other tests may have left processes of other kinds."""
    started = [int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return [child for child in started if _is_worker(child)]


def _is_worker(process: int) -> bool:
    try:
        return b"jostle.parallel.workers" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture(autouse=True)
def no_workers_left() -> Iterator[None]:
    before = children()
    yield
    assert set(children()) <= set(before)


@given(items=st.lists(st.binary(max_size=3), max_size=9), jobs=st.integers(-1, 3))
@settings(max_examples=8, deadline=None)
def test_every_item_has_its_result(items: list[bytes], jobs: int) -> None:
    results = list(map_unordered(small_work.reversing, items, jobs))
    assert sorted(results) == sorted((item, item[::-1]) for item in items)
    assert jobs > 1 or [item for item, _ in results] == items


@pytest.mark.parametrize("jobs", [-1, 0, 1])
def test_one_job_runs_in_this_process(jobs: int) -> None:
    results = list(map_unordered(small_work.report_worker, "abc", jobs))
    assert results == [(item, (os.getpid(), k)) for k, item in enumerate("abc")]
    assert children() == []


@pytest.mark.fault("F122")
@pytest.mark.parametrize(("item", "name"), [("exit", "SystemExit: 0"), ("interrupt", "Keyboard"), ("other", "Gener")])
def test_f122_an_item_that_ends_the_program_is_an_error(item: str, name: str) -> None:
    with pytest.raises(ForeignExit, match=f"{name}.* in .*small_work.py, line .* must not end the program") as caught:
        list(map_unordered(small_work.exit_program, [item, item], 2))
    assert (caught.value.fault, caught.value.exit_code) == ("F122", 3)


def test_there_are_never_more_processes_than_items() -> None:
    for items, expected in (([1], 0), ([1, 2], 2)):
        work = map_unordered(small_work.report_worker, items, 9)
        next(work)
        assert len(children()) == expected
        work.close()


def test_each_process_starts_once_and_all_take_part() -> None:
    by_process: dict[int, list[int]] = {}
    for _, (process, before) in map_unordered(small_work.report_worker, range(40), 2):
        by_process.setdefault(process, []).append(before)
    assert os.getpid() not in by_process
    assert len(by_process) == 2
    assert all(counts == list(range(len(counts))) for counts in by_process.values())


def test_only_worker_processes_lower_their_priority() -> None:
    rank = os.nice(0)
    assert dict(map_unordered(small_work.report_niceness, [1, 2], 2)) == dict.fromkeys(
        [1, 2], min(rank + workers.NICENESS, 19)
    )
    assert dict(map_unordered(small_work.report_niceness, [1, 2], 1)) == {1: rank, 2: rank}


def test_items_and_results_may_be_large() -> None:
    items = [bytes([k]) * 3_000_000 + b"." for k in range(6)]
    assert sorted(map_unordered(small_work.reversing, items, 2)) == [(item, item[::-1]) for item in items]


def test_a_slow_caller_slows_the_work(tmp_path: Path) -> None:
    work = map_unordered(partial(small_work.marking, tmp_path), range(100), 2)
    next(work)
    time.sleep(0.3)
    for count in range(1, 20):
        assert len(list(tmp_path.iterdir())) <= count + 4  # items in progress and finished items not yet taken
        next(work)
    work.close()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", sorted(small_work.ERRORS))
def test_errors_of_workers_are_raised_unchanged(name: str, jobs: int) -> None:
    expected = small_work.ERRORS[name]()
    kind = RuntimeError if (name, jobs) == ("odd", 2) else type(expected)
    message = f"Odd: {expected}" if kind is RuntimeError else str(expected)
    with pytest.raises(kind) as caught:
        list(map_unordered(small_work.failing, ["good", name], jobs))
    assert type(caught.value) is kind
    assert str(caught.value) == message
    if kind is not RuntimeError:
        assert {**vars(expected), "__notes__": 0} == {**vars(caught.value), "__notes__": 0}
    if jobs > 1:
        assert "small_work.py" in str(caught.value.__cause__)  # the traceback names where it was raised


def test_results_before_an_error_are_yielded_first() -> None:
    items: list[str] = []
    work = map_unordered(small_work.failing, ["a", "b", "c", "d", "plain", *"efghij"], 2)
    with pytest.raises(SourceChanged, match="changed"):
        items.extend(item for item, _ in work)
    assert len({"a", "b", "c", "d"} - set(items)) <= 1  # an item in progress in the other process


def test_jostle_errors_can_be_results() -> None:
    results = dict(map_unordered(small_work.failing, ["return unknown", "return extra"], 2))
    assert isinstance(results["return unknown"], UnknownName)
    assert results["return unknown"].close == ("pear",)
    assert isinstance(results["return extra"], MissingExtra)
    assert "pip install 'jostle[salad]'" in str(results["return extra"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_at_the_start_of_a_worker_are_raised(jobs: int) -> None:
    with refused("F4", SourceChanged, match="no weights"):
        list(map_unordered(small_work.failing_to_start, [1, 2, 3], jobs))


@pytest.mark.parametrize(("how", "message"), [("exit", "with code 9 at exit"), ("kill", "by signal 9 at kill")])
def test_a_process_that_dies_is_a_resource_error(how: str, message: str) -> None:
    with pytest.raises(ResourceError, match=f"a worker process died {message}; if memory .* fewer jobs"):
        list(map_unordered(small_work.dying, [how] * 3, 2))


@pytest.mark.fault("F63")
def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    results = list(map_unordered(partial(small_work.dying_once, tmp_path), range(8), 2))
    assert sorted(results) == [(item, item) for item in range(8)]
    assert (tmp_path / "died").exists()


@pytest.mark.fault("F63")
def test_items_that_kill_workers_can_be_skipped() -> None:
    def record_loss(item: str, error: ResourceError) -> str:
        assert error.fault == "F63"
        return f"{item}: lost"

    results = dict(map_unordered(small_work.dying_of_some, ["a", "kill", "b", "exit", "c"], 2, lost=record_loss))
    assert results == {"a": "A", "b": "B", "c": "C", "kill": "kill: lost", "exit": "exit: lost"}


def test_processes_that_cannot_be_started_are_a_resource_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.sys, "executable", "/nowhere/python")
    with pytest.raises(ResourceError, match=r"no more processes can be started .* use fewer jobs"):
        list(map_unordered(small_work.load_square, [1, 2], 2))


def test_objects_that_cannot_be_pickled_are_refused() -> None:
    with pytest.raises(BadValue, match=r"cannot be sent to another process .*; use one job"):
        list(map_unordered(lambda: abs, [1, 2], 2))
    with pytest.raises(BadValue, match=r"cannot be sent to another process .*; use one job"):
        list(map_unordered(small_work.load_square, [1, (x for x in "a")], 2))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="cannot pickle"):
        list(map_unordered(small_work.return_unpicklable, [1, 2], 2))


def test_output_of_workers_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
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


def test_stopped_workers_clean_up(tmp_path: Path) -> None:
    with pytest.raises(SourceChanged):
        list(map_unordered(partial(small_work.writing, tmp_path), [0, 1, 2], 2))
    assert list(tmp_path.iterdir()) == []


def test_workers_that_ignore_the_end_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
from helpers.tiny_run import is_gone
from jostle.parallel.workers import map_unordered
print(sorted(map_unordered(small_work.load_square, [1, 2, 3], 2)), flush=True)
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
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    """No worker, partial file or stray traceback is left, however the parent ends."""
    script, folder = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, script, folder], start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    while len(list(folder.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.01)
    if number == signal.SIGINT:  # to the whole process group, as a terminal does
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    _, output = parent.communicate(timeout=30)  # the children hold stderr as well, so this waits for them
    assert output.count("Traceback") == (number == signal.SIGINT)
    assert list(folder.iterdir()) == []
    assert is_gone(parent.pid)


@pytest.mark.fault("F111")
@pytest.mark.parametrize("how", ["letting the lock go", "holding the lock"])
def test_f111_workers_in_long_calls_end_with_their_parent(tmp_path: Path, how: str) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "out"
    work = "partial(small_work.call_for_long, Path(sys.argv[1]))"
    script.write_text(SCRIPT.partition("print(")[0] + f"list(map_unordered({work}, [{how!r}] * 2, 2))\n")
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, script, folder], start_new_session=True, stderr=subprocess.PIPE)
    while len(list(folder.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)  # the workers are in the call by now
    parent.kill()
    begun = time.monotonic()
    parent.communicate(timeout=30)  # the children hold stderr as well, so this waits for them
    assert time.monotonic() - begun < 5  # 1.25 s on an idle machine
    assert is_gone(parent.pid)


@pytest.mark.fault("F111")
def test_f111_finished_workers_are_not_killed_later(tmp_path: Path) -> None:
    """The id of a finished process may belong to another one by the time the parent ends."""
    child = subprocess.Popen(["sleep", "60"])
    supervisor = OrphanSupervisor()
    supervisor.watch([child.pid])
    supervisor.watch([])
    assert supervisor._process.stdin is not None
    supervisor._process.stdin.close()  # as at the end of this process
    assert supervisor._process.wait(10) == 0
    assert child.poll() is None
    child.kill()
    child.wait()
