"""Figures of frame classifiers: accuracy against pm-k, as in figure 3 of Shankar et al. (2021)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jostle.errors import BadValue
from jostle.reporting.figures.style import BLACK, BLUE, FORMATS, ORANGE, SKY, canvas, letter, save

MOST_NAMES = 12  # more are listed in a table
LEAST_FOR_A_LINE = 3
Interval = tuple[float, float]


class Point(Protocol):
    """One classifier in the scatter plot."""

    @property
    def name(self) -> str: ...
    @property
    def accuracy(self) -> float: ...
    @property
    def pm_k(self) -> float: ...
    @property
    def accuracy_interval(self) -> Interval | None: ...
    @property
    def pm_k_interval(self) -> Interval | None: ...


def draw_stability(
    points: Sequence[Point],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    title: str,
    k: int,
    published: Sequence[Point] = (),
) -> list[Path]:
    """A point a classifier, with its intervals; dashed, where a classifier would be that no neighbour misleads.

    The line through the points is one of least squares, drawn for three and more.

    Args:
        published: drawn hollow, as printed.
    """
    if not points:
        raise BadValue("a figure of accuracy against pm-k needs a classifier")
    with canvas(4.8, 4.6) as (figure, (axes,)):
        reached = [100 * value for one in (*points, *published) for value in _reach(one)]
        low, high = max(0.0, min(reached) - 4), min(100.0, max(reached) + 4)
        axes.plot([low, high], [low, high], color=BLACK, linestyle="--", linewidth=1, label="no drop", zorder=1)
        x, y = (100 * np.array([getattr(one, what) for one in points]) for what in ("accuracy", "pm_k"))
        if len(points) >= LEAST_FOR_A_LINE and np.ptp(x) > 0:
            slope, begin = np.polyfit(x, y, 1)
            ends = np.array([x.min(), x.max()])
            label_text = f"linear fit, slope {slope:.2f}"
            axes.plot(ends, slope * ends + begin, color=ORANGE, linewidth=1.4, label=label_text, zorder=2)
        if published:
            axes.scatter(
                [100 * one.accuracy for one in published],
                [100 * one.pm_k for one in published],
                facecolors="none",
                edgecolors=BLACK,
                linewidths=0.8,
                marker="D",
                s=26,
                label="as published",
                zorder=4,
            )
        axes.errorbar(
            x,
            y,
            xerr=_bars(points, "accuracy"),
            yerr=_bars(points, "pm_k"),
            fmt="o",
            color=BLUE,
            ecolor=SKY,
            markersize=4.5,
            elinewidth=0.9,
            label="a classifier, 95 % interval",
            zorder=3,
        )
        if len(points) <= MOST_NAMES:
            _name(axes, points)
        axes.set(xlim=(low, high), ylim=(low, high), xlabel="Accuracy on single frames (%)", ylabel=f"pm-{k} (%)")
        axes.set_aspect("equal")
        axes.grid(visible=True, axis="both")
        axes.legend(fontsize=8, loc="upper left")
        letter(axes, title)
        return save(figure, folder, f"accuracy_against_pm_{k}", formats)


def _reach(one: Point) -> tuple[float, ...]:
    across, up = one.accuracy_interval, one.pm_k_interval
    return (one.accuracy, one.pm_k, *(across or ()), *(up or ()))


def _bars(points: Sequence[Point], what: str) -> Any:
    """(2, n): how far an interval reaches below and above; nothing where there is none."""
    bars = np.zeros((2, len(points)))
    for i, one in enumerate(points):
        value, interval = getattr(one, what), getattr(one, f"{what}_interval")
        if interval is not None:
            bars[:, i] = 100 * (value - interval[0]), 100 * (interval[1] - value)
    return bars.clip(min=0)


def _name(axes: Any, points: Sequence[Point]) -> None:
    """A number beside each point, and names in the corner that no point comes to, as neighbours only take away."""
    for number, one in enumerate(points, 1):
        axes.annotate(
            str(number),
            (100 * one.accuracy, 100 * one.pm_k),
            xytext=(-4, 4),
            textcoords="offset points",
            fontsize=8,
            ha="right",
            va="bottom",
            zorder=5,
        )
    key = "\n".join(f"{number}  {one.name}" for number, one in enumerate(points, 1))
    axes.text(0.98, 0.02, key, transform=axes.transAxes, fontsize=8, ha="right", va="bottom", zorder=5)
