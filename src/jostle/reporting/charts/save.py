"""Drawings saved as files: SVG as they are, PNG and PDF painted from the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue, MissingExtra
from jostle.io.files.atomic import write_text
from jostle.reporting.charts.drawing import Drawing, Shape
from jostle.reporting.charts.looks import Look, look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "pdf", "svg")
DPI = 200
PIXELS = 96  # an inch
POINT = 72 / PIXELS
MARGIN = 6  # pixels, for letters that reach over the edge
LETTERS = 0.92  # the font of figures is wider than those of browsers
# Letters stay letters, so that publishers' checks pass and text can be searched; equal figures are equal files.
_SETTINGS: dict[Any, Any] = {"font.family": "DejaVu Sans", "pdf.fonttype": 42, "lines.scale_dashes": False}
_DATELESS: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}}


def save_drawing(drawing: Drawing, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a drawing in each format, on white, and return the paths.

    Raises:
        MissingExtra: without matplotlib, for anything but SVG.
    """
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown:
        raise BadValue(f"figures are written as {', '.join(FORMATS)}, not {unknown[0]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in formats]
    for kind, path in zip(formats, paths, strict=True):
        if kind == "svg":
            write_text(path, [drawing.svg(look_of)])
        else:
            _paint(drawing, path, kind)
    return paths


def save_as(drawing: Drawing, path: Path) -> Path:
    """Write a drawing in the format that the suffix of a path names, and return the path."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise BadValue(f"{path}: a drawing is written as {', '.join('.' + one for one in FORMATS)}")
    return save_drawing(drawing, path.parent, path.stem, [kind])[0]


def _paint(drawing: Drawing, path: Path, kind: str) -> None:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("figures", "report") from None
    with matplotlib.rc_context(_SETTINGS):
        right, bottom = drawing.width + MARGIN, drawing.height + MARGIN
        figure = Figure(figsize=((right + MARGIN) / PIXELS, (bottom + MARGIN) / PIXELS))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(-MARGIN, right), ylim=(bottom, -MARGIN))
        axes.set_axis_off()
        for number, shape in enumerate(drawing.shapes):
            _PAINTERS[shape.tag](axes, shape, look_of(shape), number)
        figure.savefig(path, format=kind, dpi=DPI, metadata=_DATELESS[kind])


def _paint_text(axes: Axes, shape: Shape, look: Look, order: int) -> None:
    place = shape.attributes
    axes.text(
        place["x"],
        place["y"],
        shape.words.replace("$", r"\$"),  # which would begin a formula
        color=look["fill"],
        fontsize=float(look["font-size"]) * POINT * LETTERS,
        fontweight="bold" if look.get("font-weight") else "normal",
        ha={"start": "left", "middle": "center", "end": "right"}[place.get("text-anchor", "start")],
        va="baseline",
        rotation=-shape.turn,
        rotation_mode="anchor",
        zorder=order,
    )


def _paint_patch(axes: Axes, shape: Shape, look: Look, order: int) -> None:
    from matplotlib.colors import to_rgba

    fill, stroke, opacity = look.get("fill", "#000000"), look.get("stroke", "none"), float(look.get("opacity", 1))
    dashes = [float(part) * POINT for part in look.get("stroke-dasharray", "").split()]
    patch = _PATCHES[shape.tag](shape)
    patch.set(
        facecolor="none" if fill == "none" else to_rgba(fill, opacity * float(look.get("fill-opacity", 1))),
        edgecolor="none" if stroke == "none" else to_rgba(stroke, opacity),
        linewidth=float(look.get("stroke-width", 1)) * POINT,
        linestyle=(0, dashes) if dashes else "solid",
        zorder=order,
    )
    axes.add_patch(patch)


def _rectangle(shape: Shape) -> Any:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    x, y, width, height = (shape.attributes[name] for name in ("x", "y", "width", "height"))
    r = min(shape.attributes.get("rx", 0), width / 2, height / 2)
    if not r:
        return Rectangle((x, y), width, height)
    style = f"round,pad=0,rounding_size={r}"
    return FancyBboxPatch((x, y), width, height, boxstyle=style, mutation_aspect=1)


def _circle(shape: Shape) -> Any:
    from matplotlib.patches import Circle

    return Circle((shape.attributes["cx"], shape.attributes["cy"]), shape.attributes["r"])


def _polygon(shape: Shape) -> Any:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Lines

    if shape.apart:
        return PathPatch(Lines(shape.points, [Lines.MOVETO, Lines.LINETO] * (len(shape.points) // 2)))
    return Polygon(shape.points, closed=shape.closed)


def _paint_image(axes: Axes, shape: Shape, look: Look, order: int) -> None:
    x, y, width, height = (shape.attributes[name] for name in ("x", "y", "width", "height"))
    pixels: Any = shape.pixels
    axes.imshow(pixels, extent=(x, x + width, y + height, y), aspect="auto", zorder=order)


_PATCHES: dict[str, Callable[[Shape], Any]] = {
    "rect": _rectangle,
    "circle": _circle,
    "path": _polygon,
    "line": _polygon,
}
_PAINTERS = {"text": _paint_text, "image": _paint_image, **dict.fromkeys(_PATCHES, _paint_patch)}
