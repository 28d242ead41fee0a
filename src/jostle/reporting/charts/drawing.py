"""Drawings as SVG text: a few shapes, every word escaped, colours left to the style sheet of the page.

Drawn here and not in the browser, so that a page shows them without scripts, prints them, and weighs little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

LETTER = 0.56  # width of a letter of our sans-serif, in font sizes; a guess on the wide side
LARGEST = 1.2  # how far a drawing grows where there is room
SMALL, LARGE = 520, 800  # the style sheet lets small drawings shrink to a phone, and larger ones scroll
Number = float | int


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
        self._parts: list[str] = []
        self._links = False

    def shape(self, tag: str, kind: str = "", hint: str = "", **attributes: Number | str) -> None:
        """Add an element of any kind, with its class and a tooltip."""
        inside = f"<title>{escape(hint)}</title>" if hint else ""
        opened = f"<{tag}{_written(attributes)}{_written({'class': kind}) if kind else ''}"
        self._parts.append(f"{opened}>{inside}</{tag}>" if inside else f"{opened}/>")

    def rect(
        self, x: Number, y: Number, width: Number, height: Number, kind: str, hint: str = "", r: Number = 0
    ) -> None:
        """A box, with round corners if `r` is given."""
        corners = {"rx": r} if r else {}
        self.shape("rect", kind, hint, x=x, y=y, width=max(width, 0), height=max(height, 0), **corners)

    def line(self, x1: Number, y1: Number, x2: Number, y2: Number, kind: str) -> None:
        """Add a straight line."""
        self.shape("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def path(self, points: list[tuple[float, float]], kind: str, closed: bool = False) -> None:
        """A line through points, or the area inside it."""
        through = "L".join(f"{_short(x)} {_short(y)}" for x, y in points)
        self.shape("path", kind, d=f"M{through}{'Z' if closed else ''}")

    def dot(self, x: Number, y: Number, kind: str, mark: int = 0, hint: str = "", r: float = 4) -> None:
        """Add a marker; each number has its own shape, so that colour is never the only cue."""
        if mark % 4 == 0:
            self.shape("circle", kind, hint, cx=x, cy=y, r=r)
        elif mark % 4 == 1:
            self.shape("path", kind, hint, d=f"M{_short(x)} {_short(y - r * 1.3)}l{r * 1.3} {r * 1.3}l{-r * 1.3} "
                       f"{r * 1.3}l{-r * 1.3} {-r * 1.3}Z")  # fmt: skip
        elif mark % 4 == 2:
            self.rect(x - r, y - r, 2 * r, 2 * r, kind, hint)
        else:
            self.shape("path", kind, hint, d=f"M{_short(x)} {_short(y - r * 1.2)}l{r * 1.3} {r * 2.2}h{-r * 2.6}Z")

    def text(
        self, x: Number, y: Number, words: str, kind: str = "", anchor: str = "start", hint: str = "", turn: int = 0
    ) -> None:
        """Words with their base line at y; `anchor` is start, middle or end."""
        attributes: dict[str, Number | str] = {"x": x, "y": y}
        if anchor != "start":
            attributes["text-anchor"] = anchor
        if kind:
            attributes["class"] = kind
        if turn:
            attributes["transform"] = f"rotate({turn} {_short(x)} {_short(y)})"
        inside = f"<title>{escape(hint)}</title>" if hint else ""
        self._parts.append(f"<text{_written(attributes)}>{inside}{escape(words)}</text>")

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

    def open_link(self, address: str, label: str) -> None:
        """Open a link that lasts until `close_link`."""
        self._links = True
        self._parts.append(f'<a href="{escape(address)}" aria-label="{escape(label)}">')

    def close_link(self) -> None:
        """End a link."""
        self._parts.append("</a>")

    def svg(self) -> str:
        """The whole; one that holds links is a group of them, else a picture with a name."""
        role = "group" if self._links else "img"
        size = "small" if self.width <= SMALL else "large" if self.width >= LARGE else "middle"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{size}-drawing" width="{round(LARGEST * self.width)}" '
            f'viewBox="0 0 {_short(self.width)} {_short(self.height)}" role="{role}" '
            f'aria-label="{escape(self._label)}">'
        )
        return "\n".join([head, *self._parts, "</svg>"])


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


def width_of(words: str, size: float = 13) -> float:
    """About how wide words are."""
    return LETTER * size * len(words)


def run_paint(run: int) -> str:
    """The class that colours a run; there are six colours, and they come again."""
    return f"run{run % 6}"


def cut(words: str, most: int) -> str:
    """Shorten text to a number of characters, ending in an ellipsis."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _written(attributes: dict[str, Number | str]) -> str:
    parts = []
    for name, value in attributes.items():
        text = escape(value) if isinstance(value, str) else _short(value)
        parts.append(f' {name.rstrip("_").replace("_", "-")}="{text}"')
    return "".join(parts)


def _short(value: Number) -> str:
    return f"{round(float(value), 2):g}"
