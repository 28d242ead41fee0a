"""Benchmarks as files: corrupted copies of the videos, for programs that read nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.data import AskedData
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.benchmarks.building import BuildPlan, Built
    from jostle.benchmarks.recipe import Recipe
    from jostle.datasets.dataset import Dataset

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
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Built:
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
        jobs: videos at once; by default one a core. The bytes do not depend on it.
        progress: called with (files ready, files in all).

    Raises:
        SourceChanged: if `out` holds another set.
        ResourceError: if the disk is full; finished copies stay.
        DataError: if none of the videos could be used. Single ones are listed in `Built.failures`.
    """
    from jostle.benchmarks.building import build as write

    recipe, found, plan = _asked(benchmark, AskedData(data, dataset, subset, fps), cells, seed, lossless)
    many = cores() if jobs is None else jobs
    return write(recipe, found, plan, Path(out), seed=seed, jobs=many, progress=progress)


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
) -> dict[str, Any]:
    """How many files `build` would write, and about how many bytes; nothing is written."""
    return _asked(benchmark, AskedData(data, dataset, subset, fps), cells, seed, lossless)[2].to_dict()


def _asked(
    benchmark: str | Path, data: AskedData, cells: Iterable[str] | None, seed: int, lossless: bool
) -> tuple[Recipe, Dataset, BuildPlan]:
    from jostle.benchmarks.building import corrupted_cells
    from jostle.benchmarks.building import plan_build as planned
    from jostle.benchmarks.reading import load_benchmark
    from jostle.benchmarks.selection import select_cells

    recipe = data.put_under(load_benchmark(benchmark))
    chosen = corrupted_cells(recipe, select_cells(recipe, cells))
    found = data.load(recipe)
    return recipe, found, planned(recipe, found, chosen, seed=seed, lossless=lossless)
