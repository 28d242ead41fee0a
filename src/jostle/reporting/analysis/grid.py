"""The cells of a run laid out: corruptions down, severities across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.robustness import split_cell


@dataclass(frozen=True)
class GridRow:
    """Scores of one corruption across severities.

    Attributes:
        corruption: the spec without its severity.
        cells: by severity; under None a cell that has no severity, as a chain of several corruptions.
        counted: whether the means include it.
    """

    corruption: str
    cells: dict[int | None, str]
    counted: bool

    @property
    def name(self) -> str:
        """The corruption as a reader knows it: without its profile, and with spaces.

        >>> GridRow("thumos14-c/black_frame", {}, True).name
        'black frame'
        """
        return short_name(self.corruption)


@dataclass(frozen=True)
class Grid:
    """Scores of a run as a grid: corruptions down, severities across.

    Attributes:
        rows: those that count first, in the benchmark's order.
        severities: that any row has, rising; None is not among them.
    """

    rows: tuple[GridRow, ...]
    severities: tuple[int, ...]


def grid_of(cells: Sequence[str], counted: Sequence[str]) -> Grid:
    """Lay cells out; the clean one is left away.

    >>> made = grid_of(["clean", "fog:1", "fog:2", "rain:1"], ["fog:1", "fog:2"])
    >>> made.severities, [(row.corruption, row.counted) for row in made.rows]
    ((1, 2), [('fog', True), ('rain', False)])
    """
    known = set(counted)
    rows: dict[tuple[bool, str], dict[int | None, str]] = {}
    for cell in cells:
        if cell != CLEAN:
            corruption, severity = split_cell(cell)
            rows.setdefault((cell not in known, corruption), {})[severity] = cell
    ordered = tuple(
        GridRow(name, rows[beside, name], not beside) for beside, name in sorted(rows, key=lambda key: key[0])
    )
    severities = sorted({severity for row in ordered for severity in row.cells if severity is not None})
    return Grid(ordered, tuple(severities))


def short_name(cell: str) -> str:
    """A cell or a corruption without profiles, underscores as spaces.

    >>> short_name("thumos14-c/black_frame:1@at:10%x5"), short_name("fog:3+kinetics-c/shot_noise:2")
    ('black frame:1 at 10%x5', 'fog:3 + shot noise:2')
    """
    written, _, place = cell.partition("@")
    parts = " + ".join(part.rpartition("/")[2].replace("_", " ") for part in written.split("+"))
    return f"{parts} {place.replace(':', ' ')}" if place else parts
