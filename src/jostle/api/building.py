"""Benchmarks as files: corrupted copies of the videos, for programs that read nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.catalogue import DataSpec
from jostle.io.files.atomic import refuse_output_in
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.recipes.building import BuildPlan, BuildResult
    from jostle.evaluation.recipes.recipe import Recipe

Progress = Callable[[int, int], None]


def build(
    benchmark: str | Path,
    *,
    data: str | Path | None = None,
    dataset: str | None = None,
    subset: str | None = None,
    fps: Fraction | float | None = None,
    out: str | Path,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    lossless: bool = False,
    layouts: Iterable[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> BuildResult:
    """Write the corrupted videos of a benchmark, as `<out>/<corruption>/<severity>/<path of the source>`.

    Copies that are there and whole are kept, so work that was stopped goes on. `<out>/jostle.json` says what the set
    is and has the hash of every file.

    Args:
        benchmark: one of `jostle names benchmarks`, or a TOML file.
        data: the folder of the data set; None for one that is made.
        dataset: another data set than the recipe's, of `jostle names datasets`; the set of copies then says so.
        subset: another subset than the recipe's.
        fps: the rate of folders of images, where neither they nor the annotations say it.
        cells: as `jostle run` takes them; by default all that count.
        lossless: FFV1 in .mkv, which keeps every pixel, instead of H.264 in .mp4; of images PNG instead of JPEG.
        layouts: what other programs read, written beside the copies: `hub` for `metadata.jsonl` and a card as the
            Hugging Face Hub has them, `webdataset` for tar files, `croissant` for Croissant 1.1 metadata.
        jobs: videos at once; by default one a core. The bytes do not depend on it.
        progress: called with (files ready, files in all).

    Raises:
        SourceChanged: if `out` holds another set.
        ResourceError: if the disk is full; finished copies stay.
        DataError: if none of the videos could be used. Single ones are listed in `Built.failures`.
    """
    from jostle.evaluation.recipes.building import build as write
    from jostle.evaluation.recipes.published_layouts import check_layouts, write_layouts

    recipe, dataset_files, plan = _load_plan(benchmark, DataSpec(data, dataset, subset, fps), cells, seed, lossless)
    chosen = check_layouts(layouts, dataset_files)
    if data is not None:
        refuse_output_in(Path(data), Path(out))
    many = available_cpus() if jobs is None else jobs
    done = write(recipe, dataset_files, plan, Path(out), seed=seed, jobs=many, progress=progress)
    if not chosen:
        return done
    written = write_layouts(Path(out), chosen, recipe, dataset_files, seed=seed, lossless=lossless)
    return replace(done, layouts=tuple(written))


def plan_build(
    benchmark: str | Path,
    *,
    data: str | Path | None = None,
    dataset: str | None = None,
    subset: str | None = None,
    fps: Fraction | float | None = None,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    lossless: bool = False,
) -> BuildPlan:
    """Return how many files `build` would write, and roughly how many bytes; nothing is written."""
    return _load_plan(benchmark, DataSpec(data, dataset, subset, fps), cells, seed, lossless)[2]


def _load_plan(
    benchmark: str | Path, data: DataSpec, cells: Iterable[str] | None, seed: int, lossless: bool
) -> tuple[Recipe, Dataset, BuildPlan]:
    from jostle.evaluation.recipes.building import plan_build as planned
    from jostle.evaluation.recipes.building import require_corrupted_cells
    from jostle.evaluation.recipes.selection import load_benchmark, select_cells

    recipe = data.put_under(load_benchmark(benchmark))
    chosen = require_corrupted_cells(recipe, select_cells(recipe, cells))
    dataset_files = data.load(recipe)
    return recipe, dataset_files, planned(recipe, dataset_files, chosen, seed=seed, lossless=lossless)
