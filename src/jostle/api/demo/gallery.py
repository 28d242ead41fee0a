"""Every corruption there is, on some seconds of one video: clips, a contact sheet, and a page that holds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.core.types.clip import Clip
from jostle.corruptions.engine.apply import corrupted_frames
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer
from jostle.reporting.figures.gallery import Exhibit, write_gallery
from jostle.reporting.figures.gallery_cells import sheet_rows
from jostle.reporting.figures.sheet import draw_sheet, write_png

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset

CLIP_SECONDS = 3
CLIP_QUALITY = 20
SEVERITY = 4

# The order of the page: from the sensor to the network to time; families of other packages come after.
FAMILIES = (
    *("noise", "blur", "weather", "light", "camera", "occlusion", "digital"),
    *("compression", "transmission", "order", "rate", "mix"),
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Exhibition:
    """Files that the gallery consists of.

    Attributes:
        page: holds everything.
        sheet: every corruption at every severity, as a picture.
        notes: remarks by name of the corruption.
    """

    page: Path
    sheet: Path
    notes: dict[str, str]


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
    with Writer(path, size=clip.size, fps=clip.fps, quality=CLIP_QUALITY) as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)
    return path


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
