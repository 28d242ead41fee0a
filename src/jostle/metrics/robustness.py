"""Robustness measures of four papers, computed from one table of scores by corruption and severity.

Mean corrupted score and relative robustness are those of THUMOS14-C (Zeng et al. 2024), absolute and relative
robustness those of UCF101-P (Schiappa et al. 2023), mPC and rPC those of Mini Kinetics-C (Yi et al. 2021).
Corruption error against a named baseline, mCE and relative mCE, is that of ImageNet-C (Hendrycks and Dietterich 2019).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.errors import BadValue
from jostle.metrics.metric import statistic

_CELL = re.compile(r"(?P<corruption>[^:@+]+)(?::(?P<severity>\d+))?(?P<placement>@.+)?")
_CHAIN = re.compile(r"[^:@+]+:[1-9]\d*(\+[^:@+]+:[1-9]\d*)+(@.+)?")


@dataclass(frozen=True)
class CellValue:
    """One corruption at one severity."""

    cell: str  # its spec, such as `thumos14-c/black_frame:1`
    corruption: str
    severity: int | None
    value: float | None  # the score, or None if the cell is missing
    relative: float | None  # `value / clean`, or None where that has no meaning
    absolute: float | None  # `1 - (clean - value)`, in fractions
    above_clean: bool  # whether it is better than clean


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
class Robustness(Result):
    """Robustness of a model. Values are in the unit of the scores; ratios are fractions.

    A number is None ("n/a") where a cell it needs is missing, or where it would divide by a clean score that is 0 or
    missing: it is never infinite and never a mean over part of the cells.
    """

    clean: float | None  # the score on clean data
    cells: tuple[CellValue, ...]  # in the order given
    mean_corrupted: float | None  # mean over all cells
    relative: float | None  # mean of `cell / clean`
    absolute: float | None  # mean of `1 - (clean - cell)`, in fractions
    mpc: float | None  # mean over corruptions of the mean over severities
    rpc: float | None  # `mpc / clean`
    by_corruption: dict[str, Means]  # means over the severities of each corruption
    by_severity: dict[int, Means]  # means over the corruptions at each severity
    by_family: dict[str, Means]  # means over the cells of each family of corruptions
    missing: tuple[str, ...]  # cells without a value
    above_clean: tuple[str, ...]  # cells better than clean, which is allowed but unusual
    undefined: int  # number of cells whose ratio to clean is undefined, excluded from every ratio
    percent: bool  # whether the values are percentages

    def tables(self) -> tuple[Table, ...]:
        """Return the clean score, every cell, and the means."""
        unit = 100.0 if self.percent else 1.0

        def fraction(value: float | None) -> float | None:
            return None if value is None else value / unit

        rows = [(cell.cell, fraction(cell.value), cell.relative) for cell in self.cells]
        ends = (("clean", fraction(self.clean), ""), ("mean corrupted", fraction(self.mean_corrupted), self.relative))
        columns = (Column("cell"), Column("score", "percent"), Column("of clean", "percent"))
        return (Table("Robustness", columns, (ends[0], *rows, ends[1])),)

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


@statistic("robustness", task="robustness", cites="zeng2024")
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


@dataclass(frozen=True)
class CorruptionError(Result):
    """Errors under corruption relative to a baseline's; below 1 is better than the baseline."""

    baseline: str  # its name, without which the numbers are meaningless
    mce: float | None  # mean of `by_corruption`; None if a cell is missing
    # errors of a corruption over the baseline's, each summed over severities first
    by_corruption: dict[str, float | None]
    relative_mce: float | None  # the same with clean errors subtracted; None unless both clean errors are given
    relative_by_corruption: dict[str, float | None]  # the values behind `relative_mce`
    missing: tuple[str, ...]  # cells without an error; the means need all of them

    def tables(self) -> tuple[Table, ...]:
        """Return the errors by corruption over the baseline's, and their means."""
        columns = (Column("corruption"), Column("CE", "percent"), Column("relative CE", "percent"))
        rows = [(name, value, self.relative_by_corruption.get(name)) for name, value in self.by_corruption.items()]
        rows.append(("mean", self.mce, self.relative_mce))
        return (Table(f"Errors over those of {self.baseline}", columns, tuple(rows)),)


@statistic("mce", task="robustness", cites="hendrycks2019", higher_is_better=False)
def mean_corruption_error(
    errors: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
    *,
    name: str,
    clean: float | None = None,
    baseline_clean: float | None = None,
) -> CorruptionError:
    """Errors of each corruption over the baseline's, then the mean over corruptions; never averaged before dividing.

    CE_c = sum_s E(c, s) / sum_s B(c, s); relative CE_c = sum_s (E(c, s) - E_clean) / sum_s (B(c, s) - B_clean).

    Args:
        errors: the error in each cell by its spec, None where it is missing.
        baseline: the baseline's errors, at least for the same cells and in the same unit.
        name: what the baseline is called, such as `AlexNet`.
        clean: the model's error on clean data; with `baseline_clean` it gives relative mCE.

    >>> found = mean_corruption_error({"fog:1": 0.2, "fog:2": 0.4}, {"fog:1": 0.4, "fog:2": 0.6}, name="AlexNet")
    >>> f"{found.mce:.1f}"
    '0.6'
    """
    if not errors:
        raise BadValue("no cells: give {spec: error}, as in {'imagenet-c/fog:1': 0.31}")
    severities: dict[str, list[str]] = {}
    for cell in errors:
        severities.setdefault(split_cell(cell)[0], []).append(cell)
    known = {cell: _check_error(cell, value, "") for cell, value in errors.items()}
    reference = {}
    for cell in errors:
        if baseline.get(cell) is None:
            raise BadValue(f"{cell}: baseline {name} has no error there, so nothing to divide by", fault="F92")
        reference[cell] = float(_check_error(cell, baseline[cell], f" of baseline {name}") or 0)
    _check_same_unit(known, reference, name)
    ordinary = {c: _ratio(c, cells, known, reference, name, 0.0, 0.0) for c, cells in severities.items()}
    relative = {}
    if clean is not None and baseline_clean is not None:
        own, other = _check_error("clean", clean, ""), _check_error("clean", baseline_clean, f" of baseline {name}")
        relative = {
            c: _ratio(c, cells, known, reference, name, own or 0.0, other or 0.0) for c, cells in severities.items()
        }
    missing = tuple(cell for cell, value in known.items() if value is None)
    return CorruptionError(name, _mean(ordinary.values()), ordinary, _mean(relative.values()), relative, missing)


def _ratio(
    corruption: str,
    cells: list[str],
    errors: Mapping[str, float | None],
    baseline: Mapping[str, float],
    name: str,
    clean: float,
    baseline_clean: float,
) -> float | None:
    below = math.fsum(baseline[cell] - baseline_clean for cell in cells)
    if below == 0:
        missing = "error above clean" if baseline_clean else "error"
        raise BadValue(f"{corruption}: baseline {name} has no {missing} there, so nothing to divide by", fault="F92")
    above = [value - clean for value in (errors[cell] for cell in cells) if value is not None]
    return math.fsum(above) / below if len(above) == len(cells) else None


def _check_error(cell: str, value: float | None, whose: str) -> float | None:
    if value is None:
        return None
    if not math.isfinite(value) or not 0 <= value <= 100:
        raise BadValue(f"{cell}: an error{whose} must be a fraction or a percentage from 0 to 100, got {value}")
    return float(value)


def _check_same_unit(errors: Mapping[str, float | None], baseline: Mapping[str, float], name: str) -> None:
    own = max((value for value in errors.values() if value is not None), default=None)
    other = max(baseline.values())
    if own is not None and other and own and (own > 1) != (other > 1) and not 0.02 < own / other < 50:
        raise BadValue(
            f"errors go up to {own} and those of baseline {name} up to {other}: one looks like a fraction, the other "
            "like a percentage; give both in one unit"
        )
