"""The whole loop on the embedded data set: films are knocked about and looked at by two detectors, one trained on clean
films and one trained to stand firm; and by the first again, with struck frames mended before it looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.demo.gallery import example_clip, save_clip, write_exhibition
from jostle.evaluation.inference.sweep import Models
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.together import run_together
from jostle.mending.loading import OWN
from jostle.models.weights.shipped import trained_weights, weights_file
from jostle.reporting.html.report import write_report

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.runner.runner import Contestant

DETECTOR = "temporalmaxer_puppets"  # the fastest on a CPU
EXTRACTOR = "puppet_net"
BENCHMARK = "puppets-c"
# Weights, and what says which frames were struck, where what these touch is replaced.
HOW: dict[str, tuple[str, str | None]] = {
    "clean": ("clean", None),
    "robust": ("robust", None),
    "mended": ("clean", OWN),
}
# The story in a minute: few films, and of each kind of knock the longest.
FILMS = 6
KINDS = ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
SHORT = tuple(f"thumos14-c/{kind}:3" for kind in KINDS)

Progress = Callable[[str, int, int], None]  # what is being done, and how far it is


@dataclass(frozen=True)
class Demo:
    """What the demo made.

    Attributes:
        report: compares the runs.
        clip: some seconds of a film, clean.
        gallery: a page that shows every corruption; None where the demo was to be short.
        runs: the folder of each run, by how its detector was trained, or `mended`.
        results: the scores of each, as its run has them.
    """

    report: Path
    clip: Path
    gallery: Path | None
    runs: dict[str, Path]
    results: dict[str, dict[str, Any]]


def write_demo(
    folder: Path,
    data: Dataset,
    contestants: Mapping[str, Contestant],
    *,
    full: bool = True,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Demo:
    """Run the shipped detectors on the videos of a data set, each into `<folder>/<how>/`; write a page.

    Args:
        contestants: what each detector is known by, by how it was trained; `mended` is the clean one, mended.
        full: all cells of the benchmark, and a page of every corruption; otherwise the hardest cell of each kind.
    """

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda done, total: progress(what, done, total) if progress else None

    folder.mkdir(parents=True, exist_ok=True)
    recipe = benchmarks[BENCHMARK]
    cells = select_cells(recipe, None if full else SHORT)
    folders = {how: folder / how for how in contestants}
    runs = run_together(
        recipe,
        data,
        contestants,
        partial(_models, tuple(contestants)),
        folders,
        cells=cells,
        seed=seed,
        jobs=jobs,
        progress=tell(f"looking at {len(cells)} states of each"),
    )
    report = write_report(list(folders.values()), folder / "report.html", progress=tell("writing the report"))
    name, clip = example_clip(data)
    shown = save_clip(clip, folder / "clips" / "clean.mp4")
    gallery = None
    if full:
        told = tell("knocking a film about")
        gallery = write_exhibition(folder, clip, name, "the film as it was made", seed=seed, progress=told).page
    return Demo(report, shown, gallery, folders, {how: run.scores for how, run in runs.items()})


def _models(asked: tuple[str, ...]) -> Models:
    """The shipped extractor and detectors, one thread each: the bits then do not depend on the machine."""
    from jostle.mending.loading import AskedMending
    from jostle.models.checkpoints import read_note, read_weights
    from jostle.models.detection.detector import load_detector
    from jostle.models.extractors.extractor import load_extractor
    from jostle.models.precision import one_thread

    detectors = {}
    for how in asked:
        path = trained_weights(DETECTOR, HOW[how][0])
        names: list[str] = read_note(path, "classes", [])
        detectors[how] = load_detector(DETECTOR, weights=path, class_names=names)
    mending = {how: AskedMending(mend).get("cpu") for how in asked if (mend := HOW[how][1]) is not None}
    extractor = load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR)))
    return Models(extractor, detectors, one_thread, mending=mending)
