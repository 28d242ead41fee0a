"""Robustness numbers from the cells that papers print, against the means that they print."""

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
    """To 0.01, since cells, clean scores and means are printed to two decimals; the paper's own slips are as large."""
    printed = rows_of(f"thumos14-c/table-{means}", benchmark)
    names = cells_of(published[f"thumos14-c/table-{cells}"])
    assert len(names) == 15
    held = rows_of(f"thumos14-c/table-{cells}", benchmark)
    assert len(held) == {"thumos14-c": 8, "activitynet-c": 5}[benchmark]
    for key, row in held.items():
        clean, wanted = row.values["clean"], printed[key].values
        found = robustness(clean, {f"thumos14-c/{name}": row.values[name] for name in names})
        assert wanted["clean"] == clean
        assert found.mean_corrupted == pytest.approx(wanted["corrupted"], abs=0.01 + 1e-9), key
        assert found.relative is not None
        assert 100 * found.relative == pytest.approx(wanted["relative"], abs=0.01 + 1e-9), key
        assert found.relative == pytest.approx(found.mean_corrupted / clean, abs=1e-12)  # the order does not matter
        assert found.mpc == pytest.approx(found.mean_corrupted, abs=1e-12)
        assert set(found.by_severity) == {1, 2, 3}


@pytest.mark.parametrize("benchmark", ["kinetics-c", "ssv2-c"])
def test_mini_benchmarks(benchmark: str) -> None:
    """To 0.1: what is averaged and divided was printed to one decimal."""
    families = dict.fromkeys(SPATIAL, "spatial") | dict.fromkeys(TEMPORAL, "temporal")
    wrong = set()
    for key, row in rows_of("mini-kinetics-c/table-1", benchmark).items():
        cells = {name: row.values[name] for name in families}
        found = robustness(row.values["clean"], cells, families=families)
        assert found.mpc is not None
        assert found.rpc is not None
        parts = rows_of("mini-kinetics-c/table-2", benchmark)[key].values
        for family in ("spatial", "temporal"):
            assert found.by_family[family].mean == pytest.approx(parts[f"{family}.mpc"], abs=0.1), key
        if abs(found.mpc - row.values["mpc"]) > 0.1:
            wrong.add(row.labels["model"])
            assert abs(found.mpc - row.values["mpc"]) > 1
        else:
            assert 100 * found.rpc == pytest.approx(row.values["rpc"], abs=0.15), key
    six = {"S3D", "I3D", "3D ResNet-18", "3D ResNet-50", "SlowFast 8x4", "X3D-M"}
    assert wrong == (set() if benchmark == "kinetics-c" else six)
