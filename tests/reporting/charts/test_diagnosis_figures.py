"""DETAD's figures: what they are called, what they hold, and whether the colour-blind can read them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from jostle.core.schema import Mismatch, parse
from jostle.evaluation.results.record import CellDiagnosis
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS, SPLITS
from jostle.reporting.analysis.error_profile import ProfileSide, side_of
from jostle.reporting.charts.bars import COLUMN, STROKES, draw_splits
from jostle.reporting.charts.characteristics import MOST_BARS, draw_missed, draw_sensitivity
from jostle.reporting.charts.diagnosis import draw_clean_against_corrupted, draw_diagnosis
from jostle.reporting.charts.drawing import Shape
from jostle.reporting.charts.palette import SERIES

SHARES = dict(zip(ERROR_KINDS, (0.3, 0.2, 0.1, 0.2, 0.1, 0.1), strict=True))
BUCKETS = {"coverage": {"S": 0.5, "XS": 0.2, "XL": None}, "length": {"M": 0.6}}


def diagnosis(*, empty: bool = False) -> dict[str, Any]:
    shares = dict.fromkeys(ERROR_KINDS, None) if empty else SHARES
    return {
        "false_positives": {
            "profile": [{"split": i + 1, "count": 10, **shares} for i in range(SPLITS)],
            "totals": dict.fromkeys(ERROR_KINDS, 0.0 if empty else 5.0),
            "impact": dict.fromkeys(ERRORS, 0.0 if empty else 0.04),
        },
        "sensitivity": {"base": 0.0 if empty else 0.4} | ({} if empty else BUCKETS),
        "false_negatives": {"overall": 1.0 if empty else 0.3, **BUCKETS, "share": BUCKETS, "pairs": {}},
    }


def side(**changes: Any) -> ProfileSide:
    return side_of(parse(CellDiagnosis, diagnosis() | changes))


def words(shapes: list[Shape]) -> list[str]:
    return [shape.words for shape in shapes if shape.tag == "text"]


def test_three_figures_in_three_formats(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = draw_diagnosis(diagnosis(), tmp_path)
    names = ("false_positive_analysis", "sensitivity_analysis", "false_negative_analysis")
    assert [path.name for path in paths] == [f"{name}.{kind}" for name in names for kind in ("png", "pdf", "svg")]
    heads = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<svg "}
    assert all(path.read_bytes().startswith(heads[path.suffix]) for path in paths)


def test_empty_diagnosis_is_drawn(tmp_path: Path) -> None:
    assert draw_diagnosis(diagnosis(empty=True), tmp_path, ["svg"])
    (path,) = draw_clean_against_corrupted(
        diagnosis(), diagnosis(empty=True), tmp_path, ["svg"], names=("plain", "fog:3")
    )
    text = path.read_text(encoding="utf-8")
    assert path.name == "clean_against_corrupted.svg"
    assert "plain (left), fog:3 (right)" in text
    assert "100.0" in text  # missed without a detection


def test_splits_are_stacks_that_reach_the_top() -> None:
    shapes = list(draw_splits([("", side()), ("", side())]).shapes)
    parts = [one.attributes for one in shapes if one.tag == "rect" and one.hint]
    assert len(parts) == 2 * SPLITS * len(ERROR_KINDS)
    stacks = [parts[at : at + len(ERROR_KINDS)] for at in range(0, len(parts), len(ERROR_KINDS))]
    for stack in stacks:
        assert sum(part["height"] for part in stack) == pytest.approx(190)
        assert [part["height"] / 190 for part in stack] == pytest.approx([*SHARES.values()])
    ends = sorted((stack[0]["x"], stack[0]["x"] + stack[0]["width"]) for stack in stacks)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ends))
    assert ends[-1][1] <= COLUMN
    assert [text for text in words(shapes) if text.endswith("G")] == [f"{i}G" for i in range(1, SPLITS + 1)]


def test_profile_of_a_file_is_checked() -> None:
    stored = diagnosis()["false_positives"]
    with pytest.raises(Mismatch, match="has 9 splits, not 10"):
        side(false_positives=stored | {"profile": stored["profile"][1:]})
    stored["profile"][3]["background"] = 1e9
    with pytest.raises(Mismatch, match="not a share"):
        side(false_positives=stored)


def test_buckets_are_in_order_and_empty_ones_left_out() -> None:
    drawn = words(list(draw_sensitivity(side()).shapes))
    assert [text for text in drawn if text in ("XS", "S", "M", "XL")] == ["XS", "S", "M"]
    assert {"20.0", "50.0", "60.0", "40.0", "0.50", "1.25", "1.50"} <= {*drawn}  # 40.0 is that of all
    assert {"20.0", "50.0", "60.0", "30.0"} <= {*words(list(draw_missed(side()).shapes))}


def test_many_buckets_are_drawn_in_rows() -> None:
    many = {name: dict.fromkeys("0123456", 0.987) for name in ("context-size", "coverage", "length")}
    shapes = list(draw_missed(side(sensitivity={"base": 0.5} | many, false_negatives={"overall": 0.5} | many)).shapes)
    bars = [one.attributes for one in shapes if one.tag == "rect" and one.hint]
    rows = [[*row] for _, row in itertools.groupby(bars, lambda bar: bar["y"] + bar["height"])]
    assert [len(row) for row in rows] == [14, 7]
    assert len(rows[0]) <= MOST_BARS
    assert all(2 + bar["width"] >= 4 * 0.56 * 9 for bar in bars)  # numbers have room
    assert max(one.attributes["x"] for one in shapes if "x" in one.attributes) < COLUMN


# Simulation of colour blindness in linear light: matrices of Machado et al. (2009), severity 1.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}


def seen(kind: str, matrix: list[list[float]]) -> npt.NDArray[np.float64]:
    colour = SERIES[kind][0]
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = np.clip(np.array(matrix) @ linear, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("how", BLIND)
def test_kinds_differ_in_colour_or_hatching_for_all_readers(how: str) -> None:
    for one, other in itertools.combinations(ERROR_KINDS, 2):
        distance = np.abs(seen(one, BLIND[how]) - seen(other, BLIND[how])).max()
        assert distance > 0.15 or STROKES.get(one) != STROKES.get(other), (one, other)
    for one, other in itertools.pairwise(ERROR_KINDS):  # neighbours in a bar
        assert STROKES.get(one) != STROKES.get(other), (one, other)
