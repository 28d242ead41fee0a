"""Figures: all formats, reproducible bytes, and colours that colour-blind readers can distinguish."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from jostle.errors import BadValue, MissingExtra
from jostle.reporting.figures import style
from jostle.reporting.figures.detection import (
    ERRORS,
    OUTCOMES,
    draw_class_drops,
    draw_clean_against_corrupted,
    draw_diagnosis,
    draw_precision_recall,
    mean_curve,
)


def diagnosis(*, empty: bool = False) -> dict:
    shares = [0.3, 0.2, 0.1, 0.2, 0.1, 0.1]
    profile = [
        {"split": i + 1, "count": 10, **{name: None if empty else v for name, v in zip(OUTCOMES, shares, strict=True)}}
        for i in range(10)
    ]
    buckets = {"coverage": {"S": 0.5, "XS": 0.2, "XL": None}, "length": {"M": 0.6}}
    return {
        "false_positives": {"profile": profile, "impact": dict.fromkeys(ERRORS, 0.0 if empty else 0.04)},
        "sensitivity": {"base": 0.0 if empty else 0.4} | ({} if empty else buckets),
        "false_negatives": {"overall": 1.0 if empty else 0.3, **buckets, "share": buckets, "pairs": {}},
    }


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_diagnosis(diagnosis(), tmp_path_factory.mktemp("figures"))


def test_three_figures_in_three_formats(paths: list[Path]) -> None:
    names = ("false_positive_analysis", "sensitivity_analysis", "false_negative_analysis")
    assert [path.name for path in paths] == [f"{name}.{kind}" for name in names for kind in ("png", "pdf", "svg")]
    heads = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}
    assert all(path.read_bytes().startswith(heads[path.suffix]) for path in paths)


def test_figures_are_reproducible(paths: list[Path], tmp_path: Path) -> None:
    again = draw_diagnosis(diagnosis(), tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


def test_empty_diagnosis_is_drawn(tmp_path: Path) -> None:
    assert draw_diagnosis(diagnosis(empty=True), tmp_path, ["png"])
    assert draw_clean_against_corrupted(diagnosis(), diagnosis(empty=True), tmp_path, ["svg"], names=("plain", "fog:3"))


def test_class_drops_and_curves(tmp_path: Path) -> None:
    clean = {f"class {i}": 0.5 + i / 200 for i in range(60)}
    dropped = {name: value / 2 for name, value in clean.items()}
    assert draw_class_drops(clean, dropped, tmp_path, ["png"]) == [tmp_path / "class_drops.png"]
    curve = mean_curve([(np.array([0.5, 1.0]), np.array([1.0, 0.6])), (np.zeros(0), np.zeros(0))])
    assert curve[1][[0, 100]].tolist() == [0.5, 0.3]
    assert draw_precision_recall({"tIoU 0.5": curve}, tmp_path, ["pdf"]) == [tmp_path / "precision_recall.pdf"]
    with pytest.raises(BadValue, match="'extra' is in one of them only"):
        draw_class_drops(clean | {"extra": 0.1}, dropped, tmp_path)
    with pytest.raises(BadValue, match="written as png, pdf, svg, not 'gif'"):
        draw_precision_recall({"x": curve}, tmp_path, ["gif"])


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"jostle\[report\]"):
        draw_diagnosis(diagnosis(), tmp_path)


# Simulation of colour blindness in linear light: matrices of Machado et al. (2009), severity 1.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def simulate_colour_blindness(colour: str, matrix) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = np.clip(np.array(matrix) @ linear, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("kind", BLIND)
def test_outcomes_differ_in_colour_or_hatching_for_colour_blind_readers(kind: str) -> None:
    for one, other in itertools.combinations(OUTCOMES.values(), 2):
        distance = np.abs(
            simulate_colour_blindness(one.colour, BLIND[kind]) - simulate_colour_blindness(other.colour, BLIND[kind])
        ).max()
        assert distance > 0.15 or one.hatch != other.hatch, (one.label, other.label)
    paints = list(OUTCOMES.values())
    for one, other in itertools.pairwise(paints):  # neighbours in a bar differ in both
        assert (
            np.abs(
                simulate_colour_blindness(one.colour, BLIND[kind])
                - simulate_colour_blindness(other.colour, BLIND[kind])
            ).max()
            > 0.1
        )
        assert one.hatch != other.hatch
    assert style.FORMATS == ("png", "pdf", "svg")
