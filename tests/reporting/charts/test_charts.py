"""Charts of the report: one square per cell, one mark per value, colours by relative loss."""

from __future__ import annotations

from xml.etree import ElementTree

from jostle.evaluation.results.pm_k import OffsetErrors
from jostle.evaluation.results.run_analysis import Drop, Estimate
from jostle.evaluation.tasks.views import AnnotatedAction, Detection, TimelineView
from jostle.reporting.analysis.labels import grid_of
from jostle.reporting.charts.curves import Curve, draw_curves, draw_offsets
from jostle.reporting.charts.heat_maps import Square, draw_heat_map
from jostle.reporting.charts.rows import MOST_CLASSES, draw_classes
from jostle.reporting.charts.timelines import draw_timeline

SVG = "{http://www.w3.org/2000/svg}"


def marks(svg: str, kind: str) -> list[ElementTree.Element]:
    return [element for element in ElementTree.fromstring(svg).iter() if kind in (element.get("class") or "").split()]


def test_every_cell_is_a_linked_square() -> None:
    cells = ["clean", "p/fog:1", "p/fog:3", "rain:1", "fog:1+rain:2", "p/fog:1@at:50%x1"]
    grid = grid_of(cells, cells[1:4])
    retained = (1, 1, 0.5, 1.1, None, 0.1)
    squares = {cell: Square(0.5, retained[i], f"c{i}", cell) for i, cell in enumerate(cells)}
    svg = draw_heat_map(grid, squares, "map").svg()
    links = list(ElementTree.fromstring(svg).iter(f"{SVG}a"))
    assert sorted(link.get("href") or "" for link in links) == [f"#c{i}" for i in range(1, 6)]
    assert {(link.get("aria-label"), (link[0].get("class") or "").split()[1]) for link in links} == {
        ("p/fog:1", "h0"),
        ("p/fog:3", "h6"),
        ("rain:1", "above"),
        ("fog:1+rain:2", "none"),
        ("p/fog:1@at:50%x1", "h8"),
    }
    assert "not averaged" in svg


def test_curves_have_one_mark_per_value_and_a_band_per_interval() -> None:
    estimates = {0: Estimate(0.8, (0.7, 0.9)), 1: Estimate(0.5, (0.4, 0.6)), 2: Estimate(None)}
    svg = draw_curves(
        {"fog": [Curve(0, estimates), Curve(1, {0: Estimate(0.8), 1: Estimate(0.7)})]}, ["a", "b"], "mAP"
    ).svg()
    assert len(marks(svg, "band")) == 1
    assert len(marks(svg, "mark")) == 2 + 2 + 2  # and one each in the legend
    assert "severity 1: 50.0 [40.0, 60.0]" in svg


def test_number_of_drawn_classes_is_limited() -> None:
    drops = [Drop(f"class {i}", 0.9, 0.5, "fog:1", 0.4) for i in range(100)]
    assert len(marks(draw_classes(drops, "AP").svg(), "clean")) == MOST_CLASSES + 1


def test_bars_of_a_timeline_do_not_overlap() -> None:
    actions = (
        AnnotatedAction(0, 4, "jump", True, False),
        AnnotatedAction(2, 5, "run", True, True),
        AnnotatedAction(6, 7, "jump", False, False),
    )
    wrong = Detection(0, 1, "jump", 0.9, 0.2, "localization", 0)
    timeline = TimelineView(
        "v", "fog:1", 0.5, actions, (Detection(0, 4, "jump", 0.9, 1.0, "true_positive", 0),), (wrong,)
    )
    svg = draw_timeline(timeline, [(1.0, 1.2)], 8).svg()
    bars = marks(svg, "action")
    assert bars[0].get("y") != bars[1].get("y")
    assert bars[0].get("y") == bars[2].get("y")
    assert [("gone" in (bar.get("class") or "")) for bar in bars] == [True, False, False]
    assert len(marks(svg, "corrupted-span")) == 1
    assert "jump, 0.00 to 1.00 s: localization, tIoU 0.20, score 0.90" in svg


def test_offset_charts_reach_ten_frames() -> None:
    errors = OffsetErrors("clean", 10, 5, 0.8, None, 0.5, None, 5, dict.fromkeys(range(-10, 11), 0.1))
    assert "+10" in draw_offsets([("model", errors)]).svg()
