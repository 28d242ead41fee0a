"""Detections from feature files: choice of files, frame rates and misbehaving detectors of users."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.numpy_extractor import SumDetector
from jostle.core.types import Segments, Truth
from jostle.errors import BadValue, DataError
from jostle.evaluation.inference.feature_detection import FeatureGrid, detect_features, feature_files, read_video_scores


def write(folder: Path, *names: str, rows: int = 20) -> None:
    for name in names:
        np.save(folder / f"{name}.npy", np.ones((rows, 4), np.float32))


def truth(**changes) -> Truth:
    facts = {"videos": ("a", "b"), "classes": ("Jump",), "video": [0], "start": [1.0], "end": [2.0], "label": [0]}
    return Truth(**(facts | {"duration": [3.68, np.nan], "fps": [25.0, np.nan]} | changes))


def test_every_feature_file_of_a_folder_is_processed(tmp_path: Path) -> None:
    write(tmp_path, "v_a", "v_b", "other")
    detector, progress = SumDetector(), []
    detections = detect_features(
        detector,
        tmp_path,
        FeatureGrid(fps=25.0, prefix="v_"),
        progress=lambda done, total: progress.append((done, total)),
    )
    assert detections.videos == ("a", "b")
    assert detections.end.tolist() == [(19 * 4 + 16) / 25] * 2  # as far as the features reach
    assert progress == [(1, 2), (2, 2)]


def test_annotations_determine_rate_duration_and_videos(tmp_path: Path) -> None:
    write(tmp_path, "a", "b", "c")
    detector = SumDetector()
    detections = detect_features(detector, tmp_path, FeatureGrid(fps=30.0), truth=truth())
    assert detections.videos == ("a", "b")
    assert [facts["fps"] for facts in detector.calls] == [25.0, 30.0]
    assert detector.calls[0]["duration"] == 3.68
    with pytest.raises(BadValue, match="video b: its frame rate is not known"):
        detect_features(detector, tmp_path, FeatureGrid(), truth=truth())


def test_mismatched_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "x")
    with pytest.raises(
        DataError, match="none of its 1 files belongs to a video of the truth; they are x, the videos a, b"
    ):
        detect_features(SumDetector(), tmp_path, FeatureGrid(fps=25.0), truth=truth())
    with pytest.raises(DataError, match="no such file or folder"):
        feature_files(tmp_path / "none", FeatureGrid())
    with pytest.raises(DataError, match=r"no file is called v_<video id>\.npy"):
        feature_files(tmp_path, FeatureGrid(prefix="v_"))
    write(tmp_path, "a", rows=90)
    with pytest.raises(DataError) as caught:
        detect_features(SumDetector(), tmp_path, FeatureGrid(fps=25.0), truth=truth())
    assert caught.value.fault == "F51"


def test_video_scores_are_found_with_and_without_their_prefix(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({"results": {"v_a": [0.1, 0.9]}, "class": ["Jump", "Run"]}))
    scores = read_video_scores(path)
    assert scores.of("a").tolist() == scores.of("v_a").tolist() == [0.1, 0.9]
    assert scores.classes == ("Jump", "Run")
    with pytest.raises(DataError, match="no video scores for b; the file has those of a"):
        scores.of("b")
    for content, message in (
        ({"database": {}}, "needs 'results', scores by video"),
        ({"results": {"a": "x"}}, "video a has the text 'x', not a list of scores"),
        ({"results": {"a": [1.0], "b": [1.0, 2.0]}}, "different numbers of scores"),
    ):
        path.write_text(json.dumps(content))
        with pytest.raises(DataError, match=message):
            read_video_scores(path)


def raising(features, **facts):
    raise RuntimeError("out of shape")


def mutating(features, **facts):
    features[0] = 0


def returning(*columns: list[float]) -> Any:
    return lambda features, **facts: Segments(*columns, classes=("Jump",))


def detect_by(detect: Any, folder: Path) -> Any:
    write(folder, "a")
    return detect_features(type("Own", (), {"detect": staticmethod(detect)})(), folder, FeatureGrid(fps=25.0))


@pytest.mark.fault("F78", "F121")
@pytest.mark.parametrize(
    ("detect", "message", "fault"),
    [
        (raising, r"video a: the detector failed \(RuntimeError: out of shape\); -vv shows where", "F78"),
        (lambda features, **facts: None, "it returned NoneType, not Segments", "F78"),
        (lambda features, **facts: [(0, 1)], "it returned list, not Segments", "F78"),
        (returning([0.0], [1.0], [0]), "its segments have no scores", "F78"),
        (returning([np.nan], [1.0], [0], [0.5]), r"video a: the detector failed \(.*(nan|finite)", "F121"),
        (returning([0.0], [1.0], [0], [np.nan]), r"video a: the detector failed \(.*(nan|finite)", "F121"),
        (returning([0.0], [1.0], [0], [np.inf]), r"video a: the detector failed \(.*(nan|finite)", "F121"),
        (mutating, "read-only", "F78"),
    ],
)
def test_F78_a_detector_that_misbehaves_is_named_with_its_video(
    tmp_path: Path, detect: Any, message: str, fault: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        detect_by(detect, tmp_path)
    assert caught.value.fault == fault
    assert str(caught.value).startswith("video a: ")


def test_no_detections_are_a_valid_result(tmp_path: Path) -> None:
    detections = detect_by(returning([], [], [], []), tmp_path)
    assert (len(detections), detections.videos) == (0, ("a",))
