"""Precision against recall: curves inside their axes, and named."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.errors import BadValue
from jostle.evaluation.results.run_analysis import drops_between
from jostle.metrics.mean_ap import mean_curve
from jostle.reporting.charts.precision_recall import LEFT, SIDE, TOP, draw_precision_recall


def test_curves_lie_inside_the_axes_and_have_names() -> None:
    curve = mean_curve([(np.array([0.5, 1.0]), np.array([1.0, 0.6])), (np.zeros(0), np.zeros(0))])
    assert curve[1][[0, 100]].tolist() == [0.5, 0.3]
    drawing = draw_precision_recall({"tIoU 0.5": curve, "tIoU 0.7": curve})
    paths = [one for one in drawing.shapes if one.tag == "path"]
    assert [path.kind for path in paths] == ["line run0", "line run1"]
    assert paths[0].points[0] == (LEFT, TOP + SIDE / 2)
    assert paths[0].points[-1] == pytest.approx((LEFT + SIDE, TOP + 0.7 * SIDE))
    assert {"tIoU 0.5", "tIoU 0.7"} <= {one.words for one in drawing.shapes}
    with pytest.raises(BadValue, match="needs a curve"):
        draw_precision_recall({})


def test_drops_of_two_scores_need_the_same_classes() -> None:
    drops = drops_between({"a": 0.5, "b": 0.9, "c": 0.2}, {"a": 0.4, "b": 0.3, "c": 0.3})
    assert [drop.name for drop in drops] == ["b", "a", "c"]
    with pytest.raises(BadValue, match="'c' is in one of them only"):
        drops_between({"a": 0.5}, {"a": 0.4, "c": 0.3})
