"""Colours of pages: every one that a style sheet uses is declared, light and dark, and nothing else has its own."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from jostle.reporting.analysis.loss_steps import STEPS
from jostle.reporting.charts.palette import LOSSES, PAGE

SHEETS = ("report.css", "board.css", "collection.css")


@pytest.mark.parametrize("name", SHEETS)
def test_style_sheets_take_their_colours_from_the_palette(name: str) -> None:
    text = (resources.files("jostle.reporting.html") / name).read_text(encoding="utf-8")
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= {*LOSSES, *PAGE}
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", text)) <= {"#000"}  # behind films


def test_colours_are_written_in_full_on_both_grounds() -> None:
    for name, both in {**LOSSES, **PAGE}.items():
        assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in both), name
    assert not set(LOSSES) & set(PAGE)
    assert [name for name in LOSSES if re.fullmatch(r"h\d", name)] == [f"h{i}" for i in range(len(STEPS) + 1)]
