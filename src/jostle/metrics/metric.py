"""Registry of metrics: what each measures, and whether higher is better."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, TypeVar

from jostle.core.registry import Registry
from jostle.errors import BadValue, JostleError

F = TypeVar("F", bound=Callable[..., Any])
Task = Literal["detection", "proposals", "recognition", "frames", "objects", "questions", "moments", "robustness"]


@dataclass(frozen=True)
class Metric:
    """A registered metric and its properties."""

    name: str
    task: Task  # kind of predictions that it is for
    compute: Callable[..., Any]  # the function; its docstring has the formula
    higher_is_better: bool  # whether a higher value is better
    cites: str  # key of the reference
    summary: str


metrics: Registry[Metric] = Registry("metric", "jostle.metrics")


def metric(name: str, *, task: Task, cites: str = "", higher_is_better: bool = True) -> Callable[[F], F]:
    """Register the decorated function as a metric and return it unchanged."""

    def register(function: F) -> F:
        summary = (function.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        metrics.add(name, Metric(name, task, function, higher_is_better, cites, summary))
        return function

    return register


def compute_custom_metric(name: str, *arguments: Any) -> float:
    """Compute a user's metric for a cell.

    Args:
        arguments: for recognition scores (N, C) and classes (N,), for detection `Predictions` and `Truth`.
    """
    try:
        value = metrics[name].compute(*arguments)
    except JostleError:
        raise
    except Exception as error:
        raise BadValue(f"metric {name} failed ({type(error).__name__}: {error})") from error
    if not isinstance(value, SupportsFloat) or not math.isfinite(float(value)):
        raise BadValue(f"metric {name} returned {value!r}; it must return one finite number")
    return float(value)
