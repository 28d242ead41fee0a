"""The viewer colours what is lost as the report does."""

from __future__ import annotations

from pathlib import Path

import jostle.reporting.html
from jostle.reporting.analysis.loss_steps import STEPS
from jostle.reporting.viewer.server import _files


def test_viewer_and_report_have_one_scale() -> None:
    heat = (Path(jostle.reporting.html.__file__).parent / "heat.css").read_text(encoding="utf-8")
    files = {name: content.decode() for name, content in _files().items() if name.endswith((".css", ".html", ".js"))}
    assert files["heat.css"] == heat
    assert "/static/heat.css" in files["shell.html"]
    assert "cell.step" in files["run.js"]
    for step in [*(f"h{i}" for i in range(len(STEPS) + 1)), "above"]:
        assert f"--{step}:" in heat
        assert f".square.{step} {{ background: var(--{step}); }}" in files["style.css"]
