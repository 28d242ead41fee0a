"""Selection of videos and their corruptions from command arguments."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jostle.api.config import VideoFeatureOptions
from jostle.api.features import videos_and_corruptions
from jostle.core.types import Truth
from jostle.errors import BadValue, DataError, UnknownName

TRUTH = Truth(("b", "a", "elsewhere"), ("Jump",), [0, 0, 1], [1.0, 4.0, 2.0], [2.0, 4.0, 3.0], [0, 0, 0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in ("a", "b", "c"):
        (videos / f"{name}.mp4").write_bytes(b"looked at later")
    return videos


def select(source: Path, *spec: str, truth=None, subset: str | None = None, **options):
    return videos_and_corruptions(VideoFeatureOptions(spec=spec, **options), source, truth, subset)


def test_single_file_and_folder(folder: Path) -> None:
    assert select(folder / "a.mp4")[0] == {"a": folder / "a.mp4"}
    assert select(folder / "a.mp4", video_id="x")[0] == {"x": folder / "a.mp4"}
    assert list(select(folder)[0]) == ["a", "b", "c"]


def test_truth_selects_videos_and_segments(folder: Path) -> None:
    videos, corrupting = select(folder, "black_frame:1", truth=TRUTH, seed=4)
    assert list(videos) == ["b", "a"]  # in its order
    assert corrupting.specs == ("black_frame:1",)
    assert (corrupting.seed, corrupting.truth) == (4, TRUTH.fingerprint)
    starts = {name: actions.start.tolist() for name, actions in corrupting.segments.items()}
    assert starts == {"b": [1.0], "a": [2.0]}  # the action from 4 s to 4 s has no frame to corrupt
    clean = select(folder, truth=TRUTH)[1]
    assert (clean.segments, clean.truth) == ({}, None)  # clean features do not depend on annotations


def test_truth_file_with_a_subset(folder: Path, tmp_path: Path) -> None:
    action = {"label": "Jump", "segment": [0.5, 1.5]}
    database = {
        name: {"subset": subset, "duration": 9.0, "annotations": [action]}
        for name, subset in (("a", "test"), ("b", "validation"), ("c", "test"))
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps({"database": database}))
    videos, corrupting = select(folder, "fog:3", truth=path, subset="test")
    assert list(videos) == ["a", "c"]
    assert corrupting.truth is not None
    assert corrupting.truth.startswith("sha256:")
    alone = select(folder / "b.mp4", "fog:3", truth=path)[1]
    assert alone.truth == corrupting.truth  # the same file
    assert alone.segments["b"].end.tolist() == [1.5]
    with pytest.raises(DataError, match="in subset 'validation', not in 'test'"):
        select(folder / "b.mp4", "fog:3", truth=path, subset="test")
    with pytest.raises(UnknownName, match=r"no video in .* is called 'z'"):
        select(folder / "a.mp4", "fog:3", truth=path, video_id="z")


def test_segments_of_a_single_video(folder: Path) -> None:
    _, corrupting = select(folder / "a.mp4", "fog:3", segments=[(1.0, 2.0)])
    other = select(folder / "a.mp4", "fog:3", segments=[(1.0, 2.5)])[1]
    assert corrupting.segments["a"].end.tolist() == [2.0]
    assert corrupting.truth != other.truth
    assert np.isfinite(corrupting.segments["a"].start).all()


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ((), {"placement": "frame:3"}, "name one as well, with -c SPEC"),
        (("fog:9",), {}, "severity must be a whole number"),
        (("fog:3",), {"placement": "nowhere"}, "no placement is called 'nowhere'"),
        (("fog:3",), {"segments": [(1.0, 2.0)]}, "an id or actions belong to a single video"),
        (("fog:3",), {"segments": [(1.0, 2.0)], "truth": TRUTH}, "not both"),
        ((), {"video_id": "a"}, "is a folder"),
        ((), {"truth": Truth(("z",), ("Jump",), [0], [1.0], [2.0], [0])}, "none of the videos .* is in the truth"),
    ],
)
def test_conflicting_arguments_are_refused(folder: Path, spec: tuple[str, ...], options: dict, message: str) -> None:
    with pytest.raises((BadValue, DataError, UnknownName), match=message):
        select(folder, *spec, **options)


def test_folder_without_videos_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no videos there"):
        select(tmp_path)
