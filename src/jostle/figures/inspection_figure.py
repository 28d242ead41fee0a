"""A video at a glance: a strip of its frames, and under it how probably each frame was struck."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jostle.errors import BadValue
from jostle.figures.style import BLUE, FORMATS, GREY, RED, canvas, letter, save
from jostle.types.inspection import Inspection


def draw_inspection(found: Inspection, out: Path, *, title: str) -> Path:
    """Write the figure; its format is told by the name of the file."""
    kind = out.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise BadValue(f"{out}: a drawing is written as {', '.join('.' + one for one in FORMATS)}")
    pts, pictures = found.pts, found.small
    step = float(pts[-1] - pts[0]) / max(len(pts) - 1, 1) if len(pts) else 1.0
    with canvas(9.0, 2.6) as (figure, (axes,)):
        axes.axhline(found.threshold, color=GREY, linestyle="--", linewidth=1)
        for lo, hi in found.stretches:
            axes.axvspan(pts[lo], pts[hi - 1] + step, color=RED, alpha=0.25, linewidth=0)
        axes.step(pts, found.probabilities, where="post", color=BLUE, linewidth=1)
        axes.set_ylim(0, 1.02)
        axes.set_xlim(pts[0] if len(pts) else 0, (pts[-1] + step) if len(pts) else 1)
        axes.set_xlabel("seconds")
        axes.set_ylabel("struck")
        if pictures:
            above = axes.inset_axes((0, 1.02, 1, 0.55))
            above.imshow(np.concatenate(pictures, 1), aspect="auto")
            above.axis("off")
            above.set_title(title, loc="left", fontsize=10.5)
        else:
            letter(axes, title)
        return save(figure, out.parent, out.stem, [kind])[0]
