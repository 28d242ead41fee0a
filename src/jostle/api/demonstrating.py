"""A demonstration: the whole loop at once, or what can be shown of a video of one's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.data import load_dataset
from jostle.loading.installed import need_torch
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.demo.loop import Demo
    from jostle.demo.own_video import VideoDemo

Progress = Callable[[str, int, int], None]


def demo(
    out: str | Path = "demo",
    *,
    full: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Demo:
    """The whole loop on the embedded data set: films made, corrupted, looked at by two detectors, and scored.

    One was trained on clean films, one to stand firm; the third run is the first with struck frames mended.

    Args:
        out: folder for three runs and a report about them.
        full: all 60 test films, all 15 cells, and a page that shows every corruption, which takes minutes. Otherwise
            six films and the hardest cell of each of five kinds: the same story, with wider intervals.
        seed: of the films and of all corruptions.
        jobs: processes; by default one a core.
        progress: called with (what is being done, how much is done, how much there is).
    """
    need_torch("the demo")
    from jostle.benchmarks.recipe import benchmarks
    from jostle.demo.loop import BENCHMARK, DETECTOR, FILMS, HOW, write_demo
    from jostle.loading.asked import AskedModel
    from jostle.running.contestants import contestant_for

    many = cores() if jobs is None else jobs
    told = None if progress is None else partial(progress, "making films")
    data = load_dataset("puppets", "test", seed=seed, jobs=many, progress=told, first=None if full else FILMS)
    recipe = benchmarks[BENCHMARK]
    every = {
        how: contestant_for(recipe, data, AskedModel(DETECTOR, weights=weights, mend=mend), "cpu")
        for how, (weights, mend) in HOW.items()
    }
    return write_demo(Path(out), data, every, full=full, seed=seed, jobs=many, progress=progress)


def demo_video(
    video: str | Path, out: str | Path = "demo", *, seed: int = 0, progress: Progress | None = None
) -> VideoDemo:
    """Every corruption on three seconds from the middle of a video, on one page.

    With torch installed each is given how far it moves what the shipped extractor sees. That extractor was trained on
    puppets, so this says how strong a knock is, and nothing about a model of yours.

    Args:
        out: folder for the page, the clips and a contact sheet.
    """
    from jostle.demo.own_video import show_video

    return show_video(Path(video), Path(out), seed=seed, progress=progress)
