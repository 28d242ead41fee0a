"""The page of all corruptions: self-contained, and strangers' words stay words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers.synthetic_runs import HOSTILE
from jostle.errors import MissingExtra
from jostle.reporting.html.gallery import Exhibit, write_gallery


def test_gallery_holds_its_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("clean.mp4", "fog.mp4", "sheet.png"):
        (tmp_path / name).write_bytes(name.encode())
    exhibits = [Exhibit("fog", "weather", "frame", "Fog.", tmp_path / "fog.mp4", HOSTILE[0])]
    arguments = (tmp_path / "gallery.html", exhibits, tmp_path / "clean.mp4", tmp_path / "sheet.png")
    page = write_gallery(*arguments, about=HOSTILE[3]).read_text("utf-8")
    assert "<h1>1 corruptions of a video</h1>" in page
    assert page.count("data:video/mp4;base64,") == 2
    assert page.count("data:image/png;base64,") == 1
    assert "Content-Security-Policy" in page
    assert "<script" not in page
    assert HOSTILE[3] not in page
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match="the gallery page needs packages"):
        write_gallery(*arguments, about="")
