"""`jostle` started many times: a process imports everything once, and each start is a fork of that.

A start is then a tenth of a second instead of many, and what it does is the same: a process of its own, with its own
folder, environment, output and exit code. What is about starting Python itself starts Python.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

FIRST = (
    "av",
    "cv2",
    "jostle.api.corruption",
    "jostle.api.mending",
    "jostle.api.scoring",
    "jostle.cli",
    "jostle.core.kernels",
)
NETWORKS = (
    "jostle.models.devices",
    "jostle.evaluation.runner.runner",
    "jostle.training.loop",
)


class Starter:
    """A process that waits for commands, one at a time.

    Args:
        first: modules that are imported before any command, besides what all need.
    """

    def __init__(self, env: dict[str, str], cwd: Path | None = None, first: tuple[str, ...] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *first],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._heard = b""

    def start(self, words: list[str], **about: object) -> int:
        """Start a command; the number of its process and of its group."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"words": words, **about}).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._line())

    def is_done(self) -> bool:
        """Whether the command has ended."""
        return bool(self._heard or select.select([self._process.stdout], [], [], 0)[0])

    def end(self) -> int:
        """Wait until the command has ended; how it did, negative for a signal."""
        return int(self._line())

    def close(self) -> None:
        self._process.communicate()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._heard:
            more = os.read(self._process.stdout.fileno(), 100)
            assert more, self._process.communicate()
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line


def run(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `jostle` says to these words, and how it ends."""
    arguments = [str(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / "stdout", Path(folder) / "stderr"]
        starter = _starter()
        starter.start(
            arguments, cwd=str(cwd or Path.cwd()), env=dict(os.environ), outputs=[str(file) for file in outputs]
        )
        code = starter.end()
        out, err = (file.read_bytes().decode(errors="surrogateescape") for file in outputs)
    return subprocess.CompletedProcess(["jostle", *arguments], code, out, err)


@lru_cache(1)
def _starter() -> Starter:
    """One for all tests of a process."""
    return Starter(os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, first=NETWORKS)


def close() -> None:
    """End the process that `run` starts commands with, if there is one."""
    if _starter.cache_info().currsize:
        _starter().close()
        _starter.cache_clear()


def _serve(first: list[str]) -> None:
    """Fork for every line that comes, and report when the child is there and how it ends."""
    for name in (*FIRST, *first):
        with contextlib.suppress(ImportError):  # torch is an extra
            importlib.import_module(name)
    # The first kernel has Numba load its types, for half a second.
    sys.modules["jostle"].corrupt(np.zeros((1, 16, 16, 3), np.uint8), "fog:1")
    sys.modules["jostle.cli.app"]._command()  # the signatures of all verbs
    gc.freeze()  # what is there is shared with the children, and not traversed by each of them
    replies = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.close(replies)
            _become(**json.loads(line))
            try:
                sys.modules["jostle.cli"].main()
            except SystemExit as done:
                sys.stdout.flush()
                sys.stderr.flush()
                # To take everything down again would cost more than a start.
                os._exit(done.code if isinstance(done.code, int) else 1)
        os.write(replies, b"%d\n" % child)
        os.write(replies, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _become(words: list[str], cwd: str = "", env: dict[str, str] | None = None, outputs: tuple[str, ...] = ()) -> None:
    """Turn this process into what a shell would have started."""
    os.setsid()
    sys.argv = ["jostle", *words]
    if cwd:
        os.chdir(cwd)
    sys.path[0] = os.getcwd()  # as of python -m
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    for number, file in enumerate(outputs, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), number)


if __name__ == "__main__":
    _serve(sys.argv[1:])
