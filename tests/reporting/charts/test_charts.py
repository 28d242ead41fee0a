"""Charts: one square per cell, one mark per value, curves inside their axes, frames above their curve."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest

from jostle.core.types.inspection import Inspection
from jostle.errors import BadValue
from jostle.evaluation.results.pm_k import OffsetErrors
from jostle.evaluation.results.run_analysis import Drop, Estimate, drops_between
from jostle.evaluation.tasks.views import AnnotatedAction, Detection, TimelineView
from jostle.metrics.mean_ap import mean_curve
from jostle.metrics.proportion import clopper_pearson
from jostle.reporting.analysis.labels import grid_of
from jostle.reporting.analysis.stability import Stabilities, Stability
from jostle.reporting.charts.curves import Curve, draw_curves, draw_offsets
from jostle.reporting.charts.drawing import Shape
from jostle.reporting.charts.heat_maps import Square, draw_heat_map
from jostle.reporting.charts.inspections import LEFT, WIDE, draw_inspection
from jostle.reporting.charts.precision_recall import LEFT as AXIS
from jostle.reporting.charts.precision_recall import SIDE, TOP, draw_precision_recall
from jostle.reporting.charts.rows import MOST_CLASSES, draw_classes
from jostle.reporting.charts.save import MARGIN, save_drawing
from jostle.reporting.charts.scatter import draw_stability
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


def test_curves_lie_inside_the_axes_and_have_names() -> None:
    curve = mean_curve([(np.array([0.5, 1.0]), np.array([1.0, 0.6])), (np.zeros(0), np.zeros(0))])
    assert curve[1][[0, 100]].tolist() == [0.5, 0.3]
    drawing = draw_precision_recall({"tIoU 0.5": curve, "tIoU 0.7": curve})
    paths = [one for one in drawing.shapes if one.tag == "path"]
    assert [path.kind for path in paths] == ["line run0", "line run1"]
    assert paths[0].points[0] == (AXIS, TOP + SIDE / 2)
    assert paths[0].points[-1] == pytest.approx((AXIS + SIDE, TOP + 0.7 * SIDE))
    assert {"tIoU 0.5", "tIoU 0.7"} <= {one.words for one in drawing.shapes}
    with pytest.raises(BadValue, match="needs a curve"):
        draw_precision_recall({})


def test_drops_of_two_scores_need_the_same_classes() -> None:
    drops = drops_between({"a": 0.5, "b": 0.9, "c": 0.2}, {"a": 0.4, "b": 0.3, "c": 0.3})
    assert [drop.name for drop in drops] == ["b", "a", "c"]
    with pytest.raises(BadValue, match="'c' is in one of them only"):
        drops_between({"a": 0.5}, {"a": 0.4, "c": 0.3})


def inspected(frames: int) -> Inspection:
    probabilities = np.where(np.arange(frames) % 10 < 2, 0.9, 0.1)
    small = tuple(np.full((12, 16, 3), colour, np.uint8) for colour in ((200, 0, 0), (0, 0, 200))) if frames else ()
    kinds = np.full(frames, "clean")
    return Inspection(probabilities, 0.5, np.arange(frames) / 25, Fraction(25), False, "x", "f", kinds, small)


def test_damaged_stretches_are_marked_to_their_end() -> None:
    shapes = list(draw_inspection(inspected(20), "a <video>").shapes)
    boxes = [one.attributes for one in shapes if one.kind == "damaged"]
    assert [(box["x"] - LEFT) / WIDE for box in boxes] == pytest.approx([0, 0.5])
    assert [box["width"] / WIDE for box in boxes] == pytest.approx([0.1, 0.1])
    (curve,) = (one for one in shapes if one.tag == "path")
    assert len(curve.points) == 2 * 20
    assert next(one.words for one in shapes if one.tag == "text") == "a <video>"


def test_frames_are_in_the_picture_and_in_the_vectors(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawing = draw_inspection(inspected(20), "")
    png, svg = save_drawing(drawing, tmp_path, "inspection", ["png", "svg"])
    picture = cv2.imread(str(png))[:, :, ::-1]
    scale = picture.shape[1] / (drawing.width + 2 * MARGIN)
    for share, colour in ((0.25, (200, 0, 0)), (0.75, (0, 0, 200))):
        at = picture[int((60 + MARGIN) * scale), int((LEFT + share * WIDE + MARGIN) * scale)]
        assert np.abs(at.astype(int) - colour).max() <= 2
    assert svg.read_text(encoding="utf-8").count('href="data:image/png;base64,') == 2


def test_video_without_frames_is_drawn() -> None:
    assert draw_inspection(inspected(0), "").svg()


def classifiers(count: int) -> tuple[Stability, ...]:
    points = []
    for i in range(count):
        right, stable = (
            1109 * (40 + 50 * i // max(count - 1, 1)) // 100,
            1109 * (25 + 52 * i // max(count - 1, 1)) // 100,
        )
        intervals = {"accuracy_interval": clopper_pearson(right, 1109), "pm_k_interval": clopper_pearson(stable, 1109)}
        points.append(Stability(f"net-{i}", right / 1109, stable / 1109, **intervals))
    return tuple(points)


def shapes(count: int, published: int = 0, apart: tuple[str, ...] = ()) -> list[Shape]:
    found = Stabilities("ImageNet-Vid-Robust", 10, 1109, classifiers(count), classifiers(published), apart, "exact")
    return list(draw_stability(found).shapes)


def test_figure_has_points_bars_diagonal_and_fit() -> None:
    drawn = shapes(6, published=2)
    dots = [one for one in drawn if one.kind == "mark run0" and one.hint]
    assert [one.hint.partition(":")[0] for one in dots] == [f"net-{i}" for i in range(6)]
    x, y = (np.array([one.attributes[name] for one in dots]) for name in ("cx", "cy"))
    points = classifiers(6)
    scale = np.polyfit([one.accuracy for one in points], x, 1)
    assert np.allclose(np.polyval(scale, [one.accuracy for one in points]), x)
    bars = [one for one in drawn if one.kind == "spread run0"]
    assert len(bars) == 12
    assert bars[0].attributes["x1"] == pytest.approx(np.polyval(scale, points[0].accuracy_interval[0]))  # type: ignore[index]
    assert bars[0].attributes["y1"] == bars[0].attributes["y2"] == y[0]
    words = [one.words for one in drawn if one.tag == "text"]
    slope = np.polyfit([one.accuracy for one in points], [one.pm_k for one in points], 1)[0]
    assert f"linear fit, slope {slope:.2f}" in words
    assert [word for word in words if re.fullmatch(r"\d  net-\d", word)] == [f"{i}  net-{i - 1}" for i in range(1, 7)]
    assert {"no drop", "as published", "a classifier, 95 % interval", "pm-10, %"} <= {*words}
    assert [one.hint.partition(",")[0] for one in drawn if one.kind == "mark open run5" and one.hint] == [
        "net-0",
        "net-1",
    ]


def test_published_classifiers_that_cannot_be_compared_are_left_out() -> None:
    drawn = shapes(1, published=2, apart=("on other anchors",))
    assert not [one for one in drawn if "open" in one.kind]
    assert not [one for one in drawn if "slope" in one.words]


def test_many_classifiers_have_no_names() -> None:
    assert not [one for one in shapes(47) if one.words.startswith("1  ")]


def test_one_classifier_without_intervals_is_enough() -> None:
    drawing = draw_stability(Stabilities("x", 3, 2, (Stability("one", 0.5, 0.5),), (), (), ""))
    assert len([one for one in drawing.shapes if one.kind == "mark run0" and one.hint]) == 1
