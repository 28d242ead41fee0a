"""Figures of the pages of results, drawn from their tables: a dot for each row, with its interval or spread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from studies.harness import RESULT_PAGES, TABLE_SETTINGS

WIDTH, LEFT, ROW, TOP, BOTTOM = 760, 300, 22, 14, 46
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1d2433}line{stroke:#c5cad6}.reach{stroke:#2f6fdd;stroke-width:2}"
    ".dot{fill:#2f6fdd}@media(prefers-color-scheme:dark){text{fill:#e6e9f0}line{stroke:#3a4256}"
    ".reach{stroke:#7aa7ff}.dot{fill:#7aa7ff}}"
)
NUMBER = re.compile(r"^(-?[\d.]+)(?:\s*±\s*([\d.]+)|\s*\[(-?[\d.]+), (-?[\d.]+)\])?")


@dataclass(frozen=True)
class Figure:
    """Figure of one column of a table on a page."""

    page: str
    table: str  # name of its marker, such as `table: main`
    column: str
    labels: int  # columns that name a row
    caption: str  # below the axis

    @property
    def file(self) -> str:
        """Name of the file beside the page."""
        return f"{self.page}.svg"


FIGURES = tuple(Figure(*row) for row in TABLE_SETTINGS["figures"]["rows"])


def read_table(text: str, marker: str) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table behind a marker."""
    part = text.split(f"<!-- {marker} -->", 1)[1].split("<!-- end -->", 1)[0]
    lines = [line.strip("| ").split(" | ") for line in part.strip().splitlines()]
    return [cell.strip() for cell in lines[0]], [[cell.strip() for cell in line] for line in lines[2:]]


def draw(figure: Figure) -> str:
    """Draw a figure from its page."""
    head, rows = read_table((RESULT_PAGES / f"{figure.page}.md").read_text(encoding="utf-8"), figure.table)
    column = head.index(figure.column)
    points = []
    for row in rows:
        match = NUMBER.match(row[column])
        if match is None:  # such as "more": no number that could be drawn
            continue
        value = float(match[1])
        spread = float(match[2]) if match[2] else 0.0
        low, high = (float(match[3]), float(match[4])) if match[3] else (value - spread, value + spread)
        points.append((", ".join(row[: figure.labels]), value, low, high))
    return draw_points(points, figure.caption)


def draw_points(points: Sequence[tuple[str, float, float, float]], caption: str) -> str:
    """Draw (label, value, low, high) as a standalone SVG, for light and dark pages."""
    least, most = min(low for _, _, low, _ in points), max(high for _, _, _, high in points)
    reach = (most - least) or 1.0
    step = next(size for size in (0.5, 1, 2, 5, 10, 20, 50) if reach / size <= 8)
    first, last = step * (least // step), step * -(-most // step)
    height = TOP + ROW * len(points) + BOTTOM

    def x(value: float) -> float:
        return round(LEFT + (value - first) / (last - first) * (WIDTH - LEFT - 30), 1)

    bottom = TOP + ROW * len(points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(caption)}</title><style>{STYLE}</style>",
    ]
    for number in range(round((last - first) / step) + 1):
        at = first + number * step
        parts.append(f'<line x1="{x(at)}" x2="{x(at)}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x(at)}" y="{bottom + 16}" text-anchor="middle">{at:g}</text>')
    for row, (label, value, low, high) in enumerate(points):
        y = TOP + ROW * row + ROW / 2
        parts.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<line class="reach" x1="{x(low)}" x2="{x(high)}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle class="dot" cx="{x(value)}" cy="{y}" r="4"/>')
    parts.append(
        f'<text x="{(LEFT + WIDTH) / 2}" y="{bottom + 38}" text-anchor="middle">{escape(caption)}</text></svg>\n'
    )
    return "\n".join(parts)
