"""Colours of pages: every one that a style sheet uses is declared, light and dark, and nothing else has its own."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from jostle.metrics.diagnosis.false_positives import ERROR_KINDS
from jostle.reporting.analysis.loss_steps import STEPS
from jostle.reporting.charts.bars import NAMES
from jostle.reporting.charts.palette import INKS, LOSS_INKS, LOSSES, PAGE, SERIES, all_colours
from jostle.reporting.viewer.server import _files

ALL = [LOSSES, LOSS_INKS, PAGE, SERIES, INKS]
SHEETS = ("report.css", "board.css", "collection.css", "gallery.css")


@pytest.mark.parametrize("name", SHEETS)
def test_style_sheets_take_their_colours_from_the_palette(name: str) -> None:
    text = (resources.files("jostle.reporting.html") / name).read_text(encoding="utf-8")
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= {"own"}.union(*ALL)
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", text)) <= {"#000", "#fff"}  # behind films and sheets


def test_colours_are_written_in_full_on_both_grounds() -> None:
    names = [name for colours in ALL for name in colours]
    assert len(names) == len(set(names))
    text = all_colours()
    for colours in ALL:
        for name, both in colours.items():
            assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in both), name
            assert text.count(f"--{name}: ") == 2


def test_steps_and_kinds_have_a_colour() -> None:
    assert [*LOSSES] == [*(f"h{i}" for i in range(len(STEPS) + 1)), "above"]
    assert {*ERROR_KINDS} <= {*SERIES}
    assert [*INKS] == [f"on-{kind}" for kind in ERROR_KINDS]


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
