"""Figures of DETAD (Alwassel et al., 2018), drawn from the JSON of a diagnosis and written as files.

They are as wide as a column of a paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle.core.schema import parse
from jostle.evaluation.results.record import CellDiagnosis
from jostle.reporting.analysis.error_profile import ProfileSide, side_of
from jostle.reporting.charts.bars import COLUMN, draw_impact, draw_missed_shares, draw_splits
from jostle.reporting.charts.characteristics import draw_missed, draw_sensitivity
from jostle.reporting.charts.drawing import stack
from jostle.reporting.charts.save import FORMATS, save_drawing

Json = Mapping[str, Any]


def draw_diagnosis(diagnosis: Json, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the three figures of DETAD, and return the paths of the files."""
    side = _read(diagnosis)
    return [
        *draw_false_positives(diagnosis, folder, formats),
        *save_drawing(draw_sensitivity(side), folder, "sensitivity_analysis", formats),
        *save_drawing(draw_missed(side), folder, "false_negative_analysis", formats),
    ]


def draw_false_positives(diagnosis: Json, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """The profile of the top-10G predictions, and what each kind of error costs."""
    sides = [("", _read(diagnosis))]
    drawing = stack("False positives", draw_splits(sides), draw_impact(sides, COLUMN))
    return save_drawing(drawing, folder, "false_positive_analysis", formats)


def draw_clean_against_corrupted(
    clean: Json,
    corrupted: Json,
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    names: tuple[str, str] = ("clean", "corrupted"),
) -> list[Path]:
    """Two profiles side by side, what each kind of error costs in both, and what is missed in both."""
    sides = [(name, _read(one)) for name, one in zip(names, (clean, corrupted), strict=True)]
    panels = draw_splits(sides), draw_impact(sides, COLUMN), draw_missed_shares(sides)
    drawing = stack(f"{names[0]} against {names[1]}", *panels)
    return save_drawing(drawing, folder, "clean_against_corrupted", formats)


def _read(diagnosis: Json) -> ProfileSide:
    return side_of(parse(CellDiagnosis, diagnosis))
