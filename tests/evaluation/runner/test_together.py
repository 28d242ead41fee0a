"""Several models in one run: the same detections as one run per model, at a lower cost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from helpers.numpy_extractor import SumDetector, TwoParts, write_video
from jostle.core.types import Segments, Truth
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import DetectorGroup, FeatureDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.inference.video_detection import ByFeatures, detect_videos
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell, Group, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.together import run_together
from jostle.features.folder import CorruptionOptions, extract_video
from jostle.features.options import ReleasedBug, Rule
from jostle.mending.finders.known import KnownDamage

NAMES = ("thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "thumos14-c/packet_loss:2", "freeze:3")
CELLS = (
    CLEAN_CELL,
    *(Cell(name, (name,), None, "main", True) for name in NAMES),
    Cell("black_frame:1@at:20%x3", ("black_frame:1",), "at:20%x3", "main", True),
)
ACTIONS = {"a": [[0.4, 1.4]], "b": [[0.2, 0.9], [1.1, 2.2]], "c": [[0.0, 2.0]]}


def models() -> DetectorGroup:
    return DetectorGroup(TwoParts(8, 2), {"plus": SumDetector(), "minus": SumDetector(-1.0)})


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    return {name: write_video(folder / f"{name}.mkv", 60, seed=seed) for seed, name in enumerate("abc")}


SEGMENTS = {name: Segments.from_pairs(pairs) for name, pairs in ACTIONS.items()}


def predict(videos: dict[str, Path], cells: tuple[Cell, ...]) -> dict[str, VideoResult[dict[str, Segments]]]:
    predictor = models()
    return {name: predictor(VideoJob(name, path, cells, 3, SEGMENTS[name])) for name, path in videos.items()}


def test_each_cell_equals_the_corrupted_video(videos: dict[str, Path]) -> None:
    results = predict(videos, CELLS)
    for cell in CELLS:
        corruption = CorruptionOptions(cell.specs, cell.placement, seed=3, segments=SEGMENTS)
        predictors = detect_videos(ByFeatures(SumDetector(), TwoParts(8, 2), corruption), videos)
        scores = [results[name].outputs[cell.name]["plus"].score[0] for name in "abc"]
        assert scores == predictors.score.tolist()
        assert [results[name].outputs[cell.name]["minus"].score[0] for name in "abc"] == (-predictors.score).tolist()


@pytest.mark.parametrize(
    ("rule", "faults"),
    [("released", ()), ("released-json", ("skipped-window",)), ("released", ("early-row", "skipped-window"))],
)
def test_each_cell_reproduces_the_released_programs(
    videos: dict[str, Path], rule: Rule, faults: tuple[ReleasedBug, ...]
) -> None:
    predictor = replace(models(), rule=rule, reproduce_bugs=faults)
    differences = 0
    for name in "ab":
        path = videos[name]
        result = predictor(VideoJob(name, path, CELLS, 3, SEGMENTS[name]))
        rows = (60 - 8 - (rule == "released-json")) // 2
        assert result.clean.joined == rows
        assert result.cells.joined < rows * (len(CELLS) - 1)  # not every window is computed again
        for cell in CELLS:
            corruption = CorruptionOptions(cell.specs, cell.placement, seed=3, segments=SEGMENTS)
            arguments = {"video_id": name, "corrupting": corruption, "rule": rule}
            features = extract_video(path, TwoParts(8, 2), reproduce_bugs=faults, **arguments)[0].features
            assert result.outputs[cell.name]["plus"].score[0] == float(features.sum())
            differences += not np.array_equal(features, extract_video(path, TwoParts(8, 2), **arguments)[0].features)
    assert bool(differences) == bool(faults)


def test_videos_are_decoded_and_corrupted_frames_encoded_once(videos: dict[str, Path]) -> None:
    results = predict(videos, CELLS)
    for result in results.values():
        assert result.clean.decoded == result.clean.seen == 60
        assert result.cells.decoded == 0
    more_results = predict(videos, (*CELLS, Cell("more", ("thumos14-c/black_frame:2",), None, "main", True)))
    for name, result in more_results.items():
        assert result.cells.seen == results[name].cells.seen  # the same black frame
        assert result.cells.joined > results[name].cells.joined


RECIPE = Recipe(
    name="small-c",
    version=1,
    dataset="folder",
    subset="test",
    task="detection",
    metric="mean_ap",
    protocol="thumos14",
    groups=(Group("main", cells=NAMES),),
)


def run_both(videos: dict[str, Path], folder: Path, counts: list[int] | None = None) -> dict[str, Run]:
    data = Dataset("folder", "test", Path("data"), (Truth.from_segments(SEGMENTS),), videos)
    benchmark_models = {name: BenchmarkModel(predictors[name], model=name) for name in ("plus", "minus")}
    folders = {name: folder / name for name in benchmark_models}

    def record(done: int, total: int) -> None:
        if counts is not None:
            counts.append(done)

    return run_together(RECIPE, data, benchmark_models, models, folders, cells=select_cells(RECIPE), progress=record)


predictors = {
    name: partial(FeatureDetectionPredictor, TwoParts(8, 2), SumDetector(sign))
    for name, sign in (("plus", 1.0), ("minus", -1.0))
}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.json"))}


def test_joint_runs_equal_separate_runs(videos: dict[str, Path], tmp_path: Path) -> None:
    counts: list[int] = []
    done = run_both(videos, tmp_path, counts)
    assert counts == [1, 2, 3]
    assert done["minus"].clean == done["plus"].clean
    data = Dataset("folder", "test", Path("data"), (Truth.from_segments(SEGMENTS),), videos)
    for name in ("plus", "minus"):
        model = BenchmarkModel(predictors[name], model=name)
        run_benchmark(RECIPE, data, model, tmp_path / "alone" / name, cells=select_cells(RECIPE))
        assert content(tmp_path / "alone" / name) == content(tmp_path / name)


def test_a_lost_run_is_repeated(videos: dict[str, Path], tmp_path: Path) -> None:
    run_both(videos, tmp_path)
    before = content(tmp_path / "minus")
    shutil.rmtree(tmp_path / "minus")
    run_both(videos, tmp_path)
    assert content(tmp_path / "minus") == before


def test_a_bad_video_is_skipped_in_every_run(videos: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    done = run_both({**videos, "b": broken}, tmp_path / "runs")
    assert [[failure["video"] for failure in run.failures] for run in done.values()] == [["b"], ["b"]]


def test_mended_and_unmended_detectors_share_one_group(videos: dict[str, Path]) -> None:
    job = VideoJob("a", videos["a"], CELLS, 3, SEGMENTS["a"])
    group = DetectorGroup(
        TwoParts(8, 2),
        {"plain": SumDetector(), "mended": SumDetector(), "more": SumDetector(-1.0)},
        mending={"mended": KnownDamage()},
    )
    result = group(job)
    plain = DetectorGroup(TwoParts(8, 2), {"": SumDetector()})(job)
    mended = FeatureDetectionPredictor(TwoParts(8, 2), SumDetector(), mending=KnownDamage())(job)
    assert result.of("more").mended is result.of("plain").mended is None
    for cell in CELLS:
        assert result.of("plain").outputs[cell.name].score.tolist() == plain.outputs[cell.name][""].score.tolist()
        assert result.of("mended").outputs[cell.name].score.tolist() == mended.outputs[cell.name].score.tolist()
        assert np.array_equal(result.of("mended").mended[cell.name].damaged, mended.mended[cell.name].damaged)
    corrupted = CELLS[1].name
    assert result.of("plain").outputs[corrupted].score.tolist() != result.of("mended").outputs[corrupted].score.tolist()
    assert (result.clean.decoded, result.clean.seen) == (60, 60)  # once for all of them
    assert result.clean.joined == plain.clean.joined
