"""README and the start page run as pasted: every command and block, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
for _package in ("matplotlib", "jinja2", "fastapi"):  # of the extras `report` and `view`
    pytest.importorskip(_package)

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROSE = re.compile(r"`(jostle (?:report|view) \w[^`]*)`")
# What makes an environment, and what only shows how a placeholder is used, is not for an empty folder.
ENVIRONMENT = ("make ", "pip ", "python -m pip ")


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment whose `jostle` and `python` are the ones under test."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, words in (("jostle", [sys.executable, "-m", "jostle"]), ("python", [sys.executable])):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (programs / name).chmod(0o755)
    (tmp_path / "empty").mkdir()
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "200"}


def steps_of(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield each command or block of code in order: its kind, its text, and the output below it."""
    prose = 0
    for match in [*FENCE.finditer(page), None]:
        for inline in PROSE.findall(page[prose : match.start() if match else None]):
            yield "command", inline, ""
        if match is None:
            return
        prose, (language, body) = match.end(), match.groups()
        if language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield "command", command, output
        elif language == "bash":
            yield "command", body, ""
        elif language == "python":
            yield "python", body, ""
        elif not language:
            for line in body.splitlines():
                yield "command", line.partition("#")[0], ""


def paste(page: Path, shell: dict[str, str], folder: Path) -> int:
    """Run a page in a folder, and return the number of its steps."""
    count = 0
    for kind, text, output in steps_of(page.read_text(encoding="utf-8")):
        if text.startswith(ENVIRONMENT):
            continue
        count += 1
        if text.startswith("jostle view "):
            see(shlex.split(text), shell, folder)
            continue
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-ec", text]
        done = subprocess.run(command, cwd=folder, env=shell, capture_output=True, text=True, timeout=900, check=False)
        said = f"{text}\n{done.stdout}{done.stderr}"
        assert (done.returncode != 0) == output.startswith("error"), said
        for line in output.splitlines():
            if line.startswith("error"):
                assert line in done.stderr, said
    return count


def see(command: list[str], shell: dict[str, str], folder: Path) -> None:
    """Start the viewer, wait for its address, and end it."""
    log = folder.parent / "viewer.log"
    with log.open("w") as out:
        viewer = subprocess.Popen(
            [*command, "--no-browser", "--port", "0"], cwd=folder, env=shell, stdout=out, stderr=out
        )
        try:
            deadline = time.monotonic() + 60
            while "http://" not in log.read_text() and viewer.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            viewer.terminate()
            viewer.wait(30)
    assert "http://" in log.read_text(), log.read_text()


@pytest.mark.processes
def test_the_readme_runs_as_pasted(tmp_path: Path, shell: dict[str, str]) -> None:
    assert paste(ROOT / "README.md", shell, tmp_path / "empty") == 9


@pytest.mark.slow
def test_the_start_page_runs_as_pasted(tmp_path: Path, shell: dict[str, str]) -> None:
    assert paste(ROOT / "docs" / "start.md", shell, tmp_path / "empty") > 15
