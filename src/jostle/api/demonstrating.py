"""A demonstration: the whole loop at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.data import load_dataset
from jostle.loading.installed import need_torch
from jostle.shipped import TREATMENTS
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.demo import Demo

Progress = Callable[[str, int, int], None]


def demo(out: str | Path = "demo", *, seed: int = 0, jobs: int | None = None, progress: Progress | None = None) -> Demo:
    """The whole loop on the embedded data set: films made, corrupted, looked at by two detectors, and scored.

    Args:
        out: folder for two runs, a report about them, and a page that shows every corruption.
        seed: of the films and of all corruptions.
        jobs: processes; by default one a core.
        progress: called with (what is being done, how much is done, how much there is).
    """
    need_torch("the demo")
    from jostle.benchmarks.recipe import benchmarks
    from jostle.demo import BENCHMARK, DETECTOR, write_demo
    from jostle.running.contestants import AskedModel, contestant_for

    many = cores() if jobs is None else jobs
    told = None if progress is None else partial(progress, "making films")
    data = load_dataset("puppets", "test", seed=seed, jobs=many, progress=told)
    recipe = benchmarks[BENCHMARK]
    both = {how: contestant_for(recipe, data, AskedModel(DETECTOR, weights=how), "cpu") for how in TREATMENTS}
    return write_demo(Path(out), data, both, seed=seed, jobs=many, progress=progress)
