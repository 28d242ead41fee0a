"""Contact sheets: rows of labelled pictures on one image, such as one corruption a row and one severity a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Clip, Frame
from jostle.core.types.segments import Segments
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import TimeStage, chain
from jostle.errors import BadValue, ResourceError
from jostle.io.files.atomic import replacing

INK, PALE, PAPER, MARK = (32, 34, 40), (120, 124, 132), (255, 255, 255), (224, 86, 36)
GAP = 6


@dataclass(frozen=True)
class Picture:
    """One cell of a sheet.

    Attributes:
        frame: (H, W, 3) RGB.
        corrupted: one boolean a frame, marked by a bar under the picture; empty draws nothing.
        curve: for time-level corruptions, the frame displayed at each time, drawn over the picture.
    """

    frame: Frame
    corrupted: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    curve: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True)
class SheetRow:
    """A line of a sheet: its name, what kind it is, and its pictures."""

    label: str
    kind: str
    pictures: Sequence[Picture | None]


def draw_sheet(rows: Sequence[SheetRow], columns: Sequence[str], *, width: int = 150, title: str = "") -> Frame:
    """The sheet as one RGB image: a column for each entry of `columns`, a line for each row."""
    if not rows:
        raise BadValue("a contact sheet needs at least one corruption")
    first = next(picture for picture in rows[0].pictures if picture is not None)
    height = max(round(width * first.frame.shape[0] / first.frame.shape[1]), 1)
    margin, head = 190, 34 + (34 if title else 0)
    sheet_width = margin + len(columns) * (width + GAP) + GAP
    sheet = np.full((head + len(rows) * (height + GAP) + GAP, sheet_width, 3), PAPER, np.uint8)
    if title:
        _write(sheet, title, (12, 30), 20, INK, weight=600)
    for c, name in enumerate(columns):
        _write(sheet, name, (margin + GAP + c * (width + GAP) + 2, head - 10), 15, PALE)
    for r, row in enumerate(rows):
        top = head + r * (height + GAP)
        _write(sheet, row.label, (12, top + height // 2), 15, INK, weight=500, limit=margin - 16)
        _write(sheet, row.kind, (12, top + height // 2 + 18), 12, PALE)
        for c, picture in enumerate(row.pictures):
            if picture is not None:
                left = margin + GAP + c * (width + GAP)
                sheet[top : top + height, left : left + width] = _cell(picture, width, height)
    return sheet


def png_of(image: Frame) -> bytes:
    """An RGB image as the bytes of a PNG."""
    _, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 7])
    return data.tobytes()


@dataclass(frozen=True, eq=False)
class Sheet:
    """A contact sheet that was not written anywhere; a notebook shows it."""

    image: Frame  # (H, W, 3) uint8 RGB

    def save(self, path: str | Path) -> Path:
        """Write it as a PNG."""
        return write_png(self.image, path)

    def _repr_png_(self) -> bytes:
        return png_of(self.image)


def write_png(image: Frame, path: str | Path) -> Path:
    """Write an RGB image under its final name only when it is complete."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise BadValue(f"{path}: a contact sheet is a PNG; give it a name that ends in .png")
    try:
        with replacing(path) as part:
            part.write_bytes(png_of(image))
    except OSError as error:
        raise ResourceError(f"{path}: cannot be written ({error.strerror}); check the folder and its room") from error
    return path


def _cell(picture: Picture, width: int, height: int) -> Frame:
    cell = np.array(cv2.resize(picture.frame, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    if len(picture.curve):
        _draw_curve(cell, picture.curve)
    if len(picture.corrupted) and not picture.corrupted.all():
        _draw_bar(cell, picture.corrupted)
    return cell


def _draw_curve(cell: Frame, curve: npt.NDArray[np.int64]) -> None:
    """Draw the index map: time to the right, displayed frame upwards."""
    height, width = cell.shape[:2]
    cell[:] = cell // 3
    n = len(curve)
    x = np.linspace(4, width - 5, n)
    y = height - 5 - curve / max(n - 1, 1) * (height - 10)
    cv2.polylines(cell, [np.stack([x, y], 1).round().astype(np.int32)], False, (255, 196, 84), 1, cv2.LINE_AA)


def _draw_bar(cell: Frame, corrupted: npt.NDArray[np.bool_]) -> None:
    """Draw a bar along the bottom that marks the corrupted part of the clip."""
    height, width = cell.shape[:2]
    cell[height - 6 :] = (210, 212, 216)
    column = np.arange(width) * len(corrupted) // width
    first = np.minimum((np.arange(width) + 1) * len(corrupted) // width, len(corrupted) - 1)
    cell[height - 6 :, corrupted[column] | corrupted[first]] = MARK


def _write(
    image: Frame, text: str, place: tuple[int, int], size: int, colour: tuple[int, int, int], *, weight: int = 400,
    limit: int | None = None,
) -> None:  # fmt: skip
    font = cv2.FontFace("sans")
    while limit and size > 9 and cv2.getTextSize((0, 0), text, (0, 0), font, size, weight)[2] > limit:
        size -= 1
    cv2.putText(image, text, place, colour, font, size, weight=weight)


SHEET_FRAMES = 96  # of a file, its middle: enough for the longest time-level corruption to show
Progress = Callable[[int, int], None]


def sheet_rows(
    clip: Clip,
    specs: Sequence[Spec],
    *,
    seed: int = 0,
    video_id: str = "",
    placement: str | Placement | None = None,
    segments: Segments | None = None,
    progress: Progress | None = None,
) -> list[SheetRow]:
    """One row a spec: the clip's middle frame clean, then at each severity."""
    middle = len(clip) // 2
    rows = []
    for done, spec in enumerate(specs):
        pictures = [Picture(clip.frames[middle])]
        for severity in range(1, len(spec.entry.values) + 1):
            pictures.append(
                _picture(clip, replace(spec, severity=severity), middle, seed, video_id, placement, segments)
            )
        label = f"{spec.profile}/{spec.name}" if spec.profile else spec.name
        rows.append(SheetRow(label, spec.corruption.family, pictures))
        if progress:
            progress(done + 1, len(specs))
    return rows


def _picture(
    clip: Clip,
    spec: Spec,
    middle: int,
    seed: int,
    video_id: str,
    placement: str | Placement | None,
    segments: Segments | None,
) -> Picture:
    timeline = Timeline.of(clip.pts, clip.fps, segments, seed=seed, video_id=video_id)
    masks = masks_for([spec], placement, timeline)
    stage = chain(ClipSource(clip), [spec], masks, seed=seed, video_id=video_id)
    frame = np.array(stage.block(middle, middle + 1)[0])
    curve = stage.indices if isinstance(stage, TimeStage) else np.zeros(0, np.int64)
    return Picture(frame, masks[0], curve)
