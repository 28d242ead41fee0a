"""Corruption error against a named baseline: mCE and relative mCE (Hendrycks and Dietterich, 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.errors import BadValue
from jostle.metrics.metric import metric
from jostle.metrics.robustness import split_cell


@dataclass(frozen=True)
class CorruptionError:
    """Errors under corruption relative to a baseline's; below 1 is better than the baseline.

    Attributes:
        baseline: its name, without which the numbers are meaningless.
        mce: mean of `by_corruption`; None if a cell is missing.
        by_corruption: errors of a corruption over the baseline's, each summed over severities first.
        relative_mce: the same with clean errors subtracted; None unless both clean errors are given.
        relative_by_corruption: the values behind `relative_mce`.
        missing: cells without an error; the means need all of them.
    """

    baseline: str
    mce: float | None
    by_corruption: dict[str, float | None]
    relative_mce: float | None
    relative_by_corruption: dict[str, float | None]
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON; ratios are fractions."""
        return {"format": 1, **vars(self), "missing": list(self.missing)}


@metric("mce", task="robustness", cites="hendrycks2019", higher_is_better=False)
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
    return CorruptionError(name, _mean(ordinary), ordinary, _mean(relative), relative, missing)


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


def _mean(ratios: Mapping[str, float | None]) -> float | None:
    known = [ratio for ratio in ratios.values() if ratio is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(ratios) else None
