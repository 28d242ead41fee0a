"""Run folders that somebody was at: each key of each file in turn removed or replaced, and files that are no files."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

FILES = ("run.json", "scores.json", "truth.json", "diagnosis.json", "failures.jsonl", "journal.jsonl")
GONE = object()
INSTEAD: dict[str, Any] = {
    "removed": GONE,
    "null": None,
    "text": "nonsense",
    "empty text": "",
    "odd text": "\ud800",
    "true": True,
    "negative": -1,
    "fraction": 0.5,
    "huge": 10**30,
    "empty list": [],
    "empty object": {},
    "list": [1, "a"],
    "deep": json.loads("[" * 200 + "]" * 200),
}
Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Tampering:
    """One thing done to one file of a run folder."""

    file: str
    what: str
    do: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def tamperings(run: Path) -> Iterator[Tampering]:
    """All that is done to a run folder, one after the other."""
    for name in FILES:
        if (run / name).exists():
            yield from tamperings_with(run, name)
    for folder in ("predictions", "videos"):
        name = min(path.name for path in (run / folder).iterdir())
        for what, do in _whole_files().items():
            yield Tampering(f"{folder}/{name}", what, do)


def tamperings_with(folder: Path, name: str) -> Iterator[Tampering]:
    """All that is done to one file of a folder."""
    yield from _of_values(folder, name)
    yield from (Tampering(name, what, do) for what, do in _whole_files().items())


def _of_values(run: Path, name: str) -> Iterator[Tampering]:
    lines = (run / name).read_text().splitlines() if name.endswith(".jsonl") else [(run / name).read_text()]
    records = [json.loads(line) for line in lines if line]
    for number in dict.fromkeys((0, *_first_of_each_event(records))):
        for keys in _places(records[number]):
            for how, value in INSTEAD.items():
                place = ".".join(map(str, keys)) or "all of it"
                what = f"{how} at {place}" + (f" in line {number + 1}" if len(records) > 1 else "")
                yield Tampering(name, what, partial(_write, records, number, keys, value))


def _first_of_each_event(records: list[Any]) -> list[int]:
    events = [one.get("event") for one in records]
    return [i for i, event in enumerate(events) if event not in events[:i]]


def _places(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Every place of a value; of a list the first and the last, of a table of like things the first."""
    yield keys
    if isinstance(value, dict):
        alike = len({type(part) for part in value.values()}) == 1
        for key in [*value][:1] if alike else value:
            yield from _places(value[key], (*keys, key))
    elif isinstance(value, list) and value:
        for place in sorted({0, len(value) - 1}):
            yield from _places(value[place], (*keys, place))


def _write(records: list[Any], number: int, keys: Keys, value: Any, path: Path) -> None:
    changed = json.loads(json.dumps(records))
    place = changed
    for key in (number, *keys)[:-1]:
        place = place[key]
    if value is GONE:
        del place[(number, *keys)[-1]]
    else:
        place[(number, *keys)[-1]] = value
    path.write_text("".join(json.dumps(one) + "\n" for one in changed))


def _whole_files() -> dict[str, Callable[[Path], None]]:
    return {
        "an empty file": lambda path: path.write_bytes(b"") and None,
        "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]) and None,
        "zeros": lambda path: path.write_bytes(bytes(1000)) and None,
        "deep brackets": lambda path: path.write_text("[" * 100_000 + "\n") and None,
        "deep objects": lambda path: path.write_text('{"a":' * 100_000 + "\n") and None,
        "not a number": lambda path: path.write_text('{"format": NaN, "clean": Infinity}\n') and None,
        "a long number": lambda path: path.write_text('{"format": ' + "9" * 5000 + "}\n") and None,
        "not UTF-8": lambda path: path.write_bytes(b'{"format": 1, "model": "\xff\xfe"}\n') and None,
        "a large file": _large,
        "removed": lambda path: path.unlink(),
        "a folder": partial(_instead, make=lambda path: path.mkdir()),
        "a pipe": partial(_instead, make=os.mkfifo),
        "a socket": partial(_instead, make=_bind),
        "a link to nowhere": partial(_instead, make=lambda path: path.symlink_to("nowhere")),
        "a link to itself": partial(_instead, make=lambda path: path.symlink_to(path.name)),
    }


def _large(path: Path) -> None:
    """Takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(600 << 20)


def _instead(path: Path, make: Callable[[Path], Any]) -> None:
    path.unlink()
    make(path)


def _bind(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)
