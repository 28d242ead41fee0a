"""A sweep: the same detections as looking at each corrupted video by itself, for less."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from helpers.numpy_extractor import TwoParts, write_video
from jostle.core.types import Segments, Truth
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.detection import DetectorGroup, FeatureDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.inference.video_detection import ByFeatures, detect_videos
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell, Group, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.runner import BenchmarkModel, Run, run_benchmark, run_together
from jostle.features.folder import CorruptionOptions, extract_video
from jostle.features.windows import ReleasedBug, Rule
from jostle.mending.damage_finders import Mending

NAMES = ("thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "thumos14-c/packet_loss:2", "freeze:3")
CELLS = (
    CLEAN_CELL,
    *(Cell(name, (name,), None, "main", True) for name in NAMES),
    Cell("black_frame:1@at:20%x3", ("black_frame:1",), "at:20%x3", "main", True),
)
ACTIONS = {"a": [[0.4, 1.4]], "b": [[0.2, 0.9], [1.1, 2.2]], "c": [[0.0, 2.0]]}


class Sums:
    """One segment a video, whose score tells its features apart."""

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def detect(self, features: np.ndarray, **facts: float) -> Segments:
        return Segments([0.0], [facts["duration"]], [0], [self.sign * float(features.sum())], ("action",))


def models() -> DetectorGroup:
    return DetectorGroup(TwoParts(8, 2), {"plus": Sums(), "minus": Sums(-1.0)})


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    return {name: write_video(folder / f"{name}.mkv", 60, seed=seed) for seed, name in enumerate("abc")}


SEGMENTS = {name: Segments.from_pairs(pairs) for name, pairs in ACTIONS.items()}


def looked(videos: dict[str, Path], cells: tuple[Cell, ...]) -> dict[str, VideoResult[dict[str, Segments]]]:
    detecting = models()
    return {name: detecting(VideoJob(name, path, cells, 3, SEGMENTS[name])) for name, path in videos.items()}


def test_each_cell_is_that_of_the_corrupted_video(videos: dict[str, Path]) -> None:
    found = looked(videos, CELLS)
    for cell in CELLS:
        corrupting = CorruptionOptions(cell.specs, cell.placement, seed=3, segments=SEGMENTS)
        alone = detect_videos(ByFeatures(Sums(), TwoParts(8, 2), corrupting), videos)
        scores = [found[name].outputs[cell.name]["plus"].score[0] for name in "abc"]
        assert scores == alone.score.tolist()
        assert [found[name].outputs[cell.name]["minus"].score[0] for name in "abc"] == (-alone.score).tolist()


@pytest.mark.parametrize(
    ("rule", "faults"),
    [("released", ()), ("released-json", ("skipped-window",)), ("released", ("early-row", "skipped-window"))],
)
def test_each_cell_is_as_the_released_programs_make_it(
    videos: dict[str, Path], rule: Rule, faults: tuple[ReleasedBug, ...]
) -> None:
    detecting = replace(models(), rule=rule, reproduce_bugs=faults)
    differ = 0
    for name in "ab":
        path = videos[name]
        found = detecting(VideoJob(name, path, CELLS, 3, SEGMENTS[name]))
        rows = (60 - 8 - (rule == "released-json")) // 2
        assert found.clean.joined == rows
        assert found.cells.joined < rows * (len(CELLS) - 1)  # not every window is computed again
        for cell in CELLS:
            corrupting = CorruptionOptions(cell.specs, cell.placement, seed=3, segments=SEGMENTS)
            about = {"video_id": name, "corrupting": corrupting, "rule": rule}
            whole = extract_video(path, TwoParts(8, 2), reproduce_bugs=faults, **about)[0].features
            assert found.outputs[cell.name]["plus"].score[0] == float(whole.sum())
            differ += not np.array_equal(whole, extract_video(path, TwoParts(8, 2), **about)[0].features)
    assert bool(differ) == bool(faults)


def test_a_video_is_decoded_once_and_struck_frames_are_seen_once(videos: dict[str, Path]) -> None:
    once = looked(videos, CELLS)
    for one in once.values():
        assert one.clean.decoded == one.clean.seen == 60
        assert one.cells.decoded == 0
    again = looked(videos, (*CELLS, Cell("more", ("thumos14-c/black_frame:2",), None, "main", True)))
    for name, one in again.items():
        assert one.cells.seen == once[name].cells.seen  # black is black
        assert one.cells.joined > once[name].cells.joined


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


def together(videos: dict[str, Path], folder: Path, seen: list[int] | None = None) -> dict[str, Run]:
    data = Dataset("folder", "test", Path("data"), (Truth.from_segments(SEGMENTS),), videos)
    both = {name: BenchmarkModel(alone[name], name) for name in ("plus", "minus")}
    folders = {name: folder / name for name in both}

    def tell(done: int, total: int) -> None:
        if seen is not None:
            seen.append(done)

    return run_together(RECIPE, data, both, models, folders, cells=select_cells(RECIPE), progress=tell)


alone = {
    name: partial(FeatureDetectionPredictor, TwoParts(8, 2), Sums(sign))
    for name, sign in (("plus", 1.0), ("minus", -1.0))
}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.json"))}


def test_runs_together_are_as_runs_alone(videos: dict[str, Path], tmp_path: Path) -> None:
    seen: list[int] = []
    done = together(videos, tmp_path, seen)
    assert seen == [1, 2, 3]
    assert done["minus"].clean == done["plus"].clean
    data = Dataset("folder", "test", Path("data"), (Truth.from_segments(SEGMENTS),), videos)
    for name in ("plus", "minus"):
        contestant = BenchmarkModel(alone[name], name)
        run_benchmark(RECIPE, data, contestant, tmp_path / "alone" / name, cells=select_cells(RECIPE))
        assert content(tmp_path / "alone" / name) == content(tmp_path / name)


def test_a_run_that_was_lost_is_made_again(videos: dict[str, Path], tmp_path: Path) -> None:
    together(videos, tmp_path)
    before = content(tmp_path / "minus")
    shutil.rmtree(tmp_path / "minus")
    together(videos, tmp_path)
    assert content(tmp_path / "minus") == before


def test_a_bad_video_is_set_aside_in_all(videos: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    done = together({**videos, "b": broken}, tmp_path / "runs")
    assert [[failure["video"] for failure in run.failures] for run in done.values()] == [["b"], ["b"]]


def test_detectors_may_look_at_mended_features_beside_others(videos: dict[str, Path]) -> None:
    order = VideoJob("a", videos["a"], CELLS, 3, SEGMENTS["a"])
    both = DetectorGroup(
        TwoParts(8, 2), {"plain": Sums(), "mended": Sums(), "more": Sums(-1.0)}, mending={"mended": Mending()}
    )
    looked = both(order)
    plain = DetectorGroup(TwoParts(8, 2), {"": Sums()})(order)
    mended = FeatureDetectionPredictor(TwoParts(8, 2), Sums(), mending=Mending())(order)
    assert looked.of("more").mended is looked.of("plain").mended is None
    for cell in CELLS:
        assert looked.of("plain").outputs[cell.name].score.tolist() == plain.outputs[cell.name][""].score.tolist()
        assert looked.of("mended").outputs[cell.name].score.tolist() == mended.outputs[cell.name].score.tolist()
        assert np.array_equal(looked.of("mended").mended[cell.name].damaged, mended.mended[cell.name].damaged)
    struck = CELLS[1].name
    assert looked.of("plain").outputs[struck].score.tolist() != looked.of("mended").outputs[struck].score.tolist()
    assert (looked.clean.decoded, looked.clean.seen) == (60, 60)  # once for all of them
    assert looked.clean.joined == plain.clean.joined
