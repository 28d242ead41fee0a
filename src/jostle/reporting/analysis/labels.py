"""Names of cells, runs and benchmarks for readers, and the cells of a run as a grid of corruptions and severities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.run_folder.metadata import format_adaptation, format_model
from jostle.metrics.robustness import split_cell

if TYPE_CHECKING:
    from jostle.evaluation.results.record import RunRecord

_REFUSED = re.compile(r"[^A-Za-z0-9_.-]+")


def cell_labels(cells: Sequence[str], joint: str) -> dict[str, str]:
    """`<corruption><joint><severity>` of each cell: without its profile, unless two profiles share a name.

    >>> cell_labels(["clean", "kinetics-c/fog:3", "black_frame:1@at:50%x1"], "/")
    {'clean': 'clean', 'kinetics-c/fog:3': 'fog/3', 'black_frame:1@at:50%x1': 'black_frame-at-50-x1/1'}
    """
    bare = {cell: _label(re.sub(r"[^/+@]+/", "", cell), joint) for cell in cells}
    return bare if len(set(bare.values())) == len(bare) else {cell: _label(cell, joint) for cell in cells}


def _label(cell: str, joint: str) -> str:
    if cell == CLEAN:
        return CLEAN
    corruption, severity = split_cell(cell)
    name = _REFUSED.sub("-", corruption)
    return name if severity is None else f"{name}{joint}{severity}"


def benchmark_title(record: RunRecord) -> str:
    """The benchmark as papers print it, and the data it was put on if not its own; a user's own by its name."""
    name, recipe = record.about.benchmark, record.about.recipe
    return benchmarks[recipe].title + name.removeprefix(recipe) if recipe in benchmarks else name


def run_names(records: Sequence[RunRecord]) -> list[str]:
    """Return short distinct names of runs: the model, or the folder where two share a model."""
    models = [record.about.display_name for record in records]
    folders = [_folder(record) for record in records]
    for names in (models, folders):
        if len(set(names)) == len(names):
            return names
    return [f"{folder} ({i})" for i, folder in enumerate(folders, 1)]


def _folder(record: RunRecord) -> str:
    """The folder, and that its run was mended or adapted, unless its own name says so."""
    name, about = record.folder.resolve().name, record.about
    mend, adapt = about.mend, format_adaptation(about.adapt)
    return format_model(name, None if "mended" in name else mend, None if "adapted" in name else adapt)


def plural(word: str) -> str:
    """Return the plural of such a word, with a capital.

    >>> plural("class"), plural("type")
    ('Classes', 'Types')
    """
    return f"{word.capitalize()}{'es' if word.endswith('s') else 's'}"


@dataclass(frozen=True)
class GridRow:
    """Scores of one corruption across severities."""

    corruption: str  # the spec without its severity
    # By severity; under None a cell that has no severity, as a chain of several corruptions
    cells: dict[int | None, str]
    counted: bool  # whether the means include it

    @property
    def name(self) -> str:
        """The corruption as a reader knows it: without its profile, and with spaces.

        >>> GridRow("thumos14-c/black_frame", {}, True).name
        'black frame'
        """
        return short_name(self.corruption)


@dataclass(frozen=True)
class Grid:
    """Scores of a run as a grid: corruptions down, severities across."""

    rows: tuple[GridRow, ...]  # those that count first, in the benchmark's order
    severities: tuple[int, ...]  # that any row has, rising; None is not among them


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
