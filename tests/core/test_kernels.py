"""Kernel compilation: once for all processes, with a message if it takes long."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers import small_work
from jostle import Clip
from jostle.cli.app import app
from jostle.core import compilation
from jostle.core.compilation import MESSAGE, compiling, exclusive_lock
from jostle.core.kernels import kernel
from jostle.io.video.encode import Writer
from jostle.parallel.workers import map_unordered

# Prints whether a kernel was compiled or loaded, once both processes are ready.
COMPILE_SCRIPT = """
import sys, time
from pathlib import Path
import numpy as np
from jostle.corruptions.kernels.streams import draw
own, other = (Path(name) for name in sys.argv[1:])
own.touch()
while not other.exists():
    time.sleep(0.001)
words = np.empty(2, np.uint64)
draw(words, np.uint64(1), 0)
print(sum(draw.stats.cache_misses.values()), *words)
"""
LOCK_SCRIPT = (
    "import sys; from jostle.core.compilation import exclusive_lock as lock\n"
    "with lock(sys.argv[1]): print(flush=True); sys.stdin.read()"
)


@pytest.fixture
def messages() -> Iterator[list[str]]:
    """Collect the compile messages of this process."""
    collected: list[str] = []
    compilation.set_compile_callback(collected.append)
    yield collected
    compilation.set_compile_callback(None)


def hold_lock(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that holds a lock until it is ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK_SCRIPT, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


def test_one_of_two_processes_compiles_and_the_other_loads(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ready = [str(tmp_path / name) for name in "ab"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE_SCRIPT, *order], env=environment, stdout=subprocess.PIPE, text=True
        )
        for order in (ready, ready[::-1])
    ]
    outputs = [process.communicate()[0].split() for process in processes]
    assert sorted(compiled for compiled, *_ in outputs) == ["0", "1"]
    assert outputs[0][1:] == outputs[1][1:]


def test_the_lock_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = hold_lock(path)
    acquired: list[str] = []

    def acquire() -> None:
        with exclusive_lock(str(path)):
            acquired.append("turn")

    waiting = threading.Thread(target=acquire)
    waiting.start()
    waiting.join(0.2)
    assert acquired == []
    process.kill()  # a killed process releases its lock
    process.communicate()
    waiting.join()
    assert acquired == ["turn"]


def test_waiting_for_the_lock_has_a_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "WAIT_S", 0.1)
    process = hold_lock(tmp_path / "lock")
    with exclusive_lock(str(tmp_path / "lock")):
        assert process.poll() is None
    process.communicate()


def test_without_a_lock_file_there_is_no_locking(tmp_path: Path) -> None:
    with exclusive_lock(str(tmp_path / "absent" / "lock")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_failed_compilation_releases_the_lock(messages: list[str]) -> None:
    @kernel
    def odd(value: int) -> int:
        return value.surely_no_attribute  # type: ignore[attr-defined, no-any-return]

    for _ in range(2):
        with pytest.raises(Exception, match="surely_no_attribute"):
            odd(1)
    lock = odd._cache._lock  # type: ignore[attr-defined]
    process = hold_lock(Path(lock))  # can take the lock, so this process does not hold it
    process.communicate()
    Path(lock).unlink()
    assert gc.isenabled()


def test_without_a_folder_every_process_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])

    @kernel
    def double(value: int) -> int:
        return 2 * value

    assert double(np.int64(4)) == 8
    assert double.stats.cache_path is None  # type: ignore[attr-defined]


def test_garbage_collection_is_paused_during_compilation() -> None:
    with compiling():
        assert not gc.isenabled()
        with compiling():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    with compiling():
        pass
    assert not gc.isenabled()
    gc.enable()


def compile_until_reported(messages: list[str]) -> None:
    with compiling():
        end = time.monotonic() + 30
        while not messages and time.monotonic() < end:
            time.sleep(0.001)


def test_only_a_long_compilation_is_reported_and_once(messages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with compiling():
        pass
    assert messages == []
    monkeypatch.setattr(compilation, "REPORT_AFTER_S", 0.0)
    for _ in range(2):
        compile_until_reported(messages)
    assert messages == [MESSAGE]


def test_compile_time_adds_up_over_kernels(messages: list[str]) -> None:
    compilation._spent = compilation.REPORT_AFTER_S  # by earlier kernels
    compile_until_reported(messages)
    assert messages == [MESSAGE]


@pytest.mark.parametrize(("options", "reported"), [((), True), (("--quiet",), False), (("--json",), False)])
def test_the_command_line_reports_compilation_unless_quiet(
    options: tuple[str, ...], reported: bool, tmp_path: Path
) -> None:
    CliRunner().invoke(app, ["corrupt", str(tmp_path / "absent.mp4"), "-c", "freeze", "-o", str(tmp_path), *options])
    assert compilation.has_compile_callback() is reported
    compilation.set_compile_callback(None)


@pytest.mark.parametrize("reports", [True, False])
def test_one_of_several_workers_reports_if_the_parent_does(reports: bool) -> None:
    compilation.set_compile_callback(print if reports else None)
    results = list(map_unordered(small_work.report_compile_callback, [0, 1, 2], 3))
    compilation.set_compile_callback(None)
    assert sum(reporting for _, reporting in results) == reports


@pytest.mark.slow
@pytest.mark.parametrize(("options", "lines"), [((), 1), (("--quiet",), 0), (("--json",), 0)])
def test_a_user_without_compiled_kernels_sees_one_message(
    options: tuple[str, ...], lines: int, clip: Clip, tmp_path: Path
) -> None:
    video, out = tmp_path / "in.mkv", tmp_path / "out.mp4"
    with Writer(video, size=clip.size, fps=clip.fps, codec="ffv1") as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)
    # Video decoding and the three slowest kernels: more than two seconds on any machine.
    arguments = ["corrupt", str(video), "-c", "defocus_blur:3", "-c", "pixelate:3", "-c", "fog:3", "-o", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "jostle", *arguments, *options],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(MESSAGE) == lines
    assert MESSAGE not in done.stdout
