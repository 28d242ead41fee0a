"""The whole loop on the embedded data set: generate films, corrupt them, run two detectors, report.

One detector was trained on clean films, one robustly; a third run is the first with damaged frames mended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.demo.gallery import example_clip, save_clip, write_exhibition
from jostle.evaluation.inference.sweep import DetectorGroup
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.together import run_together
from jostle.mending.loading import BUNDLED
from jostle.models.weights.shipped import trained_weights, weights_file
from jostle.reporting.html.report import write_report

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.runner.runner import BenchmarkModel

DETECTOR = "temporalmaxer_puppets"  # the fastest on a CPU
EXTRACTOR = "puppet_net"
BENCHMARK = "puppets-c"
# Weights, and the inspector whose damaged frames are mended, if any.
HOW: dict[str, tuple[str, str | None]] = {
    "clean": ("clean", None),
    "robust": ("robust", None),
    "mended": ("clean", BUNDLED),
}
# The story in a minute: few films, and of each kind of knock the longest.
FILMS = 6
KINDS = ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
SHORT = tuple(f"thumos14-c/{kind}:3" for kind in KINDS)

Progress = Callable[[str, int, int], None]  # what is being done, and how far it is


@dataclass(frozen=True)
class Demo:
    """Results of the demo.

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
    models: Mapping[str, BenchmarkModel],
    *,
    full: bool = True,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Demo:
    """Run the shipped detectors on the videos of a data set, each into `<folder>/<how>/`; write a page.

    Args:
        models: the detectors by treatment; `mended` is the clean one, mended.
        full: all cells of the benchmark, and a page of every corruption; otherwise the hardest cell of each kind.
    """

    def stage(what: str) -> Callable[[int, int], None]:
        return lambda done, total: progress(what, done, total) if progress else None

    folder.mkdir(parents=True, exist_ok=True)
    recipe = benchmarks[BENCHMARK]
    cells = select_cells(recipe, None if full else SHORT)
    folders = {how: folder / how for how in models}
    runs = run_together(
        recipe,
        data,
        models,
        partial(_models, tuple(models)),
        folders,
        cells=cells,
        seed=seed,
        jobs=jobs,
        progress=stage(f"looking at {len(cells)} states of each"),
    )
    report = write_report(list(folders.values()), folder / "report.html", progress=stage("writing the report"))
    name, clip = example_clip(data)
    clip_path = save_clip(clip, folder / "clips" / "clean.mp4")
    gallery = None
    if full:
        callback = stage("knocking a film about")
        gallery = write_exhibition(folder, clip, name, "the film as it was made", seed=seed, progress=callback).page
    return Demo(report, clip_path, gallery, folders, {how: run.scores for how, run in runs.items()})


def _models(kinds: tuple[str, ...]) -> DetectorGroup:
    """The shipped extractor and detectors, one thread each: the bits then do not depend on the machine."""
    from jostle.mending.loading import MendingOptions
    from jostle.models.checkpoints import read_note, read_weights
    from jostle.models.detection.detector import load_detector
    from jostle.models.extractors.extractor import load_extractor
    from jostle.models.precision import one_thread

    detectors = {}
    for how in kinds:
        path = trained_weights(DETECTOR, HOW[how][0])
        names: list[str] = read_note(path, "classes", [])
        detectors[how] = load_detector(DETECTOR, weights=path, class_names=names)
    mending = {how: MendingOptions(mend).get("cpu") for how in kinds if (mend := HOW[how][1]) is not None}
    extractor = load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR)))
    return DetectorGroup(extractor, detectors, one_thread, mending=mending)
