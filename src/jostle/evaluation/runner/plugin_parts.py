"""What of a run is not jostle's own: recorded, so that whoever goes on with it or reads it knows what to import."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jostle.core.plugins import Part, is_place, origin_of, part
from jostle.errors import JostleError
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import UsedPart


def used_parts(recipe: Recipe, dataset: str, models: Iterable[str]) -> tuple[UsedPart, ...]:
    """The foreign parts that a run of a benchmark uses on these data and models, which are names or places."""
    used = {("benchmarks", recipe.name), ("datasets", dataset), ("metrics", recipe.metric)}
    used.add(("protocols", recipe.protocol or ""))
    for cell in recipe.cells:
        for spec in cell.parsed:
            used |= {("corruptions", spec.entry.corruption), ("profiles", spec.profile or "")}
            used.add(("placements", (cell.placement or spec.placement).partition(":")[0]))
    found = {part(shelf, name) for shelf, name in used}
    for name in models:
        if is_place(name):
            found.add(Part("models", name, origin_of(name.partition(":")[0])))
        else:
            found |= {part(shelf, name) for shelf in ("models", "detectors", "extractors", "objectdetectors")}
    return tuple(
        UsedPart(one.shelf, one.name, one.origin.module, one.origin.package, one.origin.version, one.origin.checksum)
        for one in sorted(filter(None, found), key=lambda one: (one.shelf, one.name))
    )


def parts_of_run(folder: Path) -> str:
    """What a run in a folder used that is not jostle's own, and how to have it; empty where there is nothing to say."""
    try:
        about = RunFolder(folder, "").read_about()
    except JostleError:
        return ""
    if not about.parts:
        return ""
    ways = dict.fromkeys(one.way for one in about.parts)
    return f"the run in {folder} used {', '.join(map(str, about.parts))}; to have that: {', '.join(ways)}"
