"""`jostle watch` on the command line: exit codes, events on stdout, one JSON value with `--json`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from helpers.command_line import call
from jostle.api.streams import WatchState
from jostle.cli.streams import _LiveLine

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
HEADER = b"YUV4MPEG2 W32 H24 F10:1 C420jpeg\n"


def y4m(path: Path, text: str) -> Path:
    """A stream of textured frames, black where `text` has an `x`."""
    frames = []
    for number, letter in enumerate(text):
        luma = bytes((40 + (i * 7 + number) % 150) for i in range(32 * 24)) if letter == "." else b"\x10" * (32 * 24)
        frames.append(b"FRAME\n" + luma + b"\x80" * (32 * 24 // 2))
    path.write_bytes(HEADER + b"".join(frames))
    return path


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    y4m(tmp_path / "a.y4m", "." * 12 + "x" * 6 + "." * 6)


def test_events_are_lines_of_json() -> None:
    code, out, err = call("watch", "a.y4m")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    black = [event for event in events if event["kind"] == "black"]
    assert [(one["event"], one["frame"], one["time"]) for one in black] == [("start", 12, 1.2), ("end", 18, 1.8)]
    assert all(0 <= one["confidence"] <= 1 for one in events)
    assert re.search(r"\d+ of 24 frames damaged in \d+ stretch", err)


def test_until_damaged_has_an_exit_code() -> None:
    assert call("watch", "a.y4m", "--until-damaged", "-q").code == 9
    Path("cut.y4m").write_bytes(Path("a.y4m").read_bytes()[:-20])
    code, _, err = call("watch", "cut.y4m")
    assert (code, "ended within a frame" in err) == (3, True)
    assert call("watch", "nothere.y4m").code == 3
    assert call("watch", "a.y4m", "--size", "12").code == 2


def test_a_summary_is_one_value() -> None:
    code, out, _ = call("watch", "a.y4m", "--json", "--events", "events.jsonl")
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `watch`"))
    assert [*json.loads(out)] == re.findall(r"`([a-z_]+)`", row.split("|")[2])
    assert code == 0
    assert len(Path("events.jsonl").read_text().splitlines()) >= 2
    assert "either the stream or JSON" in call("watch", "a.y4m", "--json", "-o", "-").err


def test_the_live_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("jostle.cli.console._quiet", False)
    with _LiveLine() as line:
        line.draw(WatchState(frames=7, time=0.7, kind="frozen", confidence=0.93, damaged=3))
        text = capsys.readouterr().err
    assert "0.7 s, frame 7" in text
    assert "DAMAGED: frozen (93" in text
