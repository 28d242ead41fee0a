"""Budget of a gate: conditions on a run, from a TOML file or a mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.formatting import percent
from jostle.core.settings import make_settings, read_toml
from jostle.errors import BadValue
from jostle.evaluation.results.run_analysis import LEVEL

METRICS = ("clean", "mean_corrupted", "relative_robustness", "cell:SPEC", "family:NAME", "class:NAME")


@dataclass(frozen=True)
class Condition:
    """A condition on a run: a metric, and the least value of it or the greatest loss against a reference run."""

    metric: str  # one of `METRICS`
    at_least: float | None = None  # fraction
    at_most_below_reference: float | None = None  # fraction: 0.02 allows a loss of two points
    level: float = LEVEL  # of the interval that decides
    name: str = ""  # in tables and reports; by default the metric and the limit

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str):
            raise BadValue(f"the metric of a condition is its name, not {repr(self.metric)[:80]}", fault="F59")
        kind, _, part = self.metric.partition(":")
        if self.metric not in METRICS[:3] and (kind not in ("cell", "family", "class") or not part):
            raise BadValue(f"metric is one of {', '.join(METRICS)}, not {self.metric[:80]!r}", fault="F59")
        for field in ("at_least", "at_most_below_reference", "level"):
            value = getattr(self, field)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise BadValue(f"{self.metric}: {field} must be a number, not {value!r}", fault="F59")
        if (self.at_least is None) == (self.at_most_below_reference is None):
            raise BadValue(f"{self.metric}: give at_least or at_most_below_reference, one of the two", fault="F59")
        if not 0.5 <= self.level < 1:
            raise BadValue(f"{self.metric}: level must be at least 0.5 and below 1, not {self.level}", fault="F59")
        limit = self.at_least if self.at_least is not None else self.at_most_below_reference
        assert limit is not None
        if not 0 <= limit <= 1 and not (self.metric == METRICS[2] and self.at_least is not None and limit > 0):
            raise BadValue(f"{self.metric}: limits are fractions from 0 to 1, not {limit:g}", fault="F59")

    @property
    def against_reference(self) -> bool:
        """Whether it needs a reference run."""
        return self.at_most_below_reference is not None

    @property
    def limit(self) -> float:
        """Least value that is allowed; of a difference from the reference where it is against one."""
        return self.at_least if self.at_least is not None else -(self.at_most_below_reference or 0.0)

    @property
    def title(self) -> str:
        """Name in tables and reports, on one line."""
        if name := _on_one_line(self.name):
            return name
        metric = _on_one_line(self.metric)
        if self.against_reference:
            return f"{metric}, at most {percent(-self.limit, 1)} points below the reference"
        return f"{metric}, at least {percent(self.limit, 1)} %"


def _on_one_line(text: str) -> str:
    """Return text without line breaks and other signs that steer a terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


@dataclass(frozen=True)
class Budget:
    """Conditions of a gate, as a budget file lists them."""

    condition: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if not self.condition:
            raise BadValue("a budget needs at least one [[condition]]", fault="F59")
        titles = [one.title for one in self.condition]
        if len(set(titles)) < len(titles):
            twice = next(title for title in titles if titles.count(title) > 1)
            raise BadValue(f"the condition {twice!r} is there twice; name one of them otherwise", fault="F59")


# A fall of the clean score can raise relative robustness, so both scores that it is a ratio of are checked.
AGAINST_REFERENCE = Budget(
    (Condition("clean", at_most_below_reference=0.02), Condition("mean_corrupted", at_most_below_reference=0.02))
)


def read_budget(source: str | Path | Mapping[str, Any] | Budget | None) -> Budget | None:
    """Read the conditions of a gate from a TOML file or a mapping of the same form."""
    if source is None or isinstance(source, Budget):
        return source
    if isinstance(source, Mapping):
        return make_settings(Budget, source, where="budget")
    if not isinstance(source, str | os.PathLike):
        raise BadValue(f"a budget is a TOML file or a mapping with 'condition', not {repr(source)[:80]}", fault="F59")
    try:
        return make_settings(Budget, read_toml(source), where=str(source))
    except BadValue as error:
        message = str(error)
        raise BadValue(message if str(source) in message else f"{source}: {message}", fault=error.fault) from None
