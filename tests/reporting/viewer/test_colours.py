"""Colours of the viewer agree with those of the HTML report."""

from __future__ import annotations

import re

from jostle.reporting.analysis.loss_steps import STEPS
from jostle.reporting.charts.bars import NAMES
from jostle.reporting.charts.palette import LOSSES, SERIES
from jostle.reporting.viewer.server import _files


def test_viewer_and_report_share_one_colour_scale() -> None:
    files = {name: content.decode() for name, content in _files().items() if name.endswith((".css", ".html", ".js"))}
    assert "/static/heat.css" in files["shell.html"]
    assert "cell.step" in files["run.js"]
    for step in [*(f"h{i}" for i in range(len(STEPS) + 1)), "above"]:
        assert f"--{step}: {LOSSES[step][0]};" in files["heat.css"]
        assert f".{step} {{ --own: var(--{step}); }}" in files["heat.css"]
    assert re.search(r"^\.square \{[^}]*background: var\(--own,", files["style.css"], re.MULTILINE)


def test_detection_kinds_have_the_same_colour_in_both() -> None:
    """Background is the exception: the viewer shows it beside annotated actions, which are grey there."""
    viewer = _files()["style.css"].decode()
    for kind in NAMES:
        colour = re.search(rf"--{kind}: (#\w+)", viewer)
        assert colour
        if kind != "background":
            assert colour[1] == SERIES[kind][0], kind
        assert f".swatch.{kind} {{" in viewer


def test_captions_are_right_in_dark_mode() -> None:
    """A greater loss is brighter in dark mode, so no caption may say "Darker"."""
    assert "Darker" not in _files()["run.js"].decode()
