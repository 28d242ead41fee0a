"""Replay: frames recreated from the recipe equal those that the model received."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from helpers import small_recognition, small_run
from jostle import api
from jostle.core.schema import parse
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Group
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.metadata import About
from jostle.evaluation.runner.runner import run_benchmark
from jostle.reporting.analysis.replay import cell_of, corrupted_mask, order_for, screened, spans_of

CELL = "thumos14-c/black_frame:3"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screened")
    (folder / "videos").mkdir()
    small_run.run(small_run.write_videos(folder / "videos"), folder / "run")
    return folder / "run"


def check_replay(record: RunRecord, video: str, actions: Segments | None, seed: int) -> list[tuple[float, float]]:
    """Compare frames of a replay with those of the corruption itself, and return what is affected, in seconds."""
    with screened(record, video, CELL) as (footage, cell):
        pts, fps = footage.clean.pts, footage.clean.fps
        affected = corrupted_mask(record, video, CELL, pts, fps)
        clean = footage.clean.block(0, len(footage.clean))
        corrupted = footage.under(cell).block(0, len(footage.clean))
    expected = api.corrupt(clean.copy(), CELL, seed=seed, video_id=video, segments=actions, fps=float(fps))
    np.testing.assert_array_equal(corrupted, expected)
    np.testing.assert_array_equal((corrupted != clean).any(axis=(1, 2, 3)), affected)
    assert affected.sum() < len(affected)
    return spans_of(affected, pts, fps)


def test_replayed_frames_equal_the_corrupted_ones(run: Path) -> None:
    record = RunRecord.read(run)
    action = record.annotations.actions["b"]
    (start, end), *_ = check_replay(record, "b", action, 0)
    assert action.start[0] < start < end < action.end[0]


def test_clean_cell_affects_no_frame(run: Path) -> None:
    record = RunRecord.read(run)
    assert not corrupted_mask(record, "a", "clean", np.arange(48) / 24, Fraction(24)).any()


def test_changed_meaning_of_a_cell_is_refused(run: Path, tmp_path: Path) -> None:
    record = RunRecord.read(run)
    metadata = record.about.to_dict()
    metadata["content"]["cells"][1]["done"][0]["value"] = 77
    changed = RunRecord(run, parse(About, metadata), record.scores)
    with pytest.raises(DataError, match="stood for something else"):
        cell_of(changed, "thumos14-c/black_frame:1")
    with pytest.raises(DataError, match="no cell 'fog:1'"):
        cell_of(record, "fog:1")


def test_missing_video_is_named(run: Path) -> None:
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


ACTIONS = Truth.from_segments({"a": Segments.from_pairs([(0.2, 0.6), (1.2, 1.9)]), "b": Segments.from_pairs([])})


@pytest.mark.parametrize(("task", "videos"), [("recognition", "abc"), ("frames", "a")])
def test_partially_corrupted_clips_are_replayed(task: str, videos: str, tmp_path: Path) -> None:
    films = small_recognition.write_videos(tmp_path)
    labels = small_recognition.data_of(films, task)
    data = replace(labels, annotations=(*labels.annotations, ACTIONS))
    recipe, predictor = {
        "recognition": (small_recognition.RECIPE, small_recognition.recognition_predictor),
        "frames": (small_recognition.FRAME_RECIPE, small_recognition.frame_predictor),
    }[task]
    recipe = replace(recipe, groups=(Group("main", cells=(CELL,)),))
    model = BenchmarkModel(predictor, model="weigher")
    run_benchmark(recipe, data, model, tmp_path / "run", cells=recipe.cells, seed=3)
    record = RunRecord.read(tmp_path / "run")
    for video in videos:  # one with two actions, one without any, and one that is not annotated
        spans = check_replay(record, video, ACTIONS.actions.get(video), 3)
        assert len(spans) == {"a": 2, "b": 0, "c": 1}[video]


def test_old_run_without_placements_says_how_to_update(recognition: RunRecord, tmp_path: Path) -> None:
    shutil.copytree(recognition.folder, tmp_path / "old")
    truth = tmp_path / "old" / "truth.json"
    stored = json.loads(truth.read_text())
    assert stored.pop("actions") == {}
    truth.write_text(json.dumps(stored))
    record = RunRecord.read(tmp_path / "old")
    with pytest.raises(DataError, match=r"where in video_0000 the action is; delete .*truth\.json, and the same"):
        order_for(record, "video_0000", CELL)
    assert order_for(recognition, "video_0000", CELL).segments is None  # the whole clip counts as one action
