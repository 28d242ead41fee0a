"""Packages of examples/, installed into a folder, and `jostle` in a process that finds them there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def install(name: str, folder: Path) -> Path:
    """Have pip install an example package into a folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--target", folder, EXAMPLES / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def jostle_with(
    *arguments: object, cwd: Path, site: Path | str | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run `jostle` in a process of its own, which imports from these folders and must end with this code."""
    environment = os.environ | {"JOSTLE_CACHE": str(cwd / "cache")}
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    environment.pop("JOSTLE_IMPORT", None)
    command = [sys.executable, "-m", "jostle", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done
