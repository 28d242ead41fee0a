"""Figure of an inspection: a strip of frames above the probability that each is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jostle.core.types.inspection import Inspection
from jostle.errors import BadValue
from jostle.reporting.figures.style import BLUE, FORMATS, GREY, RED, canvas, letter, save

WIDE, TALL = 9.0, 1.5  # inches of the curve
GAP = 0.1  # between the curve and the strip, where 1 is the height of the curve


def draw_inspection(inspection: Inspection, out: Path, *, title: str) -> Path:
    """Write the figure; the file name's suffix selects the format."""
    kind = out.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise BadValue(f"{out}: a drawing is written as {', '.join('.' + one for one in FORMATS)}")
    pts, strip = inspection.pts, np.concatenate(inspection.small, 1) if inspection.small else None
    begin, end = (float(pts[0]), float(pts[-1] + 1 / inspection.fps)) if len(pts) else (0.0, 1.0)
    above = 0.0 if strip is None else 0.9 * WIDE * strip.shape[0] / strip.shape[1] / TALL
    with canvas(WIDE, 0.9 + TALL * (1 + GAP + above)) as (figure, (axes,)):
        axes.hlines(inspection.threshold, begin, end, color=GREY, linestyle="--", linewidth=1)
        for lo, hi in inspection.stretches:
            axes.fill_between(
                [pts[lo], pts[hi - 1] + float(1 / inspection.fps)], 0, 1, color=RED, alpha=0.25, linewidth=0
            )
        axes.step(
            [*pts, end],
            [*inspection.probabilities, *inspection.probabilities[-1:]],
            where="post",
            color=BLUE,
            linewidth=1,
        )
        if strip is not None:
            axes.imshow(strip, extent=(begin, end, 1 + GAP, 1 + GAP + above), aspect="auto")
        axes.set_ylim(0, 1 + GAP + above)
        axes.set_xlim(begin, end)
        axes.set_yticks([0, 0.5, 1])
        axes.spines["left"].set_bounds(0, 1)
        axes.set_xlabel("seconds")
        axes.set_ylabel("damaged", y=0.5 / (1 + GAP + above))
        letter(axes, title)
        return save(figure, out.parent, out.stem, [kind])[0]
