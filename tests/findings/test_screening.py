"""Frames made again from the recipe are those that the model was shown."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from jostle import api
from jostle.errors import DataError
from jostle.findings.record import RunRecord
from jostle.findings.screening import cell_of, order_for, screened, spans_of, struck_frames

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "evaluation"))

import small_run

CELL = "thumos14-c/black_frame:3"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screened")
    (folder / "videos").mkdir()
    small_run.run(small_run.write_videos(folder / "videos"), folder / "run")
    return folder / "run"


def test_frames_are_struck_again_as_they_were(run: Path) -> None:
    record = RunRecord.read(run)
    with screened(record, "b", CELL) as (footage, cell):
        pts, fps = footage.clean.pts, footage.clean.fps
        struck = struck_frames(record, "b", CELL, pts, fps)
        clean = footage.clean.block(0, len(footage.clean))
        made = footage.under(cell).block(0, len(footage.clean))
        told = api.corrupt(clean.copy(), CELL, seed=0, video_id="b", segments=record.truth.actions["b"], fps=float(fps))
    np.testing.assert_array_equal(made, told)
    np.testing.assert_array_equal((made != clean).any(axis=(1, 2, 3)), struck)
    assert 0 < struck.sum() < len(struck)
    (start, end), *_ = spans_of(struck, pts, fps)
    action = record.truth.actions["b"]
    assert action.start[0] < start < end < action.end[0]


def test_the_clean_cell_strikes_nothing(run: Path) -> None:
    record = RunRecord.read(run)
    assert not struck_frames(record, "a", "clean", np.arange(48) / 24, Fraction(24)).any()


def test_another_meaning_of_a_name_is_refused(run: Path, tmp_path: Path) -> None:
    record = RunRecord.read(run)
    about = json.loads(json.dumps(record.about))
    about["content"]["cells"][1]["done"][0]["value"] = 77
    changed = RunRecord(run, about, record.scores)
    with pytest.raises(DataError, match="stood for something else"):
        cell_of(changed, "thumos14-c/black_frame:1")
    with pytest.raises(DataError, match="no cell 'fog:1'"):
        cell_of(record, "fog:1")


def test_a_video_that_is_gone_is_named(run: Path) -> None:
    record = RunRecord.read(run)
    path = record.sources["c"]
    path.rename(path.with_suffix(".away"))
    try:
        with pytest.raises(DataError, match="c: the video is no longer at"):
            order_for(record, "c", CELL)
    finally:
        path.with_suffix(".away").rename(path)
    with pytest.raises(DataError, match="no video of this run"):
        order_for(record, "z", CELL)


def test_recognition_does_not_say_where_actions_are(recognition: RunRecord) -> None:
    with pytest.raises(DataError, match="does not keep where in video_0000 the action is"):
        order_for(recognition, "video_0000", CELL)
