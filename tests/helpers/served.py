"""The real viewer in a process of its own, on a free port, for tests that need a network or a browser."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

DEADLINE_S = 60.0

# What viewers in the process of a test have.
PORT, TOKEN = 8123, "secret-of-the-test"


@dataclass(frozen=True)
class Served:
    """A viewer that answers.

    Attributes:
        address: as it was printed, with the token.
    """

    address: str
    process: subprocess.Popen[str]

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        """The secret in the address."""
        return self.address.partition("token=")[2]

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Stop the server and return its exit code and stderr."""
        self.process.send_signal(how)
        _, stderr = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, stderr


@contextmanager
def served(cache: Path, *runs: Path) -> Iterator[Served]:
    """`jostle view` on some runs, until the block ends."""
    command = [sys.executable, "-m", "jostle", "view", *map(str, runs), "--no-browser"]
    environment = os.environ | {"JOSTLE_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()
        try:
            yield Served(lines.get(timeout=DEADLINE_S).strip(), process)
        finally:
            if process.poll() is None:
                process.kill()


def renamed_run(run: Path, names: Mapping[str, str]) -> Path:
    """Copy a run as `hostile`, with other names than its own everywhere but in scores.json."""
    folder = shutil.copytree(run, run.with_name("hostile"), ignore=shutil.ignore_patterns("videos", "scores.json"))
    for path in (*folder.glob("*.json*"), *folder.glob("predictions/*")):
        text = path.read_text(encoding="utf-8")
        for name, other in names.items():
            text = text.replace(name, other)
        path.write_text(text, encoding="utf-8")
    shutil.copy(run / "scores.json", folder)
    return folder
