"""The shelf of metrics: what each measures, and which way is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from jostle.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])
Task = Literal["detection", "proposals", "recognition", "frames", "robustness"]


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
