"""Robustness measures of three papers, computed from one table of scores by corruption and severity.

Mean corrupted score and relative robustness are those of THUMOS14-C (Zeng et al. 2024), absolute and relative
robustness those of UCF101-P (Schiappa et al. 2023), mPC and rPC those of Mini Kinetics-C (Yi et al. 2021).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.errors import BadValue
from jostle.metrics.metric import metric

_CELL = re.compile(r"(?P<corruption>[^:@+]+)(?::(?P<severity>\d+))?(?P<placement>@.+)?")
_CHAIN = re.compile(r"[^:@+]+:[1-9]\d*(\+[^:@+]+:[1-9]\d*)+(@.+)?")


@dataclass(frozen=True)
class CellValue:
    """One corruption at one severity.

    Attributes:
        cell: its spec, such as `thumos14-c/black_frame:1`.
        value: the score, or None if the cell is missing.
        relative: `value / clean`, or None where that has no meaning.
        absolute: `1 - (clean - value)`, in fractions.
        above_clean: whether it is better than clean.
    """

    cell: str
    corruption: str
    severity: int | None
    value: float | None
    relative: float | None
    absolute: float | None
    above_clean: bool


@dataclass(frozen=True)
class Means:
    """Means over a group of cells, each None unless every cell of the group has it."""

    mean: float | None
    relative: float | None
    absolute: float | None
    cells: int
    missing: int

    @classmethod
    def over(cls, cells: Iterable[CellValue]) -> Means:
        group = list(cells)
        missing = sum(cell.value is None for cell in group)
        return cls(
            _mean(cell.value for cell in group),
            _mean(cell.relative for cell in group),
            _mean(cell.absolute for cell in group),
            len(group),
            missing,
        )


@dataclass(frozen=True)
class Robustness:
    """Robustness of a model. Values are in the unit of the scores; ratios are fractions.

    A number is None ("n/a") where a cell it needs is missing, or where it would divide by a clean score that is 0 or
    missing: it is never infinite and never a mean over part of the cells.

    Attributes:
        clean: the score on clean data.
        cells: in the order given.
        mean_corrupted: mean over all cells.
        relative: mean of `cell / clean`.
        absolute: mean of `1 - (clean - cell)`, in fractions.
        mpc: mean over corruptions of the mean over severities.
        rpc: `mpc / clean`.
        by_corruption: means over the severities of each corruption.
        by_severity: means over the corruptions at each severity.
        by_family: means over the cells of each family of corruptions.
        missing: cells without a value.
        above_clean: cells better than clean, which is allowed but unusual.
        undefined: number of cells whose ratio to clean is undefined, excluded from every ratio.
        percent: whether the values are percentages.
    """

    clean: float | None
    cells: tuple[CellValue, ...]
    mean_corrupted: float | None
    relative: float | None
    absolute: float | None
    mpc: float | None
    rpc: float | None
    by_corruption: dict[str, Means]
    by_severity: dict[int, Means]
    by_family: dict[str, Means]
    missing: tuple[str, ...]
    above_clean: tuple[str, ...]
    undefined: int
    percent: bool

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, where all values are fractions, percentages divided by 100."""
        unit = 100.0 if self.percent else 1.0

        def fraction(value: float | None) -> float | None:
            return None if value is None else value / unit

        def table(groups: Mapping[Any, Means]) -> dict[str, Any]:
            return {str(name): vars(means) | {"mean": fraction(means.mean)} for name, means in groups.items()}

        return {
            "format": 1,
            "clean": fraction(self.clean),
            "cells": [
                {
                    "cell": cell.cell,
                    "value": fraction(cell.value),
                    "relative": cell.relative,
                    "absolute": cell.absolute,
                    "above_clean": cell.above_clean,
                }
                for cell in self.cells
            ],
            "mean_corrupted": fraction(self.mean_corrupted),
            "relative_robustness": self.relative,
            "absolute_robustness": self.absolute,
            "mpc": fraction(self.mpc),
            "rpc": self.rpc,
            "by_corruption": table(self.by_corruption),
            "by_severity": table(self.by_severity),
            "by_family": table(self.by_family),
            "missing": list(self.missing),
            "above_clean": list(self.above_clean),
            "undefined": self.undefined,
        }


@metric("robustness", task="robustness", cites="zeng2024")
def robustness(
    clean: float | None,
    cells: Mapping[str, float | None],
    *,
    families: Mapping[str, str] | None = None,
    percent: bool | None = None,
) -> Robustness:
    """The robustness numbers of one model on one benchmark.

    Args:
        clean: the score on clean data, None if there is none.
        cells: the score in each cell by its spec, None where it is missing. A cell written without a severity stands
            for all of them.
        families: the family of each corruption, by its spec without severity or by its bare name. Corruptions that
            are not named are in no family.
        percent: whether scores are percentages. By default they are if any is above 1.

    >>> found = robustness(0.6, {"fog:1": 0.5, "fog:2": 0.4, "rain:1": 0.6, "rain:2": 0.3})
    >>> f"{found.mean_corrupted:.2f} {found.relative:.2f} {found.absolute:.2f} {found.mpc:.2f} {found.rpc:.2f}"
    '0.45 0.75 0.85 0.45 0.75'
    >>> found.by_corruption["fog"].mean, robustness(0.0, {"fog:1": 0.5}).relative
    (0.45, None)
    """
    if not cells:
        raise BadValue("no cells: give {spec: score}, as in {'thumos14-c/black_frame:1': 0.53}")
    base = _check_score("clean", clean)
    scores = {name: _check_score(name, value) for name, value in cells.items()}
    unit = _detect_unit({"clean": base} | scores, percent)
    results = tuple(_build_cell(name, value, base, unit) for name, value in scores.items())
    whole = Means.over(results)
    by_corruption = {
        name: Means.over(group) for name, group in _group_cells(results, lambda cell: cell.corruption).items()
    }
    by_severity = {name: Means.over(group) for name, group in _group_cells(results, lambda cell: cell.severity).items()}
    mpc = _mean(means.mean for means in by_corruption.values())
    return Robustness(
        clean=base,
        cells=results,
        mean_corrupted=whole.mean,
        relative=whole.relative,
        absolute=whole.absolute,
        mpc=mpc,
        rpc=_divide(mpc, base),
        by_corruption=by_corruption,
        by_severity=dict(sorted(by_severity.items())),
        by_family=_by_family(results, families or {}),
        missing=tuple(cell.cell for cell in results if cell.value is None),
        above_clean=tuple(cell.cell for cell in results if cell.above_clean),
        undefined=sum(cell.value is not None and cell.relative is None for cell in results),
        percent=unit == 100,
    )


def split_cell(cell: str) -> tuple[str, int | None]:
    """Split a cell's spec into corruption and severity.

    >>> split_cell("thumos14-c/black_frame:1"), split_cell("fog"), split_cell("black_frame:1@at:50%x1")
    (('thumos14-c/black_frame', 1), ('fog', None), ('black_frame@at:50%x1', 1))
    """
    if isinstance(cell, str) and _CHAIN.fullmatch(cell):
        return cell, None  # several corruptions, which need not be equally severe
    match = _CELL.fullmatch(cell) if isinstance(cell, str) else None
    if not match or cell == "clean" or match["severity"] == "0":
        raise BadValue(
            f"{cell!r} is not a corrupted cell; write [profile/]name:severity with a severity from 1, "
            "and give the clean score by itself"
        )
    severity = int(match["severity"]) if match["severity"] else None
    return match["corruption"] + (match["placement"] or ""), severity


def _build_cell(name: str, value: float | None, clean: float | None, unit: float) -> CellValue:
    corruption, severity = split_cell(name)
    absolute = 1 - (clean - value) / unit if value is not None and clean is not None else None
    above = value is not None and clean is not None and value > clean
    return CellValue(name, corruption, severity, value, _divide(value, clean), absolute, above)


def _divide(value: float | None, clean: float | None) -> float | None:
    """Return the ratio, or None if it is undefined or infinite."""
    ratio = value / clean if value is not None and clean else math.nan
    return ratio if math.isfinite(ratio) else None


def _check_score(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise BadValue(f"{name}: a score must be a number or None, got {value!r}")
    if not math.isfinite(value):
        raise BadValue(
            f"{name}: a score must be finite, got {value}; give None for a cell that is missing", fault="F91"
        )
    return float(value)


def _detect_unit(scores: Mapping[str, float | None], percent: bool | None) -> float:
    known = {name: value for name, value in scores.items() if value is not None}
    unit = 100.0 if percent or (percent is None and any(value > 1 for value in known.values())) else 1.0
    for name, value in known.items():
        if not 0 <= value <= unit:
            kind = "a percentage from 0 to 100" if unit == 100 else "a fraction from 0 to 1"
            raise BadValue(f"{name}: a score must be {kind}, got {value}")
    return unit


def _group_cells(cells: Iterable[CellValue], key: Any) -> dict[Any, list[CellValue]]:
    groups: dict[Any, list[CellValue]] = {}
    for cell in cells:
        name = key(cell)
        if name is not None:
            groups.setdefault(name, []).append(cell)
    return groups


def _by_family(cells: Iterable[CellValue], families: Mapping[str, str]) -> dict[str, Means]:
    def family(cell: CellValue) -> str | None:
        return families.get(cell.corruption) or families.get(cell.corruption.rpartition("/")[2])

    return {name: Means.over(group) for name, group in _group_cells(cells, family).items()}


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean, or None if a value is missing or there are none."""
    known = list(values)
    whole = [value for value in known if value is not None]
    return math.fsum(whole) / len(whole) if whole and len(whole) == len(known) else None
