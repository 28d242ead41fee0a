"""Notebook representations of clips, sheets and progress."""

from __future__ import annotations

import base64
import re
import struct
import sys
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

import jostle
from jostle.core import progress as progress_module
from jostle.core.progress import in_notebook, progress_or_bar


def moving(count: int, height: int = 40, width: int = 60) -> np.ndarray[Any, Any]:
    rng = np.random.Generator(np.random.PCG64(0))
    return rng.integers(0, 256, (count, height, width, 3), np.uint8)


def picture_of(html: str) -> bytes:
    match = re.search(r"data:image/png;base64,([^\"]+)", html)
    assert match
    return base64.b64decode(match[1])


def chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    result, position = [], 8
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        result.append((png[position + 4 : position + 8], png[position + 8 : position + 8 + length]))
        position += 12 + length
    return result


def test_a_clip_is_an_animated_image() -> None:
    frames = moving(5)
    png = picture_of(jostle.Clip.at_rate(frames, 10)._repr_html_())
    parts = chunks(png)
    assert [kind for kind, _ in parts].count(b"fcTL") == 5
    delays = [struct.unpack(">HH", data[20:24]) for kind, data in parts if kind == b"fcTL"]
    assert delays == [(100, 1000)] * 5
    first = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    assert (first == frames[0] & 0xFC).all()


def test_a_long_and_large_clip_is_reduced() -> None:
    parts = chunks(picture_of(jostle.Clip.at_rate(np.zeros((300, 720, 1280, 3), np.uint8), 30)._repr_html_()))
    assert struct.unpack(">II", dict(parts)[b"IHDR"][:8]) == (160, 90)
    controls = [data for kind, data in parts if kind == b"fcTL"]
    assert len(controls) == 16
    assert sum(struct.unpack(">H", data[20:22])[0] for data in controls) == pytest.approx(10_000, abs=20)
    assert "empty" in jostle.Clip.at_rate(np.zeros((0, 8, 8, 3), np.uint8), 30)._repr_html_()


def test_a_sheet_is_returned_without_a_file_name(tmp_path: Any) -> None:
    clip = jostle.Clip.at_rate(moving(8), 10)
    sheet = jostle.sheet(clip, spec="brightness")
    assert sheet._repr_png_() == sheet.save(tmp_path / "a.png").read_bytes()  # type: ignore[union-attr]
    assert jostle.sheet(clip, tmp_path / "b.png", "brightness") == tmp_path / "b.png"
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "a.png").read_bytes()


def test_a_notebook_shows_one_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """One output is updated, short work has none, and a callback of the caller takes precedence."""
    drawn: list[str] = []

    class ZMQInteractiveShell:
        pass

    handle = SimpleNamespace(update=drawn.append)

    def display(bar: str, display_id: bool) -> Any:
        assert display_id
        drawn.append(bar)
        return handle

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    assert in_notebook()
    with progress_or_bar("short", None) as advance:
        assert advance is not None
        advance(1, 2)
    assert drawn == []
    monkeypatch.setattr(progress_module, "DELAY_S", 0.0)
    monkeypatch.setattr(progress_module, "DRAW_EVERY_S", 0.0)
    with progress_or_bar("long", None) as advance:
        assert advance is not None
        for done in range(1, 4):
            advance(done, 4)
    assert [("3 of 4" in html) for html in drawn] == [False, False, True, False]
    assert drawn[-1] == ""
    own: Any = print
    with progress_or_bar("own", own) as advance:
        assert advance is own
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not in_notebook()
    with progress_or_bar("none", None) as advance:  # lines on stderr, one a minute
        assert advance is not None
        advance(1, 2)
