"""Selection of a benchmark, its data set and its cells by name, as on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jostle.core.settings import is_toml, read_settings
from jostle.corruptions.engine.spec import profiles
from jostle.datasets.dataset import Dataset, datasets
from jostle.errors import BadValue, JostleError, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe, benchmarks
from jostle.evaluation.tasks.validation import check_fields, check_recipe

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


def apply_recipe_to(recipe: Recipe, dataset: str | None, subset: str | None, data: Path | None) -> Recipe:
    """Return the recipe, applied to the requested data set.

    Args:
        dataset: its name; None for the recipe's own.
        subset: part of it; None for the recipe's, or for another data set its default.
    """
    name = recipe.dataset if dataset is None else dataset
    kind = datasets[name]
    if not kind.on_disk and data is not None:
        raise BadValue(
            f"{recipe.name} uses {name}, which jostle generates and does not read from {data}; leave --data out, or "
            f"apply the recipe to your own videos: --dataset folder --data {data}"
        )
    if kind.task not in ("", recipe.task):
        raise BadValue(f"{name} is a data set for {kind.task}, and {recipe.name} is a recipe for {recipe.task}")
    own = recipe.subset if name == recipe.dataset else None
    part = (own or kind.default_subset) if subset is None else subset
    kind.check_subset(part)
    if (name, part) == (recipe.dataset, recipe.subset or kind.default_subset):
        return recipe
    # A data set in a folder is called by the name of the folder.
    called = f"{name} {data.resolve().name}" if name == "folder" and data is not None else name
    return recipe.on(name, part, called if part == kind.default_subset else f"{called} {part}")


def check_task(recipe: Recipe, data: Dataset) -> None:
    """Raise unless the annotations in a folder are for the task of the recipe."""
    if data.task != recipe.task:
        raise BadValue(
            f"{data.folder}: annotated for {data.task}, and {recipe.base or recipe.name} is a recipe for {recipe.task}"
        )


def load_benchmark(source: str | Path) -> Recipe:
    """Return the benchmark of a name, or read it from a TOML file."""
    if is_toml(source):
        return read_benchmark(source)
    recipe = benchmarks[str(source)]
    check_fields(recipe)
    return recipe


def read_benchmark(path: str | Path) -> Recipe:
    """Read a recipe from a TOML file, and check every name in it."""
    try:
        recipe = read_settings(Recipe, path)
        check_recipe(recipe)
        data = datasets[recipe.dataset]
        data.check_subset(recipe.subset or data.default_subset)
        if data.task not in ("", recipe.task):
            raise BadValue(f"{recipe.dataset} is a data set for {data.task}, and the task is {recipe.task}")
    except JostleError as error:
        message = str(error)
        raise BadValue(message if message.startswith(f"{path}:") else f"{path}: {message}", fault=error.fault) from None
    if recipe.name in benchmarks and benchmarks[recipe.name].fingerprint != recipe.fingerprint:
        raise BadValue(f"{path}: {recipe.name} is the name of another benchmark, with which its results would be "
                       "confused; choose another name")  # fmt: skip
    return recipe
