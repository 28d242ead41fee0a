"""Figures of inspections: frames above the curve, and what counts as damaged."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from jostle.core.types.inspection import Inspection
from jostle.reporting.charts.inspections import LEFT, WIDE, draw_inspection
from jostle.reporting.charts.save import MARGIN, save_drawing


def inspected(frames: int) -> Inspection:
    probabilities = np.where(np.arange(frames) % 10 < 2, 0.9, 0.1)
    small = tuple(np.full((12, 16, 3), colour, np.uint8) for colour in ((200, 0, 0), (0, 0, 200))) if frames else ()
    kinds = np.full(frames, "clean")
    return Inspection(probabilities, 0.5, np.arange(frames) / 25, Fraction(25), False, "x", "f", kinds, small)


def test_damaged_stretches_are_marked_to_their_end() -> None:
    shapes = list(draw_inspection(inspected(20), "a <video>").shapes)
    boxes = [one.attributes for one in shapes if one.kind == "damaged"]
    assert [(box["x"] - LEFT) / WIDE for box in boxes] == pytest.approx([0, 0.5])
    assert [box["width"] / WIDE for box in boxes] == pytest.approx([0.1, 0.1])
    (curve,) = (one for one in shapes if one.tag == "path")
    assert len(curve.points) == 2 * 20
    assert next(one.words for one in shapes if one.tag == "text") == "a <video>"


def test_frames_are_in_the_picture_and_in_the_vectors(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawing = draw_inspection(inspected(20), "")
    png, svg = save_drawing(drawing, tmp_path, "inspection", ["png", "svg"])
    picture = cv2.imread(str(png))[:, :, ::-1]
    scale = picture.shape[1] / (drawing.width + 2 * MARGIN)
    for share, colour in ((0.25, (200, 0, 0)), (0.75, (0, 0, 200))):
        at = picture[int((60 + MARGIN) * scale), int((LEFT + share * WIDE + MARGIN) * scale)]
        assert np.abs(at.astype(int) - colour).max() <= 2
    assert svg.read_text(encoding="utf-8").count('href="data:image/png;base64,') == 2


def test_video_without_frames_is_drawn() -> None:
    assert draw_inspection(inspected(0), "").svg()
