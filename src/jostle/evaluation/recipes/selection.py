"""Selection of cells by name, as in `--cells`."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.corruptions.engine.profile import profiles
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe

GROUP = "group:"
ALL = "all"


def select_cells(recipe: Recipe, names: Iterable[str] | None = None) -> tuple[Cell, ...]:
    """Return the clean cell and the selected ones, each once, in the order of the benchmark.

    Args:
        names: names of cells (`thumos14-c/black_frame:1`), of corruptions with or without their profile
            (`thumos14-c/black_frame`, `black_frame`, `black_frame:1`), `group:NAME`, `clean`, or `all`, which
            includes the additional studies. A corruption selects its cells with the default placement; cells with
            another one are selected by their full name or their group, unless there are no others. By default all
            cells that count.

    Raises:
        UnknownName: if the benchmark has no such cell.

    >>> from jostle.evaluation.recipes.recipe import benchmarks
    >>> [cell.name for cell in select_cells(benchmarks["thumos14-c"], ["occlusion:2", "group:one-frame"])]
    ['clean', 'thumos14-c/occlusion:2', 'thumos14-c/black_frame:1@at:50%x1']
    """
    clean, *others = recipe.cells
    if names is None:
        return (clean, *(cell for cell in others if cell.counted))
    if isinstance(names, str):
        raise BadValue(f"cells are a list of names, got the text {names!r}; write [{names!r}]")
    texts = [text.strip() for text in names]
    if not texts:
        raise BadValue(f"no cells of {recipe.name} are selected; leave cells out for all that count, or select clean")
    chosen = {cell.name for text in texts for cell in _match_cells(recipe, text)}
    return (clean, *(cell for cell in others if cell.name in chosen))


def _match_cells(recipe: Recipe, text: str) -> list[Cell]:
    clean, *others = recipe.cells
    if text == CLEAN:
        return [clean]
    if text == ALL:
        return others
    if text.startswith(GROUP):
        group = text.removeprefix(GROUP)
        cells = [cell for cell in others if cell.group == group]
        if not cells:
            raise UnknownName(f"group of {recipe.name}", group, [group.name for group in recipe.groups])
        return cells
    text = _canonical_name(text)
    for names_of in (_full_name, _with_profile, _without_profile):
        cells = [cell for cell in others if text in names_of(cell.name)]
        if cells:
            return [cell for cell in cells if "@" not in cell.name] or cells
    raise UnknownName(f"cell of {recipe.name}", text, _known_names(recipe))


def _canonical_name(text: str) -> str:
    """Replace the name that a published program uses for a corruption by the profile's name."""
    profile, slash, rest = text.partition("/")
    if not slash or profile not in profiles:
        return text
    name, colon, severity = rest.partition(":")
    return f"{profile}/{profiles[profile].code_names.get(name, name)}{colon}{severity}"


def _full_name(cell: str) -> set[str]:
    return {cell}


def _with_profile(cell: str) -> set[str]:
    """Return the cell without its placement, and also without its severity."""
    written = cell.partition("@")[0]
    return {written} if "+" in written else {written, written.rpartition(":")[0]}


def _without_profile(cell: str) -> set[str]:
    """Return the names of `_with_profile` without the profile."""
    return {name.partition("/")[2] for name in _with_profile(cell) if "+" not in name}


def _known_names(recipe: Recipe) -> list[str]:
    cells = [cell.name for cell in recipe.cells]
    corruptions = {name.partition("@")[0].rpartition(":")[0] for name in cells[1:] if "+" not in name}
    return [*cells, *corruptions, ALL, *(GROUP + group.name for group in recipe.groups)]
