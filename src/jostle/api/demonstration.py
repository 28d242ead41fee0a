"""The demo: the whole loop on the embedded data set, or every corruption on a video of one's own.

The loop generates films, corrupts them, runs two detectors and reports. One detector was trained on clean films, one
robustly; a third run is the first with damaged frames mended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.progress import Progress
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.clip import Clip
from jostle.corruptions.engine.apply import corrupted_frames
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.errors import DataError
from jostle.evaluation.inference.detection import DetectorGroup
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.together import run_together
from jostle.io.files.annotations import write_truth
from jostle.io.files.atomic import write_bytes
from jostle.io.files.video_ids import id_of
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer, viewing_codec
from jostle.mending.loading import BUNDLED
from jostle.models.weights.packaged import trained_weights, weights_file
from jostle.reporting.figures.sheet import draw_sheet, sheet_rows, write_png
from jostle.reporting.html.gallery import Exhibit, write_gallery
from jostle.reporting.html.report import write_report
from jostle.reporting.options import ReportConfig

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.inference.benchmark_model import BenchmarkModel

CLIP_SECONDS = 3
CLIP_QUALITY = 20
SEVERITY = 4

# The order of the page: from the sensor to the network to time; families of other packages come after.
FAMILIES = (
    *("noise", "blur", "weather", "light", "camera", "occlusion", "digital"),
    *("compression", "transmission", "order", "rate", "mix"),
)


@dataclass(frozen=True)
class Exhibition:
    """Files that the gallery consists of."""

    page: Path  # holds everything
    sheet: Path  # every corruption at every severity, as a picture
    notes: dict[str, str]  # remarks by name of the corruption


def write_exhibition(
    folder: Path,
    clean: Clip,
    video_id: str,
    about: str,
    *,
    seed: int = 0,
    remark: Callable[[Clip], str] = lambda _: "",
    progress: Progress | None = None,
) -> Exhibition:
    """Corrupt a clip every way there is.

    Args:
        about: what the clip is, for the page.
        remark: returns the remark on a corrupted clip.
    """
    clips = folder / "clips"
    exhibits = []
    names = sorted(corruptions, key=_place)
    for done, kind in enumerate(names):
        if progress:
            progress(done, len(names))
        spec = Spec.parse(f"{kind}:{SEVERITY}")
        corrupted = clean.with_frames(corrupted_frames(clean, [spec], seed=seed, video_id=video_id))
        path = save_clip(corrupted, clips / f"{kind}.mp4")
        corruption = corruptions[kind]
        summary = corruption.summary.replace("`", "")
        exhibits.append(Exhibit(kind, corruption.family, corruption.level, summary, path, remark(corrupted)))
    rows = sheet_rows(clean, [Spec.parse(kind) for kind in corruptions], seed=seed)
    sheet = write_png(draw_sheet(rows, ["clean", *"12345"]), folder / "sheet.png")
    page = write_gallery(folder / "gallery.html", exhibits, save_clip(clean, clips / "clean.mp4"), sheet, about=about)
    return Exhibition(page, sheet, {exhibit.name: exhibit.note for exhibit in exhibits if exhibit.note})


def save_clip(clip: Clip, path: Path) -> Path:
    """Write a clip for people to look at."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path, size=clip.size, fps=clip.fps, codec=viewing_codec(), quality=CLIP_QUALITY) as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)
    return path


def leave_films(folder: Path, data: Dataset) -> Path:
    """Write the first films of a data set and their annotations into a folder of their own, to try things on.

    Such a folder is a data set as well: `--dataset folder --data demo/films`.
    """
    truth = data.at_hand().truth
    names = truth.videos[:FILMS]
    films = folder / "films"
    films.mkdir(parents=True, exist_ok=True)
    for name in names:
        write_bytes(films / data.videos[name].name, [data.videos[name].read_bytes()])
    write_truth(truth.of_videos(names), films / "truth.json")
    return films


def example_clip(data: Dataset) -> tuple[str, Clip]:
    """The first action of the first video that lasts about as long as a clip."""
    truth = data.at_hand().truth
    row = int(abs(truth.end - truth.start - CLIP_SECONDS).argmin())
    name = truth.videos[truth.video[row]]
    with Reader(data.videos[name]) as reader:
        length = round(CLIP_SECONDS * float(reader.fps))
        lo = max(min(round(float(truth.start[row]) * float(reader.fps)), len(reader) - length), 0)
        return name, Clip.at_rate(reader.block(lo, lo + length), reader.fps)


def _place(kind: str) -> tuple[int, str, str]:
    family = corruptions[kind].family
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), family, kind


DETECTOR = "temporalmaxer_puppets"  # the fastest on a CPU
EXTRACTOR = "puppet_net"
BENCHMARK = "puppets-c"
# Weights, and the inspector whose damaged frames are mended, if any.
HOW: dict[str, tuple[str, str | None]] = {
    "clean": ("clean", None),
    "robust": ("robust", None),
    "mended": ("clean", BUNDLED),
}
# The short demo: few films, and of each kind of corruption the longest placement.
FILMS = 6
FEW = 2  # those that are only left to try things on; they have most classes
KINDS = ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
SHORT = tuple(f"thumos14-c/{kind}:3" for kind in KINDS)

NEXT = (
    "jostle demo VIDEO",
    "jostle corrupt VIDEO -c thumos14-c/black_frame:3 -o corrupted.mp4",
    "jostle sheet VIDEO -c fog -c motion_blur -c packet_loss -o sheet.png",
)
StageProgress = Callable[[str, int, int], None]  # what is being done, and how far it is


@dataclass(frozen=True)
class Demo(Result):
    """Results of the demo."""

    json_keys = ("report", "gallery", "clip", "runs", "results")

    report: Path  # compares the runs
    clip: Path  # some seconds of a film, clean
    gallery: Path | None  # a page that shows every corruption; None where the demo was to be short
    runs: dict[str, Path]  # the folder of each run, by how its detector was trained, or `mended`
    results: dict[str, dict[str, Any]]  # the scores of each, as its run has them

    def tables(self) -> tuple[Table, ...]:
        """Return the cells and means of each run side by side."""
        results = list(self.results.values())
        heads = ("mended" if how == "mended" else f"trained {how}" for how in self.results)
        columns = (Column(results[0]["metric"], key="cell"), *(Column(head, "percent") for head in heads))
        keys = {"clean": "clean", "corrupted, mean": "mean_corrupted", "relative robustness": "relative_robustness"}
        clean, *means = [(name, *(one[key] for one in results)) for name, key in keys.items()]
        cells = [
            (some[0]["cell"], *(cell["value"] for cell in some))
            for some in zip(*(one["cells"] for one in results), strict=True)
        ]
        return (Table("", columns, (clean, *cells, *means)),)

    def notes(self) -> tuple[str, ...]:
        """Return what was left out, and what to look at and try next."""
        short = "on 6 of 60 films and 5 of 15 cells; the report has the intervals, and --full takes them all"
        first = short if self.gallery is None else f"every corruption there is: {self.gallery}"
        folders = " ".join(map(str, self.runs.values()))
        return (
            first,
            f"the videos, clean and corrupted side by side: jostle view {folders}",
            "next, on a video of yours:",
            *(f"  {command}" for command in NEXT),
            "the report, to be opened in a browser:",
        )

    def written(self) -> tuple[Path, ...]:
        """Return the path of the report."""
        return (self.report,)


def write_demo(
    folder: Path,
    data: Dataset,
    models: Mapping[str, BenchmarkModel],
    *,
    full: bool = True,
    seed: int = 0,
    jobs: int = 1,
    progress: StageProgress | None = None,
) -> Demo:
    """Run the shipped detectors on the videos of a data set, each into `<folder>/<how>/`; write a page.

    Args:
        models: the detectors by treatment; `mended` is the clean one, mended.
        full: all cells of the benchmark, and a page of every corruption; otherwise the hardest cell of each kind.
    """

    def stage(what: str) -> Progress:
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
        progress=stage(f"running {len(cells)} cells of each"),
    )
    report = write_report(
        ReportConfig(list(folders.values()), folder / "report.html", progress=stage("writing the report"))
    )
    leave_films(folder, data)
    name, clip = example_clip(data)
    clip_path = save_clip(clip, folder / "clips" / "clean.mp4")
    gallery = None
    if full:
        callback = stage("corrupting a film")
        gallery = write_exhibition(folder, clip, name, "the clean film", seed=seed, progress=callback).page
    return Demo(report, clip_path, gallery, folders, {how: run.scores for how, run in runs.items()})


def _models(kinds: tuple[str, ...]) -> DetectorGroup:
    """The shipped extractor and detectors, one thread each: the bits then do not depend on the machine."""
    from jostle.mending.loading import MendingOptions
    from jostle.models.checkpoints import read_note, read_weights
    from jostle.models.detection.detector import make_detector
    from jostle.models.devices import one_thread
    from jostle.models.loading.extractors import load_extractor

    detectors = {}
    for how in kinds:
        path = trained_weights(DETECTOR, HOW[how][0])
        names: list[str] = read_note(path, "classes", [])
        detectors[how] = make_detector(DETECTOR, weights=path, class_names=names)
    mending = {how: MendingOptions(mend).get("cpu") for how in kinds if (mend := HOW[how][1]) is not None}
    extractor = load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR)))
    return DetectorGroup(extractor, detectors, one_thread, mending=mending)


LONGEST_SIDE = 320  # of the clip on show: forty-eight of them are on one page
STRIDE = 4

Features = npt.NDArray[Any]


@dataclass(frozen=True)
class VideoDemo(Result):
    """Results of the demo on a user's video.

    Attributes:
        gallery: a page that shows every corruption.
        sheet: the same as a picture, at every severity.
        shifts: distance of corrupted from clean features, by the name of the corruption: 1 is the median distance of
            two moments of the clean clip. Empty without torch, and for clips too short or without motion.
    """

    gallery: Path
    sheet: Path
    shifts: dict[str, float]

    def tables(self) -> tuple[Table, ...]:
        """Return five of the strongest and of the weakest corruptions."""
        order = sorted(self.shifts, key=self.shifts.__getitem__, reverse=True)
        columns = (Column("severity 4"), Column("moves features of puppet_net by", "decimal", 2, key="shift"))
        ends = order if len(order) <= 10 else (*order[:5], *order[-5:])
        note = "five of the strongest and of the weakest; 1 is as far as two moments of the video are apart"
        return (Table("", columns, tuple((name, self.shifts[name]) for name in ends), (note,) if order else ()),)

    def notes(self) -> tuple[str, ...]:
        """Return what else to look at."""
        sheet = f"every corruption at every severity, as a picture: {self.sheet}"
        return (sheet, "the page, to be opened in a browser:")

    def written(self) -> tuple[Path, ...]:
        """Return the path of the page."""
        return (self.gallery,)


def show_video(
    video: Path, folder: Path, *, seed: int = 0, progress: Callable[[str, int, int], None] | None = None
) -> VideoDemo:
    """Apply every corruption to the middle of a video, and write the page."""
    folder.mkdir(parents=True, exist_ok=True)
    clip = _middle(video)
    gauge = _Gauge.of(clip)
    shifts: list[float] = []

    def remark(corrupted: Clip) -> str:
        if gauge is None:
            return ""
        shifts.append(gauge.shift(corrupted))
        return f"moves features of {EXTRACTOR} by {shifts[-1]:.2f}"

    def advance(done: int, total: int) -> None:
        if progress:
            progress("corrupting the video", done, total)

    about = f"{CLIP_SECONDS} s from the middle of {video.name}"
    if gauge is not None:
        about += "; 1 is the distance of two moments of it for the extractor, which was trained on puppets"
    exhibition = write_exhibition(folder, clip, id_of(video), about, seed=seed, remark=remark, progress=advance)
    return VideoDemo(exhibition.page, exhibition.sheet, dict(zip(exhibition.notes, shifts, strict=True)))


def _middle(video: Path) -> Clip:
    with Reader(video) as reader:
        if len(reader) == 0:
            raise DataError(f"{video}: has no frames")
        length = min(max(round(CLIP_SECONDS * float(reader.fps)), 1), len(reader))
        lo = (len(reader) - length) // 2
        height, width = reader.size
        scale = min(LONGEST_SIDE / max(height, width), 1.0)
        size = max(round(width * scale / 2) * 2, 2), max(round(height * scale / 2) * 2, 2)
        frames = [_resized(frame, size) for at in range(lo, lo + length) for frame in reader.block(at, at + 1)]
        return Clip.at_rate(np.stack(frames), reader.fps)


def _resized(frame: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[Any]:
    return cv2.resize(frame, size, interpolation=cv2.INTER_AREA)


class _Gauge:
    """Measures by the features of a clean clip how far a corrupted one has moved."""

    def __init__(self, extractor: Callable[[Any], Features], frames: int, clean: Features, unit: float) -> None:
        self._extractor, self._frames, self._clean, self._unit = extractor, frames, clean, unit

    @classmethod
    def of(cls, clip: Clip) -> _Gauge | None:
        """None where nothing can be measured."""
        try:
            from jostle.models.checkpoints import read_weights
            from jostle.models.loading.extractors import load_extractor
        except ImportError:
            return None
        extractor = load_extractor(EXTRACTOR, weights=read_weights(weights_file(EXTRACTOR)))
        windows = _windows(clip, extractor.spec.frames)
        if len(windows) < 2:
            return None
        clean = extractor(windows)
        apart = np.linalg.norm(clean[:, None] - clean[None], axis=2)[np.triu_indices(len(clean), 1)]
        unit = float(np.median(apart))
        return cls(extractor, extractor.spec.frames, clean, unit) if unit > 0 else None

    def shift(self, corrupted: Clip) -> float:
        """The mean over windows, in units of what two clean moments are apart."""
        features = self._extractor(_windows(corrupted, self._frames))
        length = min(len(features), len(self._clean))
        return float(np.linalg.norm(features[:length] - self._clean[:length], axis=1).mean() / self._unit)


def _windows(clip: Clip, frames: int) -> npt.NDArray[Any]:
    starts = range(0, len(clip) - frames + 1, STRIDE)
    return np.stack([clip.frames[at : at + frames] for at in starts]) if starts else np.empty((0,), np.uint8)
