"""ImageNet-Vid-Robust and YTBB-Robust: frame sets with images below any folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from helpers.laid_files import write_text
from jostle.errors import BadValue, DataError

VID = {
    "val/ILSVRC2015_val_0/000005.JPEG": ["val/ILSVRC2015_val_0/000004.JPEG", "val/ILSVRC2015_val_0/000006.JPEG"],
    "val/ILSVRC2015_val_1/000009.JPEG": [],
}
YTBB = {"-1LwdM0fM7I_45400/frame-1362.jpg": ["-1LwdM0fM7I_45400/frame-1363.jpg"]}


def describe(folder: Path, sets: dict[str, list[str]]) -> list[str]:
    frames = [frame for anchor, others in sets.items() for frame in (anchor, *others)]
    write_text(folder / "pmsets.json", json.dumps(sets))
    write_text(folder / "labels.json", json.dumps({frame: [3] for frame in frames}))
    return frames


@pytest.mark.parametrize("base", [".", "data", "ILSVRC2015/Data/VID"])
def test_imagenet_vid_robust(base: str, tmp_path: Path) -> None:
    frames = describe(tmp_path / "metadata", VID)
    for frame in frames:
        write_text(tmp_path / base / frame)
    dataset = jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert (dataset.task, dataset.subset, dataset.missing) == ("frames", "test", ())
    assert dataset.frames.sets == VID
    assert len(dataset.frames.labels) == 4
    for frame in frames:
        video, _, name = frame.rpartition("/")
        assert (dataset.videos[video] / name).is_file()
    assert jostle.pm_k({frame: [0, 0, 0, 1] for frame in frames}, dataset.frames.sets, dataset.frames.labels).pm_k == 1


def test_a_root_may_be_the_val_folder_itself(tmp_path: Path) -> None:
    frames = describe(tmp_path, VID)
    for frame in frames:
        write_text(tmp_path / frame.removeprefix("val/"))
    dataset = jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert dataset.missing == ()
    assert dataset.videos["val/ILSVRC2015_val_1"] == tmp_path / "ILSVRC2015_val_1"


def test_a_partial_copy_of_frames(tmp_path: Path) -> None:
    frames = describe(tmp_path, VID)
    write_text(tmp_path / frames[0])
    write_text(tmp_path / frames[1])
    dataset = jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert dataset.missing == (frames[2], frames[3])
    assert str(dataset).startswith(
        "imagenet-vid-robust test: 2 of 4 frames (2 missing: val/ILSVRC2015_val_0/000006.JPEG"
    )
    available = dataset.at_hand().frames
    assert available.sets == {frames[0]: [frames[1]]}
    assert set(available.labels) == set(frames[:2])
    with pytest.raises(BadValue, match="annotated with sets of frames, not with segments; it is for frames"):
        dataset.truth  # noqa: B018


def test_ytbb_robust(tmp_path: Path) -> None:
    for frame in describe(tmp_path / "metadata", YTBB):
        write_text(tmp_path / "frames" / frame)
    dataset = jostle.load_dataset("ytbb-robust", root=tmp_path)
    assert dataset.videos == {"-1LwdM0fM7I_45400": tmp_path / "frames/-1LwdM0fM7I_45400"}


def test_sets_and_labels_that_do_not_match_are_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "pmsets.json", json.dumps(VID))
    with pytest.raises(DataError, match=r"no labels.json beside it"):
        jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    write_text(tmp_path / "labels.json", json.dumps({next(iter(VID)): [3]}))
    with pytest.raises(DataError, match=r"3 frame\(s\) of the sets have no label"):
        jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    describe(tmp_path, {"../x/5.jpg": []})
    with pytest.raises(DataError, match=r"the frames of ../x lie outside the folder") as refused:
        jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert refused.value.fault == "F23"
