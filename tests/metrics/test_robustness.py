from __future__ import annotations

import json

import numpy as np
import pytest

from jostle.errors import BadValue
from jostle.metrics.robustness import mean_corruption_error, robustness, split_cell

CELLS = {"p/fog:1": 0.5, "p/fog:2": 0.3, "p/rain:1": 0.7, "p/rain:2": 0.4, "p/rain:3": 0.1}


def test_robustness_measures_equal_their_formulas() -> None:
    result = robustness(0.8, CELLS)
    assert result.mean_corrupted == pytest.approx(0.4)
    assert result.relative == pytest.approx(0.5)
    assert result.absolute == pytest.approx(0.6)
    assert result.mpc == pytest.approx((0.4 + 0.4) / 2)
    assert result.rpc == pytest.approx(0.5)
    assert {name: round(means.mean, 6) for name, means in result.by_corruption.items()} == {"p/fog": 0.4, "p/rain": 0.4}
    assert {name: round(means.mean, 6) for name, means in result.by_severity.items()} == {1: 0.6, 2: 0.35, 3: 0.1}
    assert result.by_severity[1].relative == pytest.approx(0.75)
    assert result.by_severity[1].absolute == pytest.approx(0.8)
    assert (result.missing, result.above_clean, result.undefined, result.percent) == ((), (), 0, False)


def test_mpc_weights_corruptions_equally() -> None:
    result = robustness(1.0, {"fog:1": 0.2, "rain:1": 0.6, "rain:2": 0.6})
    assert result.mpc == pytest.approx(0.4)
    assert result.mean_corrupted == pytest.approx(1.4 / 3)


def test_percentages_and_fractions_give_the_same_result() -> None:
    fractions = robustness(0.8, CELLS)
    percentages = robustness(80, {name: 100 * value for name, value in CELLS.items()})
    assert percentages.mean_corrupted == pytest.approx(40)
    assert percentages.relative == pytest.approx(fractions.relative)
    assert percentages.absolute == pytest.approx(fractions.absolute)
    assert percentages.to_dict()["by_corruption"]["p/fog"]["mean"] == pytest.approx(0.4)
    assert percentages.to_dict()["cells"][0]["value"] == pytest.approx(0.5)
    assert robustness(0.9, {"fog:1": 0.5}, percent=True).absolute == pytest.approx(0.996)


def test_families_by_full_or_bare_name() -> None:
    result = robustness(0.8, CELLS, families={"fog": "weather", "p/rain": "weather", "snow": "unused"})
    assert list(result.by_family) == ["weather"]
    assert result.by_family["weather"].mean == pytest.approx(0.4)
    assert robustness(0.8, CELLS, families={"fog": "haze"}).by_family["haze"].cells == 2


def test_to_dict_has_the_documented_keys() -> None:
    content = json.loads(json.dumps(robustness(np.float64(0.8), CELLS, families={"fog": "haze"}).to_dict()))
    documented = "clean cells mean_corrupted relative_robustness absolute_robustness mpc rpc by_corruption by_severity"
    assert set(documented.split()) <= set(content)
    assert content["cells"][0]["cell"] == "p/fog:1"
    assert content["by_severity"]["3"]["mean"] == 0.1


@pytest.mark.parametrize("cell", ["clean", "fog:0", "", "fog:x", "a:b:1", ":1"])
def test_invalid_cell_names_are_refused(cell: str) -> None:
    with pytest.raises(BadValue, match="is not a corrupted cell; write \\[profile/\\]name:severity"):
        split_cell(cell)


@pytest.mark.parametrize(
    ("clean", "cells", "message"),
    [
        (0.5, {}, "no cells: give {spec: score}"),
        (0.5, {"fog:1": -0.1}, "fog:1: a score must be a fraction from 0 to 1, got -0.1"),
        (101, {"fog:1": 3}, "clean: a score must be a percentage from 0 to 100, got 101.0"),
        (0.5, {"fog:1": float("nan")}, "fog:1: a score must be finite, got nan; give None for a cell that is missing"),
        (float("inf"), {"fog:1": 0.1}, "clean: a score must be finite"),
        (0.5, {"fog:1": "0.3"}, "fog:1: a score must be a number or None, got '0.3'"),
    ],
)
def test_invalid_scores_are_refused(clean: float, cells: dict, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        robustness(clean, cells)


def test_corruption_error_divides_sums_of_errors() -> None:
    errors = {"fog:1": 0.1, "fog:2": 0.5, "rain:1": 0.3}
    alexnet = {"fog:1": 0.2, "fog:2": 0.6, "rain:1": 0.6, "snow:1": 0.0}
    result = mean_corruption_error(errors, alexnet, name="AlexNet", clean=0.1, baseline_clean=0.2)
    assert result.by_corruption == pytest.approx({"fog": 0.75, "rain": 0.5})  # not the mean of 0.5 and 0.833
    assert result.mce == pytest.approx(0.625)
    assert result.relative_by_corruption == pytest.approx({"fog": 1.0, "rain": 0.5})
    assert result.relative_mce == pytest.approx(0.75)
    assert mean_corruption_error(errors, alexnet, name="AlexNet").relative_mce is None
    assert json.loads(json.dumps(result.to_dict()))["baseline"] == "AlexNet"


def test_corruption_error_of_the_baseline_itself_is_one() -> None:
    alexnet = {f"{kind}:{severity}": 0.1 * severity for kind in ("fog", "rain") for severity in (1, 2, 3)}
    assert mean_corruption_error(alexnet, alexnet, name="AlexNet").mce == 1


def test_corruption_error_refuses_mixed_units() -> None:
    with pytest.raises(BadValue, match=r"baseline AlexNet up to 60\.0: one looks like a fraction, the other like a"):
        mean_corruption_error({"fog:1": 0.5}, {"fog:1": 60}, name="AlexNet")
