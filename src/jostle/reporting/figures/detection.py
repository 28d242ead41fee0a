"""Figures of detectors: precision against recall, what each class loses, and those of DETAD (Alwassel et al., 2018).

DETAD's are drawn from the JSON of a diagnosis, so that one from disk will do, also clean against corrupted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    YELLOW,
    Paint,
    canvas,
    letter,
    save,
    slanted,
    value_on_top,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Json = Mapping[str, Any]

OUTCOMES = {
    "true_positive": Paint("True positive", GREEN),
    "double_detection": Paint("Double detection", SKY, "///"),
    "wrong_label": Paint("Wrong label", BLUE, "..."),
    "localization": Paint("Localization", ORANGE, "\\\\\\"),
    "confusion": Paint("Confusion", RED, "xxx"),
    "background": Paint("Background", GREY),
}
ERRORS = {name: paint for name, paint in OUTCOMES.items() if name != "true_positive"}
CHARACTERISTICS = {
    "context-size": Paint("Context size", SKY),
    "context-distance": Paint("Context distance", PINK),
    "agreement": Paint("Agreement", YELLOW),
    "coverage": Paint("Coverage", BLUE),
    "length": Paint("Length", ORANGE),
    "num-instances": Paint("Instances", GREEN),
}
BUCKETS = (*"0123456", "XW", "W", "XS", "S", "N", "M", "F", "Inf", "L", "XL", "H", "XH")
# Neither colour means a kind of error in the panel beside it.
CLEAN, CORRUPTED = Paint("clean", BLACK), Paint("corrupted", PINK, "///")


def draw_diagnosis(diagnosis: Json, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the three figures of DETAD; the paths of the files."""
    return [
        *draw_false_positives(diagnosis, folder, formats),
        *draw_sensitivity(diagnosis, folder, formats),
        *draw_false_negatives(diagnosis, folder, formats),
    ]


def draw_false_positives(diagnosis: Json, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The profile of the top-10G predictions, and what each kind of error costs."""
    facts = diagnosis["false_positives"]
    with canvas(9, 3.6, (1.7, 1)) as (figure, (left, right)):
        _draw_profile(left, facts["profile"], 0, 1)
        left.set_ylabel("Share of predictions (%)")
        letter(left, "False-positive profile")
        handles, labels = left.get_legend_handles_labels()
        left.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8.5)
        _draw_impact(right, {"": facts["impact"]}, (None,))
        letter(right, "Gain if a kind of error were gone")
        return save(figure, folder, "false_positive_analysis", formats)


def draw_sensitivity(diagnosis: Json, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Mean AP_N on the instances of each bucket, and its spread relative to all of them."""
    facts = diagnosis["sensitivity"]
    groups = _groups(facts)
    with canvas(10, 3.6, (max(sum(len(b) for b in groups.values()), 6), 7)) as (figure, (left, right)):
        _draw_groups(left, groups)
        _draw_level(left, facts["base"], digits=2)
        left.set_ylim(0, 100)
        left.set_ylabel("Average mAP$_N$ (%)")
        letter(left, "Sensitivity by characteristic")
        _draw_spread(right, groups, facts["base"])
        letter(right, "Relative to all instances")
        return save(figure, folder, "sensitivity_analysis", formats)


def draw_false_negatives(diagnosis: Json, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The share of instances that are missed, by bucket."""
    facts = diagnosis["false_negatives"]
    groups = _groups({name: facts[name] for name in CHARACTERISTICS if name in facts})
    with canvas(8, 3.6) as (figure, (axes,)):
        _draw_groups(axes, groups)
        _draw_level(axes, facts["overall"], digits=1)
        axes.set_ylim(0, 110)
        axes.set_yticks(range(0, 101, 20))
        axes.set_ylabel("Missed instances (%)")
        letter(axes, "False negatives by characteristic")
        return save(figure, folder, "false_negative_analysis", formats)


def draw_clean_against_corrupted(
    clean: Json,
    corrupted: Json,
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    names: tuple[str, str] = ("clean", "corrupted"),
) -> list[Path]:
    """Two profiles side by side, what each kind of error costs in both, and what is missed in both."""
    paints = tuple(Paint(name, p.colour, p.hatch) for name, p in zip(names, (CLEAN, CORRUPTED), strict=True))
    with canvas(11, 3.8, (2, 1.3, 1)) as (figure, (left, middle, right)):
        for i, facts in enumerate((clean, corrupted)):
            _draw_profile(left, facts["false_positives"]["profile"], (i - 0.5) * 0.44, 0.4, legend=i == 0)
        left.set_ylabel("Share of predictions (%)")
        letter(left, f"Profile: {names[0]} (left bars), {names[1]} (right bars)")
        left.legend(
            *(part[::-1] for part in left.get_legend_handles_labels()),
            loc="upper left",
            bbox_to_anchor=(1, 1),
            fontsize=8,
        )
        _draw_impact(
            middle,
            {p.label: d["false_positives"]["impact"] for p, d in zip(paints, (clean, corrupted), strict=True)},
            paints,
        )
        letter(middle, "Gain if a kind of error were gone")
        middle.legend(fontsize=8)
        for i, (paint, facts) in enumerate(zip(paints, (clean, corrupted), strict=True)):
            missed = 100 * facts["false_negatives"]["overall"]
            right.bar(i, missed, 0.6, **paint.fill())
            value_on_top(right, i, missed, f"{missed:z.1f}")
        right.set_xticks(range(2), [paint.label for paint in paints])
        right.set_ylim(0, 110)
        right.set_ylabel("Missed instances (%)")
        letter(right, "False negatives")
        return save(figure, folder, "clean_against_corrupted", formats)


def _draw_profile(axes: Axes, profile: Sequence[Json], shift: float, width: float, *, legend: bool = True) -> None:
    places = [split["split"] + shift for split in profile]
    below = [0.0] * len(profile)
    for name, paint in OUTCOMES.items():
        heights = [100 * (split[name] or 0) for split in profile]
        axes.bar(places, heights, width, bottom=below, label=paint.label if legend else None, **paint.fill())
        below = [a + b for a, b in zip(below, heights, strict=True)]
    axes.set_xticks([split["split"] for split in profile], [f"{split['split']}G" for split in profile])
    axes.set_xlabel("Top predictions, in units of the number of instances")
    axes.set_ylim(0, 100)
    axes.margins(x=0.01)


def _draw_impact(axes: Axes, impacts: Mapping[str, Json], paints: Sequence[Paint | None]) -> None:
    width = 0.8 / len(impacts)
    highest = 0.0
    for i, (impact, paint) in enumerate(zip(impacts.values(), paints, strict=True)):
        for j, (name, own) in enumerate(ERRORS.items()):
            value = 100 * (impact[name] or 0)
            highest = max(highest, value)
            place = j + (i - (len(impacts) - 1) / 2) * width
            filled = own if paint is None else paint
            axes.bar(place, value, width, label=filled.label if paint and not j else None, **filled.fill())
            value_on_top(axes, place, value, f"{value:z.1f}")
    slanted(axes, [paint.label for paint in ERRORS.values()])
    axes.set_ylabel("Average mAP$_N$ (points)")
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), max(math.ceil(1.1 * highest), 1))


def _groups(facts: Json) -> dict[str, dict[str, float]]:
    """The characteristics that a diagnosis holds, their buckets in DETAD's order, empty ones left out."""
    groups = {}
    for name in CHARACTERISTICS:
        buckets = facts.get(name)
        if isinstance(buckets, Mapping):
            known = sorted(buckets, key=lambda b: BUCKETS.index(b) if b in BUCKETS else len(BUCKETS))
            groups[name] = {bucket: buckets[bucket] for bucket in known if buckets[bucket] is not None}
    return {name: buckets for name, buckets in groups.items() if buckets}


def _draw_groups(axes: Axes, groups: Mapping[str, Mapping[str, float]]) -> None:
    ticks, labels, place = [], [], 0.0
    for name, buckets in groups.items():
        paint = CHARACTERISTICS[name]
        first = place
        for bucket, value in buckets.items():
            axes.bar(place, 100 * value, 0.85, **paint.fill())
            value_on_top(axes, place, 100 * value, f"{100 * value:z.1f}", fontsize=7)
            ticks.append(place)
            labels.append(bucket)
            place += 1
        axes.annotate(
            paint.label,
            ((first + place - 1) / 2, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -22),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=9,
        )
        place += 0.8
    axes.set_xticks(ticks, labels, fontsize=8)
    axes.margins(x=0.02)


def _draw_level(axes: Axes, share: float, *, digits: int) -> None:
    """A dashed line at a share of all instances, with its value in percent beside it."""
    level = 100 * share
    axes.axhline(level, color=BLACK, linestyle="--", linewidth=1)
    axes.annotate(
        f"{level:.{digits}f}",
        (1, level),
        xycoords=("axes fraction", "data"),
        xytext=(2, 0),
        textcoords="offset points",
        va="center",
    )


def _draw_spread(axes: Axes, groups: Mapping[str, Mapping[str, float]], base: float) -> None:
    if base:
        for i, (name, buckets) in enumerate(groups.items()):
            low, high = min(buckets.values()) / base, max(buckets.values()) / base
            axes.plot([i, i], [low, high], color=CHARACTERISTICS[name].colour, linewidth=6, solid_capstyle="butt")
            value_on_top(axes, i, high, f"{high:.2f}")
            value_on_top(axes, i, low, f"{low:.2f}", va="top", xytext=(0, -2))
    axes.axhline(1, color=BLACK, linewidth=1)
    slanted(axes, [CHARACTERISTICS[name].label for name in groups])
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.margins(y=0.15)
    axes.set_ylabel("Relative mAP$_N$")


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
