"""Plugins that a run uses, recorded so that its readers know what to install or import."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jostle.core.plugins import Part, get_part, is_import_path, load, origin_of
from jostle.errors import JostleError
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import UsedPart


def find_plugins(
    recipe: Recipe, dataset: str, models: Iterable[str], finder: str | None = None
) -> tuple[UsedPart, ...]:
    """Return the plugin parts that a run uses; models and the damage finder are names or import paths."""
    used = {("benchmarks", recipe.name), ("datasets", dataset), ("metrics", recipe.metric), ("tasks", recipe.task)}
    used |= {("protocols", recipe.protocol or ""), ("damagefinders", finder or "")}
    for cell in recipe.cells:
        for spec in cell.parsed:
            used |= {("corruptions", spec.entry.corruption), ("profiles", spec.profile or "")}
            used.add(("placements", (cell.placement or spec.placement).partition(":")[0]))
    for registry, _ in used:
        load(registry)  # a part that nothing has asked for yet is one as well
    parts = {get_part(registry, name) for registry, name in used}
    if finder is not None and is_import_path(finder):
        parts.add(Part("damagefinders", finder, origin_of(finder.partition(":")[0])))
    for name in models:
        if is_import_path(name):
            parts.add(Part("models", name, origin_of(name.partition(":")[0])))
        else:
            parts |= {get_part(registry, name) for registry in ("models", "detectors", "extractors", "objectdetectors")}
    return tuple(
        UsedPart(one.registry, one.name, one.origin.module, one.origin.package, one.origin.version, one.origin.checksum)
        for one in sorted(filter(None, parts), key=lambda one: (one.registry, one.name))
    )


def describe_plugins(folder: Path) -> str:
    """Describe the plugins that a run used and how to install them; empty if there are none."""
    try:
        about = RunFolder(folder).read_record()
    except JostleError:
        return ""
    if not about.parts:
        return ""
    ways = dict.fromkeys(one.way for one in about.parts)
    return f"the run in {folder} used {', '.join(map(str, about.parts))}; to install it: {', '.join(ways)}"
