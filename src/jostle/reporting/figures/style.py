"""Figures for papers: one look, three formats, no LaTeX, the same bytes every time.

Colours are those of Okabe and Ito (2008), distinct for the colour-blind; parts that touch also differ in hatching,
so that a grey print can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")
DPI = 200

GREEN, SKY, BLUE, ORANGE, RED, GREY, PINK, YELLOW, BLACK = (
    "#009E73",
    "#56B4E9",
    "#0072B2",
    "#E69F00",
    "#D55E00",
    "#B5B5B5",
    "#CC79A7",
    "#F0E442",
    "#222222",
)

_LOOK: dict[Any, Any] = {
    "font.family": "serif",
    "font.serif": ["STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "pdf.fonttype": 42,  # letters stay letters, so that publishers' checks pass and text can be searched
    "svg.fonttype": "path",  # drawn, so that a page needs no font
    "svg.hashsalt": "jostle",
}


@dataclass(frozen=True)
class Paint:
    """Fill style of one data series."""

    label: str
    colour: str
    hatch: str = ""

    def fill(self) -> dict[str, Any]:
        """Return the keyword arguments for bars."""
        return {"color": self.colour, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0.4}


@contextmanager
def canvas(width: float, height: float, columns: Sequence[float] = (1,)) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of some inches with axes side by side, in our look; nothing of it leaks into the caller's figures."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("figures", "report") from None
    with matplotlib.rc_context(_LOOK):
        figure = Figure(figsize=(width, height), layout="constrained")
        grid = figure.add_gridspec(1, len(columns), width_ratios=columns)
        yield figure, [figure.add_subplot(grid[0, i]) for i in range(len(columns))]


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in each format; dates are left out, so that equal figures are equal files."""
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown:
        raise BadValue(f"figures are written as {', '.join(FORMATS)}, not {unknown[0]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    dateless: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "pdf": {"CreationDate": None},
        "svg": {"Date": None},
    }
    written = []
    for kind in formats:
        path = folder / f"{name}.{kind}"
        figure.savefig(path, format=kind, dpi=DPI, metadata=dateless[kind])
        written.append(path)
    return written


def letter(axes: Axes, text: str) -> None:
    """A title in the place of a caption."""
    axes.set_title(text, loc="left", fontsize=10.5)


def value_on_top(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """A number above a bar, or below one that hangs."""
    defaults = {
        "xytext": (0, 2 if y >= 0 else -2),
        "va": "bottom" if y >= 0 else "top",
        "fontsize": 8,
        "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.4},  # lines pass behind it
    }
    axes.annotate(text, (x, y), textcoords="offset points", ha="center", **(defaults | style))


def slanted(axes: Axes, labels: Sequence[str]) -> None:
    """Names under the bars 0, 1, ... that do not run into each other."""
    axes.set_xticks(range(len(labels)), labels, fontsize=8.5, rotation=30, ha="right", rotation_mode="anchor")
