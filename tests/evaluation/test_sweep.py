"""A sweep: the same detections as looking at each corrupted video by itself, for less."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from jostle.benchmarks.recipe import CLEAN_CELL, Cell
from jostle.errors import DataError
from jostle.evaluation.sweep import Models, sweep_videos
from jostle.evaluation.video_detection import detect_videos
from jostle.extraction.folder import Corrupting
from jostle.types import Segments, Truth

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "extraction"))

from numpy_extractor import TwoParts, write_video

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
        return Segments([0.0], [facts["duration"]], [0], [self.sign * float(features.sum())], ("Jump",))


def models() -> Models:
    return Models(TwoParts(8, 2), {"plus": Sums(), "minus": Sums(-1.0)})


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    return {name: write_video(folder / f"{name}.mkv", 60, seed=seed) for seed, name in enumerate("abc")}


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth.from_segments({name: Segments.from_pairs(pairs) for name, pairs in ACTIONS.items()})


def test_each_cell_is_that_of_the_corrupted_video(videos: dict[str, Path], truth: Truth) -> None:
    told: list[tuple[int, int]] = []
    swept = sweep_videos(videos, truth, CELLS, models, seed=3, progress=lambda *far: told.append(far))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert list(swept.found) == ["plus", "minus"]
    assert list(swept.found["plus"]) == [cell.name for cell in CELLS]
    segments = {name: Segments.from_pairs(pairs) for name, pairs in ACTIONS.items()}
    for cell in CELLS:
        corrupting = Corrupting(cell.specs, cell.placement, seed=3, segments=segments)
        alone = detect_videos(Sums(), videos, TwoParts(8, 2), corrupting=corrupting)
        assert swept.found["plus"][cell.name].score.tolist() == alone.score.tolist()
        assert swept.found["minus"][cell.name].score.tolist() == (-alone.score).tolist()
        assert swept.found["plus"][cell.name].videos == ("a", "b", "c")


def test_a_video_is_decoded_once_and_struck_frames_are_seen_once(videos: dict[str, Path], truth: Truth) -> None:
    swept = sweep_videos(videos, truth, CELLS, models)
    assert swept.clean.decoded == swept.clean.seen == 180
    assert swept.cells.decoded == 0
    again = sweep_videos(
        videos, truth, (*CELLS, Cell("more", ("thumos14-c/black_frame:2",), None, "main", True)), models
    )
    assert again.cells.seen == swept.cells.seen  # black is black
    assert again.cells.joined > swept.cells.joined


def test_a_bad_video_is_set_aside(videos: dict[str, Path], truth: Truth, tmp_path: Path) -> None:
    broken = tmp_path / "b.mkv"
    broken.write_bytes(b"not a video at all")
    swept = sweep_videos({**videos, "b": broken}, truth, CELLS[:2], models)
    assert list(swept.set_aside) == ["b"]
    assert swept.found["plus"]["clean"].videos == ("a", "c")
    with pytest.raises(DataError, match="none of 1 videos"):
        sweep_videos({"b": broken}, truth, (), models)
