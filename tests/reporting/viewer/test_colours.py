"""Colours of the viewer agree with those of the HTML report."""

from __future__ import annotations

import re
from pathlib import Path

import jostle.reporting.html
from jostle.reporting.analysis.loss_steps import STEPS
from jostle.reporting.charts.bars import NAMES
from jostle.reporting.viewer.server import _files


def test_viewer_and_report_share_one_colour_scale() -> None:
    heat = (Path(jostle.reporting.html.__file__).parent / "heat.css").read_text(encoding="utf-8")
    files = {name: content.decode() for name, content in _files().items() if name.endswith((".css", ".html", ".js"))}
    assert files["heat.css"] == heat
    assert "/static/heat.css" in files["shell.html"]
    assert "cell.step" in files["run.js"]
    for step in [*(f"h{i}" for i in range(len(STEPS) + 1)), "above"]:
        assert f"--{step}:" in heat
        assert f".square.{step} {{ background: var(--{step}); }}" in files["style.css"]


def test_detection_kinds_have_the_same_colour_in_both() -> None:
    """Background is the exception: the viewer shows it beside annotated actions, which are grey there."""
    report = (Path(jostle.reporting.html.__file__).parent / "report.css").read_text(encoding="utf-8")
    viewer = _files()["style.css"].decode()
    for number, kind in enumerate(NAMES):
        colours = [re.search(rf"--{name}: (#\w+)", css) for name, css in ((f"k{number}", report), (kind, viewer))]
        assert all(colours)
        if kind != "background":
            assert colours[0][1] == colours[1][1], kind
        assert f".swatch.{kind} {{" in viewer


def test_captions_are_right_in_dark_mode() -> None:
    """A greater loss is brighter in dark mode, so no caption may say "Darker"."""
    assert "Darker" not in _files()["run.js"].decode()
