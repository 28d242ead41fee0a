"""The demo: the whole loop on the embedded data set. Films are made, knocked about and looked at by two detectors, one
trained on clean films and one trained to stand firm; then all corruptions there are, on a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.benchmarks.recipe import benchmarks
from jostle.benchmarks.selection import select_cells
from jostle.corrupting.corruption import corruptions
from jostle.looking.sweep import Models
from jostle.pages.report import write_report
from jostle.running.together import run_together
from jostle.shipped import TREATMENTS, trained_weights, weights_file

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.running.runner import Contestant
    from jostle.types.clip import Clip

DETECTOR = "temporalmaxer_puppets"  # the fastest on a CPU
EXTRACTOR = "puppet_net"
BENCHMARK = "puppets-c"
CLIP_SECONDS = 3
CLIP_QUALITY = 20

# The order of the page: from the sensor to the network to time.
FAMILIES = (
    *("noise", "blur", "weather", "light", "camera", "occlusion", "digital"),
    *("compression", "transmission", "order", "rate", "mix"),
)

Progress = Callable[[str, int, int], None]  # what is being done, and how far it is


@dataclass(frozen=True)
class Demo:
    """What the demo made.

    Attributes:
        report: compares the two runs.
        gallery: a page that shows every corruption.
        runs: the folder of each run, by how its detector was trained.
        results: the scores of each detector, as its run has them, by how it was trained.
    """

    report: Path
    gallery: Path
    runs: dict[str, Path]
    results: dict[str, dict[str, Any]]


def write_demo(
    folder: Path,
    data: Dataset,
    contestants: Mapping[str, Contestant],
    *,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Demo:
    """Run the shipped detectors on the videos of a data set, each into `<folder>/<how trained>/`; write two pages.

    Args:
        contestants: what each detector is known by, by how it was trained.
    """

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda done, total: progress(what, done, total) if progress else None

    folder.mkdir(parents=True, exist_ok=True)
    recipe = benchmarks[BENCHMARK]
    cells = select_cells(recipe)
    folders = {how: folder / how for how in contestants}
    runs = run_together(
        recipe,
        data,
        contestants,
        _models,
        folders,
        cells=cells,
        seed=seed,
        jobs=jobs,
        progress=tell(f"looking at {len(cells)} states of each"),
    )
    report = write_report(list(folders.values()), folder / "report.html", progress=tell("writing the report"))
    gallery = _gallery(folder, data, seed, tell("knocking a film about"))
    return Demo(report, gallery, folders, {how: run.scores for how, run in runs.items()})


def _models() -> Models:
    """The shipped extractor and both detectors, one thread each: the bits then do not depend on the machine."""
    from jostle.detectors.checkpoints import read_note, read_weights
    from jostle.detectors.detector import load_detector
    from jostle.models.extractor import load_extractor
    from jostle.models.threads import one_thread

    detectors = {}
    for how in TREATMENTS:
        path = trained_weights(DETECTOR, how)
        names: list[str] = read_note(path, "classes", [])
        detectors[how] = load_detector(DETECTOR, weights=path, class_names=names)
    return Models(load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR))), detectors, one_thread)


def _gallery(folder: Path, data: Dataset, seed: int, tell: Callable[[int, int], None]) -> Path:
    """Corrupt a clip every way there is; write the clips, a contact sheet and the page."""
    from jostle.corrupting.apply import corrupt_clip
    from jostle.corrupting.gallery import sheet_rows
    from jostle.corrupting.spec import Spec
    from jostle.figures.gallery import Exhibit, write_gallery
    from jostle.figures.sheet import draw_sheet, write_png
    from jostle.media.encode import Writer

    clips = folder / "clips"
    clips.mkdir(parents=True, exist_ok=True)
    name, clean = _clip(data)

    def save(clip: Clip, name: str) -> Path:
        path = clips / f"{name}.mp4"
        with Writer(path, size=clip.size, fps=clip.fps, quality=CLIP_QUALITY) as writer:
            for tick, frame in enumerate(clip.frames):
                writer.write(frame, tick)
        return path

    save(clean, "clean")
    exhibits = []
    names = list(corruptions)
    for done, kind in enumerate(sorted(names, key=lambda kind: FAMILIES.index(corruptions[kind].family))):
        tell(done, len(names))
        spec = Spec.parse(f"{kind}:4")
        path = save(corrupt_clip(clean, [spec], seed=seed, video_id=name), kind)
        found = corruptions[kind]
        exhibits.append(Exhibit(kind, found.family, found.level, found.summary.replace("`", ""), path))
    rows = sheet_rows(clean, [Spec.parse(kind) for kind in names], seed=seed)
    sheet = write_png(draw_sheet(rows, ["clean", *"12345"]), folder / "sheet.png")
    return write_gallery(folder / "gallery.html", exhibits, clips / "clean.mp4", sheet)


def _clip(data: Dataset) -> tuple[str, Clip]:
    """The first action of the first video that lasts about as long as a clip."""
    from jostle.media.decode import Reader
    from jostle.types.clip import Clip

    truth = data.truth
    row = int(abs(truth.end - truth.start - CLIP_SECONDS).argmin())
    name = truth.videos[truth.video[row]]
    with Reader(data.videos[name]) as reader:
        length = round(CLIP_SECONDS * float(reader.fps))
        lo = max(min(round(float(truth.start[row]) * float(reader.fps)), len(reader) - length), 0)
        return name, Clip.at_rate(reader.block(lo, lo + length), reader.fps)
