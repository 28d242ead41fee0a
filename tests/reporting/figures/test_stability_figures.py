"""Scatter of accuracy against pm-k: one point per classifier, reproducible, published values apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.errors import BadValue
from jostle.metrics.proportion import clopper_pearson
from jostle.reporting.analysis.stability import Stability
from jostle.reporting.figures import stability
from jostle.reporting.figures.stability import draw_stability


def classifiers(count: int) -> list[Stability]:
    points = []
    for i in range(count):
        right, stable = (
            1109 * (40 + 50 * i // max(count - 1, 1)) // 100,
            1109 * (25 + 52 * i // max(count - 1, 1)) // 100,
        )
        intervals = {"accuracy_interval": clopper_pearson(right, 1109), "pm_k_interval": clopper_pearson(stable, 1109)}
        points.append(Stability(f"net-{i}", right / 1109, stable / 1109, **intervals))
    return points


def test_figure_has_points_bars_diagonal_and_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = {}
    monkeypatch.setattr(stability, "save", lambda figure, *rest: saved.setdefault("figure", figure) and [])
    points = classifiers(6)
    draw_stability(points, tmp_path, title="ImageNet-Vid-Robust", k=10, published=classifiers(2))
    (axes,) = saved["figure"].axes
    bars = axes.containers[0]
    assert np.allclose(bars.lines[0].get_xdata(), [100 * point.accuracy for point in points])
    assert np.allclose(bars.lines[0].get_ydata(), [100 * point.pm_k for point in points])
    horizontal, vertical = bars.lines[2]
    first = points[0]
    assert np.allclose(horizontal.get_segments()[0][:, 0], 100 * np.array(first.accuracy_interval))
    assert np.allclose(vertical.get_segments()[0][:, 1], 100 * np.array(first.pm_k_interval))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    slope = np.polyfit([point.accuracy for point in points], [point.pm_k for point in points], 1)[0]
    assert labels == ["no drop", f"linear fit, slope {slope:.2f}", "as published", "a classifier, 95 % interval"]
    *numbers, key = (text.get_text() for text in axes.texts)
    assert numbers == ["1", "2", "3", "4", "5", "6"]
    assert key.splitlines() == [f"{number}  {point.name}" for number, point in enumerate(points, 1)]
    assert axes.get_ylabel() == "pm-10 (%)"


def test_figures_are_reproducible(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        paths = draw_stability(classifiers(47), tmp_path / folder, title="Many", k=10)
        assert [path.name for path in paths] == [f"accuracy_against_pm_10.{kind}" for kind in ("png", "pdf", "svg")]
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_one_classifier_without_intervals_is_enough(tmp_path: Path) -> None:
    assert draw_stability([Stability("one", 0.5, 0.5)], tmp_path, ["svg"], title="x", k=3)
    with pytest.raises(BadValue, match="needs a classifier"):
        draw_stability([], tmp_path, title="x", k=3)
