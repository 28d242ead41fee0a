"""Drawings as SVG text: a few shapes, every word escaped, colours left to the style sheet of the page.

Drawn here and not in the browser, so that a page shows them without scripts, prints them, and weighs little.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from jostle.core.types.clip import Frame

LETTER = 0.56  # width of a letter of our sans-serif, in font sizes; a guess on the wide side
LARGEST = 1.2  # how far a drawing grows where there is room
SMALL, LARGE = 520, 800  # the style sheet lets small drawings shrink to a phone, and larger ones scroll
STROKES = 5  # pixels between the strokes of a hatching
Number = float | int
Point = tuple[float, float]


@dataclass(frozen=True)
class Shape:
    """A shape of a drawing; its class says what it stands for, and so how it looks."""

    tag: str  # of SVG: rect, circle, line, path, text or image
    kind: str = ""  # its classes
    attributes: Mapping[str, Any] = field(default_factory=dict)
    hint: str = ""  # its tooltip
    words: str = ""  # of a text
    turn: int = 0  # of a text, in degrees
    points: tuple[Point, ...] = ()  # of a line or path
    closed: bool = False  # whether a path is an area
    apart: bool = False  # whether each two points of a path are a line of its own
    pixels: Frame | None = None  # of an image

    def svg(self, look_of: Callable[[Shape], Mapping[str, str]] | None = None) -> str:
        """Return the element, with its class or, for a file of its own, with its look."""
        attributes = dict(self.attributes)
        if self.turn:
            attributes["transform"] = f"rotate({self.turn} {_short(attributes['x'])} {_short(attributes['y'])})"
        if self.tag == "path":
            steps = (f"{'M' if not i or (self.apart and i % 2 == 0) else 'L'}{_short(x)} {_short(y)}"
                     for i, (x, y) in enumerate(self.points))  # fmt: skip
            attributes["d"] = f"{''.join(steps)}{'Z' if self.closed else ''}"
        if self.pixels is not None:
            from jostle.reporting.figures.sheet import png_of

            attributes["href"] = f"data:image/png;base64,{b64encode(png_of(self.pixels)).decode()}"
        if look_of is not None:
            attributes |= look_of(self)
        elif self.kind:
            attributes["class"] = self.kind
        title = f"<title>{escape(self.hint)}</title>" if self.hint else ""
        inside = f"{title}{escape(self.words)}"
        opened = f"<{self.tag}{_written(attributes)}"
        return f"{opened}>{inside}</{self.tag}>" if inside or self.tag == "text" else f"{opened}/>"

    def moved(self, x: float, y: float) -> Shape:
        """Return the shape at another place."""
        shift = {"x": x, "cx": x, "x1": x, "x2": x, "y": y, "cy": y, "y1": y, "y2": y}
        attributes = {
            name: value + shift.get(name, 0) if name in shift else value for name, value in self.attributes.items()
        }
        return replace(self, attributes=attributes, points=tuple((a + x, b + y) for a, b in self.points))


class Drawing:
    """SVG document under construction.

    >>> made = Drawing(10, 5, "a <box>")
    >>> made.rect(1, 2, 3, 2, "ink")
    >>> head, box, _ = made.svg().splitlines()
    >>> box, 'aria-label="a &lt;box&gt;"' in head
    ('<rect x="1" y="2" width="3" height="2" class="ink"/>', True)
    """

    def __init__(self, width: Number, height: Number, label: str) -> None:
        self.width, self.height = width, height
        self._label = label
        self._parts: list[Shape | str] = []  # text is of links
        self._links = False

    @property
    def shapes(self) -> Iterator[Shape]:
        """The shapes in the order in which they cover each other."""
        return (part for part in self._parts if isinstance(part, Shape))

    def rect(
        self, x: Number, y: Number, width: Number, height: Number, kind: str, hint: str = "", r: Number = 0
    ) -> None:
        """A box, with round corners if `r` is given."""
        corners = {"rx": r} if r else {}
        size = {"x": x, "y": y, "width": max(width, 0), "height": max(height, 0), **corners}
        self._parts.append(Shape("rect", kind, size, hint))

    def line(self, x1: Number, y1: Number, x2: Number, y2: Number, kind: str) -> None:
        """Add a straight line."""
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        self._parts.append(Shape("line", kind, ends, points=((x1, y1), (x2, y2))))

    def path(self, points: Iterable[tuple[float, float]], kind: str, closed: bool = False, hint: str = "") -> None:
        """A line through points, or the area inside it."""
        self._parts.append(Shape("path", kind, hint=hint, points=tuple(points), closed=closed))

    def hatch(self, x: float, y: float, width: float, height: float, strokes: str) -> None:
        """Add strokes to a box, so that neighbours can be told apart in grey; `strokes` is of /, \\ and -."""
        lines: list[Point] = []
        right, bottom = x + width, y + height
        if "-" in strokes:
            levels = _multiples(y, bottom, STROKES)
            lines += [end for level in levels for end in ((x, level), (right, level))]
        for sign in (sign for stroke, sign in (("/", 1), ("\\", -1)) if stroke in strokes):
            reach = sorted((sign * x, sign * right))
            for c in _multiples(y + reach[0], bottom + reach[1], STROKES * math.sqrt(2)):  # the line y = c - sign * x
                upper, lower = max(c - reach[1], y), min(c - reach[0], bottom)
                if upper < lower:
                    lines += [(sign * (c - upper), upper), (sign * (c - lower), lower)]
        if lines:
            self._parts.append(Shape("path", "hatch", points=tuple(lines), apart=True))

    def image(self, x: float, y: float, width: float, height: float, pixels: Frame) -> None:
        """Add a picture, stretched to a box."""
        size = {"x": x, "y": y, "width": width, "height": height, "preserveAspectRatio": "none"}
        self._parts.append(Shape("image", attributes=size, pixels=pixels))

    def dot(self, x: Number, y: Number, kind: str, mark: int = 0, hint: str = "", r: float = 4) -> None:
        """Add a marker; each number has its own shape, so that colour is never the only cue."""
        if mark % 4 == 0:
            self._parts.append(Shape("circle", kind, {"cx": x, "cy": y, "r": r}, hint))
        elif mark % 4 == 1:
            wide = 1.3 * r
            self.path([(x, y - wide), (x + wide, y), (x, y + wide), (x - wide, y)], kind, closed=True, hint=hint)
        elif mark % 4 == 2:
            self.rect(x - r, y - r, 2 * r, 2 * r, kind, hint)
        else:
            base = y + r
            self.path([(x, y - 1.2 * r), (x + 1.3 * r, base), (x - 1.3 * r, base)], kind, closed=True, hint=hint)

    def text(
        self, x: Number, y: Number, words: str, kind: str = "", anchor: str = "start", hint: str = "", turn: int = 0
    ) -> None:
        """Words with their base line at y; `anchor` is start, middle or end."""
        place: dict[str, Number | str] = {"x": x, "y": y}
        if anchor != "start":
            place["text-anchor"] = anchor
        self._parts.append(Shape("text", kind, place, hint, words, turn))

    def levels(
        self, scale: Scale, left: Number, right: Number, words: Callable[[float], str], about: int = 5, gap: int = 6
    ) -> None:
        """Add lines at round numbers of an upright scale, with words for each to the left of them."""
        for tick in ticks(scale.low, scale.high, about):
            self.line(left, scale(tick), right, scale(tick), "grid")
            self.text(left - gap, scale(tick) + 4, words(tick), "pale small", "end")

    def legend(self, x: float, names: Iterable[str], most: int) -> None:
        """Add a row of lines with their marks and names, cut to `most` letters, in the colours of runs."""
        for i, name in enumerate(names):
            self.line(x, 12, x + 22, 12, f"line {run_paint(i)}")
            self.dot(x + 11, 12, f"mark {run_paint(i)}", i)
            self.text(x + 28, 16, cut(name, most), "small")
            x += 44 + width_of(cut(name, most), 11)

    def put(self, drawing: Drawing, x: float = 0.0, y: float = 0.0) -> None:
        """Add all shapes of another drawing, without its links."""
        self._parts += [shape.moved(x, y) for shape in drawing.shapes]

    def open_link(self, address: str, label: str) -> None:
        """Open a link that lasts until `close_link`."""
        self._links = True
        self._parts.append(f'<a href="{escape(address)}" aria-label="{escape(label)}">')

    def close_link(self) -> None:
        """End a link."""
        self._parts.append("</a>")

    def svg(self, look_of: Callable[[Shape], Mapping[str, str]] | None = None) -> str:
        """The whole; one that holds links is a group of them, else a picture with a name.

        Args:
            look_of: gives the look of each shape, for a file of its own, which has no links; by default they have
                classes, for a page with a style sheet.
        """
        alone = look_of is not None
        role = "group" if self._links and not alone else "img"
        size = "small" if self.width <= SMALL else "large" if self.width >= LARGE else "middle"
        look = "" if alone else f'class="{size}-drawing" '
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {look}width="{round(LARGEST * self.width)}" '
            f'viewBox="0 0 {_short(self.width)} {_short(self.height)}" role="{role}" '
            f'aria-label="{escape(self._label)}">'
        )
        parts = [part.svg(look_of) if isinstance(part, Shape) else part for part in self._parts]
        drawn = [text for text, part in zip(parts, self._parts, strict=True) if isinstance(part, Shape) or not alone]
        return "\n".join([head, *drawn, "</svg>"])


def stack(label: str, *drawings: Drawing, gap: float = 18) -> Drawing:
    """Return drawings below each other as one, as a figure of several panels.

    >>> stack("two", Drawing(10, 5, "a"), Drawing(20, 5, "b"), gap=2).height
    12.0
    """
    tall = sum(one.height for one in drawings) + gap * (len(drawings) - 1)
    whole, y = Drawing(max(one.width for one in drawings), float(tall), label), 0.0
    for one in drawings:
        whole.put(one, y=y)
        y += one.height + gap
    return whole


@dataclass(frozen=True)
class Scale:
    """Linear map from numbers to pixels.

    >>> Scale(0, 1, 10, 110)(0.5)
    60.0
    """

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.stop - self.start)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two, about so many.

    >>> ticks(0, 1), ticks(0, 0.17, 3), ticks(-10, 10, 4)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.05, 0.1, 0.15], [-10.0, -5.0, 0.0, 5.0, 10.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / about
    size = 10.0 ** math.floor(math.log10(rough))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda width: abs(width - rough))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _multiples(low: float, high: float, step: float) -> list[float]:
    """Multiples of a step between two numbers; boxes that touch have strokes that meet."""
    return [number * step for number in range(math.ceil(low / step), math.ceil(high / step))]


def width_of(words: str, size: float = 13) -> float:
    """About how wide words are."""
    return LETTER * size * len(words)


def words_in(text: str, room: float, size: float = 11) -> list[str]:
    """Return a text as one line or, where it has no room for that, a line a word.

    >>> words_in("double detection", 120), words_in("double detection", 70)
    (['double detection'], ['double', 'detection'])
    """
    return [text] if width_of(text, size) <= room else text.split()


def run_paint(run: int) -> str:
    """The class that colours a run; there are six colours, and they come again."""
    return f"run{run % 6}"


def cut(words: str, most: int) -> str:
    """Shorten text to a number of characters, ending in an ellipsis."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _written(attributes: Mapping[str, Number | str]) -> str:
    parts = []
    for name, value in attributes.items():
        text = escape(value) if isinstance(value, str) else _short(value)
        parts.append(f' {name.rstrip("_").replace("_", "-")}="{text}"')
    return "".join(parts)


def _short(value: Number) -> str:
    return f"{round(float(value), 2):g}"
