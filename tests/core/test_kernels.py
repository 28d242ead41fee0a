"""Kernels are compiled by one process for all, once, and a user hears of it when it takes long."""

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

# Says whether it compiled or loaded what it was asked for, once both have got this far.
ASKING = """
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
HOLDING = (
    "import sys; from jostle.core.compilation import exclusive_lock as lock\n"
    "with lock(sys.argv[1]): print(flush=True); sys.stdin.read()"
)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What this process says about compiling from now on."""
    heard: list[str] = []
    compilation.set_compile_callback(heard.append)
    yield heard
    compilation.set_compile_callback(None)


def holder(place: Path) -> subprocess.Popen[bytes]:
    """A process that holds a lock until it is ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_of_two_processes_one_compiles_and_the_other_loads(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ready = [str(tmp_path / name) for name in "ab"]
    both = [
        subprocess.Popen([sys.executable, "-c", ASKING, *order], env=environment, stdout=subprocess.PIPE, text=True)
        for order in (ready, ready[::-1])
    ]
    found = [process.communicate()[0].split() for process in both]
    assert sorted(compiled for compiled, *_ in found) == ["0", "1"]
    assert found[0][1:] == found[1][1:]


def test_a_turn_is_waited_for(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    process = holder(place)
    had: list[str] = []

    def take() -> None:
        with exclusive_lock(str(place)):
            had.append("turn")

    waiting = threading.Thread(target=take)
    waiting.start()
    waiting.join(0.2)
    assert had == []
    process.kill()  # and whoever dies gives it up
    process.communicate()
    waiting.join()
    assert had == ["turn"]


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "WAIT_S", 0.1)
    process = holder(tmp_path / "lock")
    with exclusive_lock(str(tmp_path / "lock")):
        assert process.poll() is None
    process.communicate()


def test_where_no_file_can_be_made_all_go_at_once(tmp_path: Path) -> None:
    with exclusive_lock(str(tmp_path / "absent" / "lock")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_compiled_holds_nobody_up(said: list[str]) -> None:
    @kernel
    def odd(value: int) -> int:
        return value.surely_no_attribute  # type: ignore[attr-defined, no-any-return]

    for _ in range(2):
        with pytest.raises(Exception, match="surely_no_attribute"):
            odd(1)
    lock = odd._cache._lock  # type: ignore[attr-defined]
    process = holder(Path(lock))  # comes to hold it, so that we do not
    process.communicate()
    Path(lock).unlink()
    assert gc.isenabled()


def test_without_a_folder_every_process_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])

    @kernel
    def doubled(value: int) -> int:
        return 2 * value

    assert doubled(np.int64(4)) == 8
    assert doubled.stats.cache_path is None  # type: ignore[attr-defined]


def test_garbage_is_left_alone_meanwhile_and_then_no_more() -> None:
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


def test_short_compiling_says_nothing_and_long_says_so_once(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with compiling():
        pass
    assert said == []
    monkeypatch.setattr(compilation, "REPORT_AFTER_S", 0.0)
    for _ in range(2):
        with compiling():
            end = time.monotonic() + 30
            while not said and time.monotonic() < end:
                time.sleep(0.001)
    assert said == [MESSAGE]


def test_compiling_adds_up_over_kernels(said: list[str]) -> None:
    compilation._spent = compilation.REPORT_AFTER_S  # by the kernels before
    with compiling():
        end = time.monotonic() + 30
        while not said and time.monotonic() < end:
            time.sleep(0.001)
    assert said == [MESSAGE]


@pytest.mark.parametrize(("asked", "told"), [((), True), (("--quiet",), False), (("--json",), False)])
def test_the_command_line_tells_unless_asked_not_to(asked: tuple[str, ...], told: bool, tmp_path: Path) -> None:
    CliRunner().invoke(app, ["corrupt", str(tmp_path / "absent.mp4"), "-c", "freeze", "-o", str(tmp_path), *asked])
    assert compilation.has_compile_callback() is told
    compilation.set_compile_callback(None)


@pytest.mark.parametrize("told", [True, False])
def test_of_several_workers_one_tells_if_we_would(told: bool) -> None:
    compilation.set_compile_callback(print if told else None)
    found = list(map_unordered(small_work.hearing, [0, 1, 2], 3))
    compilation.set_compile_callback(None)
    assert sum(tells for _, tells in found) == told


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "lines"), [((), 1), (("--quiet",), 0), (("--json",), 0)])
def test_a_user_with_nothing_compiled_sees_one_line(
    asked: tuple[str, ...], lines: int, clip: Clip, tmp_path: Path
) -> None:
    video, out = tmp_path / "in.mkv", tmp_path / "out.mp4"
    with Writer(video, size=clip.size, fps=clip.fps, codec="ffv1") as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)
    # Video and three kinds that take longest: more than two seconds on any machine.
    words = ["corrupt", str(video), "-c", "defocus_blur:3", "-c", "pixelate:3", "-c", "fog:3", "-o", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "jostle", *words, *asked],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(MESSAGE) == lines
    assert MESSAGE not in done.stdout
