"""Figures of scores: precision against recall, and what each class loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue
from jostle.reporting.figures.style import (
    BLACK,
    BLUE,
    FORMATS,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    canvas,
    letter,
    save,
)

Curve = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
LINES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (PINK, ":"), (SKY, "-"), (RED, "--"), (BLACK, "-."))
MOST_CLASSES = 40


def draw_precision_recall(curves: Mapping[str, Curve], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw one (recall, precision) curve for each name, distinct in colour and dashes."""
    if not curves:
        raise BadValue("a precision-recall figure needs a curve")
    with canvas(4.6, 3.8) as (figure, (axes,)):
        for i, (name, (recall, precision)) in enumerate(curves.items()):
            colour, dashes = LINES[i % len(LINES)]
            axes.plot(100 * recall, 100 * precision, color=colour, linestyle=dashes, linewidth=1.6, label=name)
        axes.set(xlim=(0, 100), ylim=(0, 101), xlabel="Recall (%)", ylabel="Precision (%)")
        axes.grid(visible=True, axis="both")
        axes.legend(fontsize=8.5)
        letter(axes, "Precision against recall")
        return save(figure, folder, "precision_recall", formats)


def draw_class_drops(
    clean: Mapping[str, float],
    corrupted: Mapping[str, float],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    names: tuple[str, str] = ("clean", "corrupted"),
) -> list[Path]:
    """Average precision of each class before and after, the greatest loss on top; at most 40 classes, the worst."""
    missing = sorted(set(clean) ^ set(corrupted))
    if missing:
        raise BadValue(f"both scores need the same classes; {missing[0]!r} is in one of them only")
    if not clean:
        raise BadValue("a figure of classes needs a class")
    worst = sorted(clean, key=lambda label: (corrupted[label] - clean[label], label))
    displayed = worst[:MOST_CLASSES]
    with canvas(6, 1.2 + 0.22 * len(displayed)) as (figure, (axes,)):
        for row, label in enumerate(displayed):
            before, after = 100 * clean[label], 100 * corrupted[label]
            axes.plot([before, after], [row, row], color=GREY, linewidth=2, zorder=1)
            axes.scatter(before, row, color=BLUE, marker="o", s=26, zorder=2, label=names[0] if not row else None)
            axes.scatter(after, row, color=ORANGE, marker="D", s=22, zorder=2, label=names[1] if not row else None)
            axes.annotate(
                f"{after - before:+z.1f}",
                (1, row),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(displayed)), displayed, fontsize=8)
        axes.set_ylim(len(displayed) - 0.4, -0.6)
        axes.set_xlim(0, 100)
        axes.set_xlabel("Average precision (%)")
        axes.grid(visible=True, axis="x")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8.5)
        letter(
            axes, "By class" if len(displayed) == len(worst) else f"The {len(displayed)} worst of {len(worst)} classes"
        )
        return save(figure, folder, "class_drops", formats)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean over classes of precision, each interpolated, at 101 levels of recall.

    >>> one = (np.array([0.5, 1.0]), np.array([1.0, 0.5]))
    >>> recall, precision = mean_curve([one])
    >>> precision[[0, 50, 51, 100]].tolist()
    [1.0, 1.0, 0.5, 0.5]
    """
    grid = np.linspace(0, 1, 101)
    made = np.zeros((len(curves), len(grid)))
    for row, (recall, precision) in zip(made, curves, strict=True):
        best = np.maximum.accumulate(precision[::-1])[::-1]
        place = np.searchsorted(recall, grid - 1e-12)
        reached = place < len(recall)
        row[reached] = best[place[reached]]
    return grid, made.mean(axis=0)
