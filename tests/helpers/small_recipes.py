"""Recipes of small text files, in a module of their own so that worker processes find them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import DataError
from jostle.io.files.atomic import write_text


@dataclass(frozen=True)
class Text:
    """A file of one line, many times, written slowly if there is a pause."""

    name: str
    line: str = "la\n"
    times: int = 40
    pause_s: float = 0.0
    key: str = "1"

    def write(self, path: Path) -> None:
        write_text(path, self._pieces())

    def _pieces(self) -> Iterator[str]:
        for number in range(self.times):
            time.sleep(self.pause_s / self.times)
            yield f"{number} {self.line}"


@dataclass(frozen=True)
class Refused:
    """A file that cannot be made."""

    name: str
    key: str = "1"

    def write(self, path: Path) -> None:
        raise DataError(f"{path}: refused", fault="F1")


@dataclass(frozen=True)
class Deadly:
    """A file whose making kills the process."""

    name: str
    key: str = "1"

    def write(self, path: Path) -> None:
        os._exit(9)


def songs(count: int, *, pause_s: float = 0.0) -> list[Text]:
    """Recipes in two folders."""
    return [Text(f"{'ab'[i % 2]}/song {i}.txt", f"song {i}\n", pause_s=pause_s) for i in range(count)]
