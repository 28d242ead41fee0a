"""Some cells of a benchmark, by what they are called: what `--cells` is given."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.corruptions.engine.profile import profiles
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe

GROUP = "group:"
ALL = "all"


def select_cells(recipe: Recipe, wanted: Iterable[str] | None = None) -> tuple[Cell, ...]:
    """The clean cell and those wanted, each once, in the order of the benchmark.

    Args:
        wanted: names of cells (`thumos14-c/black_frame:1`), of corruptions with or without their profile
            (`thumos14-c/black_frame`, `black_frame`, `black_frame:1`), `group:NAME`, `clean`, or `all`, which takes in
            the studies beside the benchmark. A corruption is meant where it strikes by itself; cells with a placement
            are meant by their whole name or their group, unless there are no others. By default all cells that count.

    Raises:
        UnknownName: if the benchmark has no such cell.

    >>> from jostle.evaluation.recipes.recipe import benchmarks
    >>> [cell.name for cell in select_cells(benchmarks["thumos14-c"], ["occlusion:2", "group:one-frame"])]
    ['clean', 'thumos14-c/occlusion:2', 'thumos14-c/black_frame:1@at:50%x1']
    """
    clean, *others = recipe.cells
    if wanted is None:
        return (clean, *(cell for cell in others if cell.counted))
    if isinstance(wanted, str):
        raise BadValue(f"cells are a list of names, got the text {wanted!r}; write [{wanted!r}]")
    texts = [text.strip() for text in wanted]
    if not texts:
        raise BadValue(f"no cells of {recipe.name} are asked for; leave them out for all that count, or ask for clean")
    chosen = {cell.name for text in texts for cell in _named(recipe, text)}
    return (clean, *(cell for cell in others if cell.name in chosen))


def _named(recipe: Recipe, text: str) -> list[Cell]:
    clean, *others = recipe.cells
    if text == CLEAN:
        return [clean]
    if text == ALL:
        return others
    if text.startswith(GROUP):
        group = text.removeprefix(GROUP)
        found = [cell for cell in others if cell.group == group]
        if not found:
            raise UnknownName(f"group of {recipe.name}", group, [group.name for group in recipe.groups])
        return found
    text = _own_word(text)
    for names in (_full, _with_profile, _bare):
        found = [cell for cell in others if text in names(cell.name)]
        if found:
            return [cell for cell in found if "@" not in cell.name] or found
    raise UnknownName(f"cell of {recipe.name}", text, _known(recipe))


def _own_word(text: str) -> str:
    """The text with the name that a published program uses for a corruption put into the profile's own."""
    profile, slash, rest = text.partition("/")
    if not slash or profile not in profiles:
        return text
    name, colon, severity = rest.partition(":")
    return f"{profile}/{profiles[profile].code_names.get(name, name)}{colon}{severity}"


def _full(cell: str) -> set[str]:
    return {cell}


def _with_profile(cell: str) -> set[str]:
    """A cell without its placement, and also without its severity."""
    written = cell.partition("@")[0]
    return {written} if "+" in written else {written, written.rpartition(":")[0]}


def _bare(cell: str) -> set[str]:
    """The same without the profile."""
    return {name.partition("/")[2] for name in _with_profile(cell) if "+" not in name}


def _known(recipe: Recipe) -> list[str]:
    cells = [cell.name for cell in recipe.cells]
    corruptions = {name.partition("@")[0].rpartition(":")[0] for name in cells[1:] if "+" not in name}
    return [*cells, *corruptions, ALL, *(GROUP + group.name for group in recipe.groups)]
