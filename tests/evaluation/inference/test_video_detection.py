"""Detections from videos: each at its own frame rate; an unreadable video does not end the run."""

from __future__ import annotations

from pathlib import Path

import pytest

import jostle
from helpers.numpy_extractor import SumDetector, TwoParts, write_video
from helpers.small_work import losing
from jostle.errors import BadValue, DataError, MediaError
from jostle.evaluation.inference.feature_detection import FeatureGrid, detect_features, read_grid
from jostle.evaluation.inference.video_detection import ByFeatures, detect_videos
from jostle.features.folder import CorruptionOptions, extract_videos


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    return {
        "a": write_video(folder / "a.mkv", 40, seed=1),
        "odd name!": write_video(folder / "odd name!.mkv", 30, seed=2, fps=10),
    }


def test_each_video_is_processed_at_its_own_rate(videos: dict[str, Path]) -> None:
    detector = SumDetector()
    detections = detect_videos(ByFeatures(detector, TwoParts(8, 2)), videos)
    assert detections.videos == ("a", "odd name!")
    assert [(facts["fps"], facts["duration"]) for facts in detector.calls] == [(25.0, 1.6), (10.0, 3.0)]
    assert {(facts["stride"], facts["window"]) for facts in detector.calls} == {(2, 8)}
    corruption = CorruptionOptions(("black_frame:3",), "frame:9")
    corrupted = detect_videos(ByFeatures(detector, TwoParts(8, 2), corruption), videos)
    assert (corrupted.score != detections.score).all()


def test_features_that_jostle_wrote_need_no_rate(videos: dict[str, Path], tmp_path: Path) -> None:
    """Rate, stride, window and the ids behind odd file names are in features.json."""
    extract_videos(videos, lambda: TwoParts(8, 2), tmp_path, name="TwoParts")
    assert read_grid(tmp_path) == read_grid(tmp_path / "a.npy") == FeatureGrid(2, 8)
    detector = SumDetector()
    detections = detect_features(detector, tmp_path, read_grid(tmp_path))
    expected = detect_videos(ByFeatures(SumDetector(), TwoParts(8, 2)), videos)
    assert detections.videos == expected.videos
    assert detections.score.tolist() == expected.score.tolist()
    assert [facts["fps"] for facts in detector.calls] == [25.0, 10.0]
    (tmp_path / "features.json").write_text("{")
    with pytest.raises(DataError, match=r"features\.json: cannot be read"):
        read_grid(tmp_path)
    (tmp_path / "features.json").write_text("{}")
    assert read_grid(tmp_path) == FeatureGrid()
    assert read_grid(tmp_path / "none" / "a.npy") == FeatureGrid()


@pytest.mark.fault("F7")
def test_F7_a_video_that_kills_workers_is_reported(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.evaluation.inference.video_detection.map_unordered", losing("a"))
    bad: dict[str, str] = {}
    detections = detect_videos(
        ByFeatures(SumDetector(), TwoParts()), videos, on_bad=lambda name, error: bad.update({name: str(error)})
    )
    assert (detections.videos, bad) == (("odd name!",), {"a": "the worker was killed"})


def test_an_unreadable_video_is_reported(videos: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_text("no video")
    bad: dict[str, str] = {}
    paths = {"bad": tmp_path / "bad.mp4", **videos}
    find = ByFeatures(SumDetector(), TwoParts())
    detections = detect_videos(find, paths, on_bad=lambda name, error: bad.update({name: str(error)}))
    assert detections.videos == ("a", "odd name!")
    assert list(bad) == ["bad"]
    with pytest.raises(MediaError, match="not a video"):
        detect_videos(find, paths)
    two = {"bad": paths["bad"], "worse": paths["bad"]}
    with pytest.raises(DataError, match="none of 2 videos could be used: bad, worse"):
        detect_videos(find, two, on_bad=lambda *_: None)


def test_features_cannot_be_corrupted(tmp_path: Path) -> None:
    detector = jostle.load_detector("temporalmaxer", input_dim=8, dim=16, classes=2, max_length=64, levels=4)
    with pytest.raises(BadValue, match="give the video and an extractor"):
        jostle.detect(tmp_path, detector, spec="black_frame:3")
