"""A folder of three short videos, a benchmark of four cells and models of a few lines, for `jostle run` itself."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from jostle.types import Segments

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "extraction"))

from numpy_extractor import write_video  # noqa: E402

NAMES = ("one", "two", "three")
RECIPE = """
name = "tiny-c"
version = 1
dataset = "folder"
subset = "test"
task = "detection"
metric = "mean_ap"
protocol = "thumos14"
tious = [0.5]

[[groups]]
name = "main"
cells = ["thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "freeze:3"]
"""
FINAL = ("run.json", "scores.json", "failures.jsonl", "predictions")


def lit(frames: np.ndarray, fps: float, duration: float) -> Segments:
    """A segment that depends on every pixel; slow enough to be caught in the middle."""
    time.sleep(float(os.environ.get("TINY_DELAY_S", "0")))
    light = float(frames.astype(np.float64).sum() % 9973) / 9973
    return Segments([0.1, light], [1.0, light + 0.6], [0, 1], [0.5 + light / 3, light / 2], ("jump", "run"))


def deadly(frames: np.ndarray, duration: float) -> Segments:
    """Its process is killed at the longest of the videos, as by a system without memory."""
    if len(frames) > 48:
        os.kill(os.getpid(), signal.SIGKILL)
    return Segments([0.1], [duration / 2], [0], [0.5], ("action",))


def write_folder(root: Path) -> Path:
    """Videos and annotations in `root/data`, the benchmark in `root/tiny-c.toml`."""
    data = root / "data"
    data.mkdir(parents=True)
    database = {}
    for seed, name in enumerate(NAMES):
        write_video(data / f"{name}.mkv", 40, seed=seed)
        actions = [
            {"label": "jump", "segment": [0.1, 1.0 + seed / 10], "label_id": 0},
            {"label": "run", "segment": [0.8, 1.5], "label_id": 1},
        ]
        database[name] = {"subset": "test", "duration": 1.6, "fps": 25.0, "annotations": actions}
    (data / "truth.json").write_text(json.dumps({"database": database}))
    (root / "tiny-c.toml").write_text(RECIPE)
    return root


def command(out: Path | str, *more: str, model: str = "tiny_run:lit", jobs: int = 2) -> list[str]:
    usual = ["--model", model, "--data", "data", "-o", str(out), "-j", str(jobs), "--device", "cpu"]
    return [sys.executable, "-m", "jostle", "run", "tiny-c.toml", *usual, *more]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"} | more


def said(root: Path, words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """What a command says, and how it ends."""
    usual = {"cwd": root, "env": environment(), "capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(words, **(usual | options))


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of everything that a run is for."""
    files = [file for name in FINAL for file in ([*(folder / name).rglob("*")] or [folder / name])]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def is_gone(group: int) -> bool:
    """Whether no process of a group is left, in a moment."""
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


class Starter:
    """Starts `jostle` many times: everything is imported once, and each start is a fork of that.

    A start is then a tenth of a second instead of many, and what it does is the same.
    """

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=root,
            env=environment(TINY_DELAY_S="0.03"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._heard = b""

    def start(self, words: list[str]) -> int:
        """Start a command; the number of its process and of its group."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
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


def _serve() -> None:
    """Fork for every line that comes, and tell when the child is there and how it ends."""

    import tiny_sets  # noqa: F401  (registers its data set)

    import jostle.cli
    import jostle.detectors.devices
    import jostle.models.threads
    import jostle.running.runner
    import jostle.training.loop

    replies = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.setsid()
            sys.argv = ["jostle", *json.loads(line)]
            try:
                jostle.cli.main()
            except SystemExit as done:
                os._exit(done.code if isinstance(done.code, int) else 1)
        os.write(replies, b"%d\n" % child)
        os.write(replies, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    _serve()
