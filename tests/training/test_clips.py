"""Clips as pixels: corrupted versions, caching, worker processes and sets of frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.small_clips import make_config, write_clips
from helpers.stopped_work import Stop, stop_at
from jostle.core.random import key_for
from jostle.core.types.frame_sets import FrameSets
from jostle.corruptions.engine.spec import Spec
from jostle.errors import DataError
from jostle.training.clips import (
    PixelClips,
    Preparation,
    VideoClip,
    corrupt_frames,
    evenly_spaced,
    list_videos,
    load_clips,
)
from jostle.training.distributed import Processes
from jostle.training.recognition import RecognitionLearner


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[VideoClip]:
    world = write_clips(tmp_path_factory.mktemp("clips") / "set", clips=3)
    return list_videos(make_config(world).data, "train", seeds=(0,))[1]


SPECS = ("ucf101-p/gaussian_noise:2", "ucf101-p/jumble:3", "kinetics-c/motion_blur:1", "ucf101-p/mpeg1:1", "freeze")


@pytest.mark.parametrize("spec", SPECS)
def test_frames_equal_those_of_the_fully_corrupted_clip(videos: list[VideoClip], spec: str) -> None:
    clip = jostle.read(videos[0].path)
    indices = evenly_spaced(len(clip), 7)
    some = corrupt_frames(clip, [Spec.parse(spec)], indices, seed=5, video=videos[0])
    corrupted = jostle.corrupt(clip, spec, seed=5, video_id=videos[0].name)
    assert np.array_equal(some, corrupted.frames[indices])


def test_versions_depend_on_the_clip_name(videos: list[VideoClip], tmp_path: Path) -> None:
    preparation = Preparation(6, None, versions=2, specs=("contrast", "brightness:2"), severities=(1, 4), seed=7)
    clips = load_clips(videos, preparation, cache=tmp_path, jobs=1)
    assert clips.frames.shape == (6, 3, 6, 32, 32, 3)
    drawn = set()
    for row, video in enumerate(videos):
        clip = jostle.read(video.path)
        indices = evenly_spaced(len(clip), 6)
        assert np.array_equal(clips.frames[row, 0], clip.frames[indices])
        for version in range(2):
            spec = preparation.draw_spec(video.name, version)
            drawn.add(str(spec))
            seed = key_for(7, "version", version)
            corrupted = jostle.corrupt(clip, str(spec), seed=seed, video_id=video.name)
            assert np.array_equal(clips.frames[row, 1 + version], corrupted.frames[indices])
    assert len(drawn) > 1
    assert drawn <= {"contrast:1", "contrast:4", "brightness:2"}


@pytest.mark.slow
def test_pixels_are_cached_and_do_not_depend_on_the_processes(videos: list[VideoClip], tmp_path: Path) -> None:
    preparation = Preparation(5, (20, 24), versions=1, specs=("ucf101-p/shot_noise",), severities=(2,))
    one = load_clips(videos, preparation, cache=tmp_path / "one", jobs=1)
    two = load_clips(videos, preparation, cache=tmp_path / "two", jobs=2)
    assert one.frames.shape[3:5] == (20, 24)
    assert np.array_equal(one.frames, two.frames)
    (file,) = (tmp_path / "one").iterdir()
    before = file.stat().st_mtime_ns
    load_clips(videos, preparation, cache=tmp_path / "one", jobs=1)
    assert file.stat().st_mtime_ns == before
    load_clips(videos, Preparation(4), cache=tmp_path / "one", jobs=1)
    assert len(list((tmp_path / "one").iterdir())) == 2


def test_interrupted_preparation_leaves_no_file(videos: list[VideoClip], tmp_path: Path) -> None:
    with pytest.raises(Stop):
        load_clips(videos, Preparation(4), cache=tmp_path, jobs=1, progress=stop_at(1))
    assert list(tmp_path.iterdir()) == []


def test_invalid_video_is_named(videos: list[VideoClip], tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(b"no video")
    with pytest.raises(jostle.JostleError, match=r"bad\.mp4"):
        load_clips([VideoClip("bad", tmp_path / "bad.mp4", 0), *videos], Preparation(4), cache=tmp_path, jobs=1)


def test_sets_of_frames_are_clips_around_an_anchor(videos: list[VideoClip], tmp_path: Path) -> None:
    from jostle.datasets.dataset import Dataset
    from jostle.training.clips import _frame_set_clips

    name = videos[0].name
    sets = FrameSets({f"{name}/000005": [f"{name}/000004", f"{name}/000007"]}, {f"{name}/000005": [3]})
    data = Dataset("made", "train", tmp_path, (sets,), {name: videos[0].path})
    (clip,) = _frame_set_clips(data, "", 2)
    assert (clip.label, clip.frames) == (3, (5, 4, 5, 5, 7))  # the anchor replaces missing similar frames
    loaded = load_clips([clip], Preparation(1), cache=tmp_path, jobs=1)
    assert loaded.are_sets
    assert np.array_equal(loaded.frames[0, 0], jostle.read(videos[0].path).frames[[5, 4, 5, 5, 7]])
    with pytest.raises(DataError, match="frames are only learned from video"):
        list(_frame_set_clips(Dataset("made", "train", tmp_path, (sets,), {}), "", 2))


def test_loss_uses_the_worst_frame_of_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from jostle.training import recognition

    frames = np.random.default_rng(0).integers(0, 256, (8, 1, 5, 112, 112, 3), np.uint8)
    pixels = PixelClips(tuple(map(str, range(8))), np.arange(8) % 3, np.arange(8), frames, are_sets=True)
    monkeypatch.setattr(recognition, "load_split", lambda config: (("0", "1", "2"), pixels, None))
    losses = {}
    for loss in ("own", "all", "worst"):
        changes = {"data": {"k": 2, "shift": 0.0}, "loss": loss, "recogniser": "puppet_frames"}
        learner = RecognitionLearner(make_config(tmp_path, **changes), Processes(0, 1, torch.device("cpu")))
        learner.model.eval()
        losses[loss] = learner.loss_of([0, 5], 0).item()
        spec = learner.spec
    alone = torch.nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1)
    by_hand = {"own": [], "all": [], "worst": []}
    for row in (0, 5):
        crops = torch.cat([spec.prepare(frames[row, 0, t : t + 1]) for t in range(5)])
        with torch.inference_mode():
            each = alone(learner.model(crops), torch.full((5,), row % 3))
        by_hand["own"].append(float(each[2]))
        by_hand["all"].append(float(each.mean()))
        by_hand["worst"].append(float(each.max()))
    for loss, values in by_hand.items():
        assert losses[loss] == pytest.approx(np.mean(values), rel=1e-4)
    assert losses["worst"] > max(losses["own"], losses["all"])


def test_clip_of_one_frame_is_repeated() -> None:
    assert evenly_spaced(1, 4).tolist() == [0, 0, 0, 0]
