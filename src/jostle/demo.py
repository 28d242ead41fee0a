"""The demo: the whole loop on the embedded data set. Films are made, knocked about and looked at by two detectors, one
trained on clean films and one trained to stand firm; then all corruptions there are, on a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.benchmarks.recipe import benchmarks
from jostle.benchmarks.selection import select_cells
from jostle.corrupting.corruption import corruptions
from jostle.metrics.robustness import Robustness, robustness
from jostle.metrics.score import score
from jostle.shipped import TREATMENTS, detector_weights, weights_file

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.sweep import Models, Sweep
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
        page: shows every corruption.
        results: what is left of each detector's mean average precision, by how it was trained.
    """

    page: Path
    results: dict[str, Robustness]


def write_demo(folder: Path, data: Dataset, *, seed: int = 0, jobs: int = 1, progress: Progress | None = None) -> Demo:
    """Sweep the videos of a data set with the shipped detectors; write predictions, scores and a page.

    Every `<folder>/<how trained>/` then holds `predictions/<cell>.json` and `scores.json`.
    """
    from jostle.evaluation.sweep import sweep_videos

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda done, total: progress(what, done, total) if progress else None

    folder.mkdir(parents=True, exist_ok=True)
    cells = select_cells(benchmarks[BENCHMARK])
    told = tell(f"looking at {len(cells)} states of each")
    swept = sweep_videos(data.videos, data.truth, cells, _models, seed=seed, jobs=jobs, progress=told)
    results = {how: _scored(folder / how, data, swept, how) for how in TREATMENTS}
    return Demo(_page(folder, data, seed, tell("knocking a film about")), results)


def _models() -> Models:
    """The shipped extractor and both detectors, one thread each: the bits then do not depend on the machine."""
    from jostle.detectors.checkpoints import read_metadata, read_weights
    from jostle.detectors.detector import load_detector
    from jostle.evaluation.sweep import Models
    from jostle.models.extractor import load_extractor
    from jostle.models.threads import one_thread

    detectors = {}
    for how in TREATMENTS:
        path = detector_weights(DETECTOR, how)
        names = tuple(json.loads(read_metadata(path)["classes"]))
        detectors[how] = load_detector(DETECTOR, weights=path, class_names=names)
    return Models(load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR))), detectors, one_thread)


def _scored(folder: Path, data: Dataset, swept: Sweep, how: str) -> Robustness:
    from jostle.datasets.files import write_predictions
    from jostle.datasets.writing import write_text

    (folder / "predictions").mkdir(parents=True, exist_ok=True)
    recipe = benchmarks[BENCHMARK]
    assert recipe.protocol is not None
    values = {}
    for cell, found in swept.found[how].items():
        write_predictions(found, folder / "predictions" / f"{recipe[cell].slug}.json")
        values[cell] = score(found, data.truth, protocol=recipe.protocol, tious=recipe.tious).average_map
    clean = values.pop("clean")
    kept = robustness(clean, values)
    about = {"format": 1, "benchmark": BENCHMARK, "model": f"{DETECTOR}, trained {how}", "metric": recipe.measure}
    told: dict[str, Any] = about | kept.to_dict()
    for cell in told["cells"]:
        cell |= {"videos": len(swept.found[how][cell["cell"]].videos), "of": len(data.truth.videos)}
    write_text(folder / "scores.json", [json.dumps(told, indent=1), "\n"])
    return kept


def _page(folder: Path, data: Dataset, seed: int, tell: Callable[[int, int], None]) -> Path:
    """Corrupt a clip every way there is; write the clips, a contact sheet and the page."""
    from jostle.corrupting.apply import corrupt_clip
    from jostle.corrupting.gallery import sheet_rows
    from jostle.corrupting.spec import Spec
    from jostle.media.encode import Writer
    from jostle.report.gallery import Exhibit, write_gallery
    from jostle.report.sheet import draw_sheet, write_png

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
    return write_gallery(folder / "index.html", exhibits, clips / "clean.mp4", sheet)


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
