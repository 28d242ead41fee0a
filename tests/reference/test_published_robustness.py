"""Robustness measures of published cells against the published means."""

from __future__ import annotations

import pytest

from helpers.published_slips import SPATIAL, TEMPORAL
from jostle.metrics.robustness import robustness
from jostle.reporting.published.table import PublishedRow, cells_of, published


def rows_of(name: str, benchmark: str) -> dict[tuple[str, ...], PublishedRow]:
    rows = published[name].rows
    return {tuple(row.labels.values()): row for row in rows if row.labels["benchmark"] == benchmark}


@pytest.mark.parametrize(("benchmark", "means", "cells"), [("thumos14-c", "1", "c"), ("activitynet-c", "2", "d")])
def test_temporal_corruptions(benchmark: str, means: str, cells: str) -> None:
    """Tolerance 0.01, as all values are printed to two decimals; errors in the paper are as large."""
    printed = rows_of(f"thumos14-c/table-{means}", benchmark)
    names = cells_of(published[f"thumos14-c/table-{cells}"])
    assert len(names) == 15
    held = rows_of(f"thumos14-c/table-{cells}", benchmark)
    assert len(held) == {"thumos14-c": 8, "activitynet-c": 5}[benchmark]
    for key, row in held.items():
        clean, expected = row.values["clean"], printed[key].values
        result = robustness(clean, {f"thumos14-c/{name}": row.values[name] for name in names})
        assert expected["clean"] == clean
        assert result.mean_corrupted == pytest.approx(expected["corrupted"], abs=0.01 + 1e-9), key
        assert result.relative is not None
        assert 100 * result.relative == pytest.approx(expected["relative"], abs=0.01 + 1e-9), key
        assert result.relative == pytest.approx(
            result.mean_corrupted / clean, abs=1e-12
        )  # the mean of ratios equals the ratio of means
        assert result.mpc == pytest.approx(result.mean_corrupted, abs=1e-12)
        assert set(result.by_severity) == {1, 2, 3}


@pytest.mark.parametrize("benchmark", ["kinetics-c", "ssv2-c"])
def test_mini_benchmarks(benchmark: str) -> None:
    """Tolerance 0.1, as the averaged and divided values are printed to one decimal."""
    families = dict.fromkeys(SPATIAL, "spatial") | dict.fromkeys(TEMPORAL, "temporal")
    wrong = set()
    for key, row in rows_of("mini-kinetics-c/table-1", benchmark).items():
        cells = {name: row.values[name] for name in families}
        result = robustness(row.values["clean"], cells, families=families)
        assert result.mpc is not None
        assert result.rpc is not None
        parts = rows_of("mini-kinetics-c/table-2", benchmark)[key].values
        for family in ("spatial", "temporal"):
            assert result.by_family[family].mean == pytest.approx(parts[f"{family}.mpc"], abs=0.1), key
        if abs(result.mpc - row.values["mpc"]) > 0.1:
            wrong.add(row.labels["model"])
            assert abs(result.mpc - row.values["mpc"]) > 1
        else:
            assert 100 * result.rpc == pytest.approx(row.values["rpc"], abs=0.15), key
    six = {"S3D", "I3D", "3D ResNet-18", "3D ResNet-50", "SlowFast 8x4", "X3D-M"}
    assert wrong == (set() if benchmark == "kinetics-c" else six)
