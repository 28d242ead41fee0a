"""ImageNet-Vid-Robust and YTBB-Robust: sets of frames and the images below any folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from jostle.errors import BadValue, DataError

VID = {
    "val/ILSVRC2015_val_0/000005.JPEG": ["val/ILSVRC2015_val_0/000004.JPEG", "val/ILSVRC2015_val_0/000006.JPEG"],
    "val/ILSVRC2015_val_1/000009.JPEG": [],
}
YTBB = {"-1LwdM0fM7I_45400/frame-1362.jpg": ["-1LwdM0fM7I_45400/frame-1363.jpg"]}


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def describe(folder: Path, sets: dict[str, list[str]]) -> list[str]:
    frames = [frame for anchor, others in sets.items() for frame in (anchor, *others)]
    put(folder / "pmsets.json", json.dumps(sets))
    put(folder / "labels.json", json.dumps({frame: [3] for frame in frames}))
    return frames


@pytest.mark.parametrize("base", [".", "data", "ILSVRC2015/Data/VID"])
def test_imagenet_vid_robust(base: str, tmp_path: Path) -> None:
    frames = describe(tmp_path / "metadata", VID)
    for frame in frames:
        put(tmp_path / base / frame)
    found = jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert (found.task, found.subset, found.missing) == ("frames", "test", ())
    assert found.frames.sets == VID
    assert len(found.frames.labels) == 4
    for frame in frames:
        video, _, name = frame.rpartition("/")
        assert (found.videos[video] / name).is_file()
    assert jostle.pm_k({frame: [0, 0, 0, 1] for frame in frames}, found.frames.sets, found.frames.labels).pm_k == 1


def test_a_root_may_be_the_val_folder_itself(tmp_path: Path) -> None:
    frames = describe(tmp_path, VID)
    for frame in frames:
        put(tmp_path / frame.removeprefix("val/"))
    found = jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert found.missing == ()
    assert found.videos["val/ILSVRC2015_val_1"] == tmp_path / "ILSVRC2015_val_1"


def test_a_partial_copy_of_frames(tmp_path: Path) -> None:
    frames = describe(tmp_path, VID)
    put(tmp_path / frames[0])
    put(tmp_path / frames[1])
    found = jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert found.missing == (frames[2], frames[3])
    assert str(found).startswith("imagenet-vid-robust test: 2 of 4 frames (2 missing: val/ILSVRC2015_val_0/000006.JPEG")
    left = found.at_hand().frames
    assert left.sets == {frames[0]: [frames[1]]}
    assert set(left.labels) == set(frames[:2])
    with pytest.raises(BadValue, match="annotated with sets of frames, not with segments; it is for frames"):
        found.truth  # noqa: B018


def test_ytbb_robust(tmp_path: Path) -> None:
    for frame in describe(tmp_path / "metadata", YTBB):
        put(tmp_path / "frames" / frame)
    found = jostle.load_dataset("ytbb-robust", root=tmp_path)
    assert found.videos == {"-1LwdM0fM7I_45400": tmp_path / "frames/-1LwdM0fM7I_45400"}


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "pmsets.json", json.dumps(VID))
    with pytest.raises(DataError, match=r"no labels.json beside it"):
        jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    put(tmp_path / "labels.json", json.dumps({next(iter(VID)): [3]}))
    with pytest.raises(DataError, match=r"3 frame\(s\) of the sets have no label"):
        jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    describe(tmp_path, {"../x/5.jpg": []})
    with pytest.raises(DataError, match=r"the frames of ../x lie outside the folder") as refused:
        jostle.load_dataset("imagenet-vid-robust", root=tmp_path)
    assert refused.value.fault == "F23"
