"""The shelf of metrics: what each measures, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, TypeVar

from jostle.core.registry import Registry
from jostle.errors import BadValue, JostleError

F = TypeVar("F", bound=Callable[..., Any])
Task = Literal["detection", "proposals", "recognition", "frames", "objects", "robustness"]


@dataclass(frozen=True)
class Metric:
    """One number and how to get it.

    Attributes:
        task: what kind of predictions it is for.
        compute: the function; its docstring has the formula.
        higher_is_better: which way is better.
        cites: key of the reference.
    """

    name: str
    task: Task
    compute: Callable[..., Any]
    higher_is_better: bool
    cites: str
    summary: str


metrics: Registry[Metric] = Registry("metric", "jostle.metrics")


def metric(name: str, *, task: Task, cites: str, higher_is_better: bool = True) -> Callable[[F], F]:
    """Register the decorated function, which stays as it is."""

    def register(function: F) -> F:
        summary = (function.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        metrics.add(name, Metric(name, task, function, higher_is_better, cites, summary))
        return function

    return register


def own_value(name: str, *given: Any) -> float:
    """What a metric of somebody's own gives for a cell: of recognition for scores (N, C) and classes (N,), of detection
    for `Predictions` and `Truth`.

    Raises:
        BadValue: if it fails, or does not give a number.
    """
    try:
        value = metrics[name].compute(*given)
    except JostleError:
        raise
    except Exception as error:
        raise BadValue(f"metric {name} failed ({type(error).__name__}: {error})") from error
    if not isinstance(value, SupportsFloat) or not math.isfinite(float(value)):
        raise BadValue(f"metric {name} gave {value!r}; a cell is measured by one finite number, such as a share")
    return float(value)
