"""Benchmarks as files: corrupted copies of the videos, for programs that read nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.catalogue import DataSpec
from jostle.core.options import takes
from jostle.evaluation.recipes.options import BuildConfig, CopyOptions
from jostle.io.files.atomic import refuse_output_in
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.recipes.building import BuildPlan, BuildResult
    from jostle.evaluation.recipes.recipe import Recipe


@takes(BuildConfig)
def build(config: BuildConfig) -> BuildResult:
    """Write the corrupted videos of a benchmark, as `<out>/<corruption>/<severity>/<path of the source>`.

    Copies that are there and whole are kept, so work that was stopped goes on. `<out>/jostle.json` says what the set
    is and has the hash of every file.

    Raises:
        SourceChanged: if `out` holds another set.
        ResourceError: if the disk is full; finished copies stay.
        DataError: if none of the videos could be used. Single ones are listed in `Built.failures`.
    """
    from jostle.evaluation.recipes.building import build as write
    from jostle.evaluation.recipes.published_layouts import check_layouts, write_layouts

    recipe, dataset_files, plan = _load_plan(config)
    chosen = check_layouts(config.layouts, dataset_files)
    out, seed = Path(config.out), config.seed
    if config.data is not None:
        refuse_output_in(Path(config.data), out)
    many = available_cpus() if config.jobs is None else config.jobs
    done = write(recipe, dataset_files, plan, out, seed=seed, jobs=many, progress=config.progress)
    if not chosen:
        return done
    written = write_layouts(out, chosen, recipe, dataset_files, seed=seed, lossless=config.lossless)
    return replace(done, layouts=tuple(written))


@takes(CopyOptions)
def plan_build(config: CopyOptions) -> BuildPlan:
    """Return how many files `build` would write, and roughly how many bytes; nothing is written."""
    return _load_plan(config)[2]


def _load_plan(config: CopyOptions) -> tuple[Recipe, Dataset, BuildPlan]:
    from jostle.evaluation.recipes.building import plan_build as planned
    from jostle.evaluation.recipes.building import require_corrupted_cells
    from jostle.evaluation.recipes.selection import load_benchmark, select_cells

    data = DataSpec(config.data, config.dataset, config.subset, config.fps)
    recipe = data.put_under(load_benchmark(config.benchmark))
    chosen = require_corrupted_cells(recipe, select_cells(recipe, config.cells))
    dataset_files = data.load(recipe)
    return recipe, dataset_files, planned(recipe, dataset_files, chosen, seed=config.seed, lossless=config.lossless)
