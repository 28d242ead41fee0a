"""Cells of a contact sheet: one corruption a row, one severity a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jostle.core.types.clip import Clip
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, TimeStage, chain
from jostle.reporting.figures.sheet import Picture, SheetRow

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
