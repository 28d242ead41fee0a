"""Scatter of accuracy against pm-k: one point per classifier, published values apart."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jostle.metrics.proportion import clopper_pearson
from jostle.reporting.analysis.stability import Stabilities, Stability
from jostle.reporting.charts.drawing import Shape
from jostle.reporting.charts.scatter import draw_stability


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
