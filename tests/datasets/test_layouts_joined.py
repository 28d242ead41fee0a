"""Untrimmed videos joined from a folder of clips: lengths, boundaries and reproducibility."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.datasets.layouts.joined import (
    ACTION_S,
    DURATION_S,
    FPS,
    USES,
    JoinedVideo,
    SourceClip,
    background_classes,
    plan_videos,
)
from jostle.errors import DataError
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer

LABELS = ("clap", "jump", "kick", "run", "sit", "wave")


def clips(frames: int = 150, each: int = 8) -> list[SourceClip]:
    return [
        SourceClip(f"{label}-{number}", f"/clips/{label}-{number}.avi", label, frames + 10 * number)
        for label in LABELS
        for number in range(each)
    ]


def test_videos_alternate_background_and_actions_within_the_length_limit() -> None:
    background = background_classes(LABELS, 0)
    assert len(background) == 2
    videos = plan_videos(clips(), 0, "test")
    for video in videos:
        labels = [piece.label for piece in video.pieces]
        assert labels[::2] == [None] * len(labels[::2])
        assert all(label is not None and label not in background for label in labels[1::2])
        assert DURATION_S[0] <= video.frames / FPS < DURATION_S[1] + ACTION_S + 6
        assert all(piece.clip.split("-")[0] in background for piece in video.pieces[::2])


def test_no_action_exceeds_its_maximum_use() -> None:
    counts = Counter(piece.clip for video in plan_videos(clips(), 0, "test") for piece in video.pieces[1::2])
    assert max(counts.values()) == USES
    assert len(counts) == 4 * 8


def test_the_plan_depends_only_on_clips_and_seed() -> None:
    videos = plan_videos(clips(), 0, "test")
    assert plan_videos(clips(), 0, "test") == videos
    assert plan_videos(clips(), 1, "test") != videos
    assert background_classes(LABELS, 0) == background_classes(LABELS[::-1], 0)


def test_the_folder_of_the_clips_does_not_change_the_key() -> None:
    video = plan_videos(clips(), 0, "test")[0]
    pieces = tuple(type(p)(p.clip, "/elsewhere" + p.path, p.first, p.frames, p.label) for p in video.pieces)
    assert JoinedVideo(video.id, pieces).key == video.key


def test_actions_are_where_the_pieces_are() -> None:
    video = plan_videos(clips(), 0, "test")[0]
    first, end, label = next(iter(video.actions()))
    assert (first, end, label) == (
        video.pieces[0].frames,
        video.pieces[0].frames + video.pieces[1].frames,
        video.pieces[1].label,
    )


@pytest.mark.parametrize(
    ("some", "what"),
    [([], "two classes or more"), (clips()[:8], "two classes or more"), (clips(each=1)[:3], "too few for a video")],
)
def test_too_few_clips_are_refused(some: list[SourceClip], what: str) -> None:
    with pytest.raises(DataError, match=what):
        plan_videos(some, 0, "test")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("jostle.datasets.layouts.joined.DURATION_S", (7.0, 8.0))
    root = tmp_path / "clips"
    for grey, label in enumerate(("jump", "run", "sit")):
        for number in range(2):
            path = root / "test" / label / f"{label}-{number}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            with Writer(path, size=(48, 64), fps=25) as writer:
                for _ in range(80):
                    writer.write(np.full((48, 64, 3), 40 + 80 * grey, np.uint8))
    return root


def test_a_folder_of_clips_becomes_annotated_videos(folder: Path) -> None:
    data = jostle.load_dataset("joined-clips", "test", root=folder, jobs=1)
    (background,) = background_classes(("jump", "run", "sit"), 0)
    level = {"jump": 40, "run": 120, "sit": 200}
    assert data.task == "detection"
    assert set(data.truth.classes) == set(level) - {background}
    name = next(iter(data.videos))
    actions = data.truth.actions[name]
    with Reader(data.videos[name]) as reader:
        assert reader.size == (240, 320)
        assert len(reader) / FPS == pytest.approx(data.truth.duration[0])
        frames = [float(reader.frame(number).mean()) for number in range(len(reader))]
    for number, value in enumerate(frames):
        inside = (actions.start <= number / FPS) & (number / FPS < actions.end)
        label = actions.classes[int(actions.label[inside.argmax()])] if inside.any() else background
        assert value == pytest.approx(level[label], abs=8)
    again = jostle.load_dataset("joined-clips", "test", root=folder, jobs=1)
    assert again.files.made == 0
    assert again.videos == data.videos


def test_a_folder_of_segments_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    (tmp_path / "a.csv").write_text("video_id,t_start,t_end,label\na,0.5,1,jump\n")
    with pytest.raises(DataError, match="joined videos need one class a clip"):
        jostle.load_dataset("joined-clips", root=tmp_path)
