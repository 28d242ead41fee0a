"""ImageNet-Vid-Robust and YTBB-Robust: frame sets with images below any folder, and boxes of ILSVRC2015."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

import jostle
from helpers.laid_files import write_text
from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, DataError
from jostle.io.formats.boxes import NOUNS, read_vid_boxes
from jostle.metrics.class_projection import class_names

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


VIDEOS = ("val/ILSVRC2015_val_0", "val/ILSVRC2015_val_1")
FRAMES = [frame for anchor, others in VID.items() for frame in (anchor, *others)]
DOG, FOX = class_names("imagenet-vid").index("dog"), class_names("imagenet-vid").index("fox")
OBJECT = """<object><trackid>0</trackid><name>{}</name><bndbox><xmax>40</xmax><xmin>10</xmin><ymax>30</ymax>
<ymin>5</ymin></bndbox><occluded>0</occluded><generated>0</generated></object>"""


def annotated(*nouns: str) -> str:
    objects = "".join(OBJECT.format(noun) for noun in nouns)
    return f"<annotation><folder>v</folder><size><width>64</width><height>48</height></size>{objects}</annotation>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_text(tmp_path / "metadata" / "pmsets.json", json.dumps(VID))
    for i, frame in enumerate(FRAMES):
        image = tmp_path / "ILSVRC2015/Data/VID" / frame
        image.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(image), np.full((48, 64, 3), 40 * i, np.uint8))
        file = tmp_path / "ILSVRC2015/Annotations/VID" / Path(frame).with_suffix(".xml")
        write_text(file, annotated(NOUNS[DOG], NOUNS[FOX]) if i < 3 else annotated(NOUNS[DOG]))
    return tmp_path


def test_boxes_and_images_are_found(root: Path) -> None:
    dataset = jostle.load_dataset("imagenet-vid-robust-boxes", root=root)
    assert (dataset.task, dataset.missing, len(dataset.objects)) == ("objects", (), 2)
    assert dataset.videos[VIDEOS[0]] == root / "ILSVRC2015/Data/VID" / VIDEOS[0]
    assert dataset.objects.classes == class_names("imagenet-vid")
    boxes = dataset.objects.boxes[FRAMES[0]]
    assert boxes.label.tolist() == [DOG, FOX]
    assert boxes.box.tolist() == [[10, 5, 40, 30]] * 2
    (root / "ILSVRC2015/Data/VID" / FRAMES[1]).unlink()
    assert jostle.load_dataset("imagenet-vid-robust-boxes", root=root).missing == (FRAMES[1],)


def test_a_frame_without_an_annotation_is_named(root: Path) -> None:
    folder = root / "ILSVRC2015/Annotations/VID"
    (folder / Path(FRAMES[2]).with_suffix(".xml")).unlink()
    with pytest.raises(DataError, match=r"1 frame\(s\) of the sets have no annotation: .*000006\.JPEG"):
        jostle.load_dataset("imagenet-vid-robust-boxes", root=root)
    shutil.rmtree(folder)
    with pytest.raises(DataError, match=r"no folder has val/.*000005\.xml, .*put ILSVRC2015's Annotations/VID there"):
        jostle.load_dataset("imagenet-vid-robust-boxes", root=root)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (annotated("n00000000"), "'n00000000' is the noun of no class"),
        (annotated(NOUNS[0]).replace("40", "forty"), "not xmin, ymin, xmax, ymax"),
        (annotated(NOUNS[0]).replace("<xmax>40</xmax>", ""), "not xmin, ymin, xmax, ymax"),
        (annotated(NOUNS[0]).replace("40", "4"), "ends before it begins"),
        (annotated(NOUNS[0]).replace("40", "inf"), "must be finite"),
        ("<annotation>", "not XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
    ],
)
def test_invalid_annotations_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_vid_boxes(write_text(tmp_path / "000000.xml", text))


def test_a_frame_may_have_no_object(tmp_path: Path) -> None:
    assert len(read_vid_boxes(write_text(tmp_path / "000000.xml", annotated()))) == 0
    assert len(set(NOUNS)) == len(class_names("imagenet-vid")) == 30


class CocoDetector:
    """Detector that finds the annotated dog and a person."""

    name = "coco"

    def __init__(self, classes: tuple[str, ...]) -> None:
        self.classes = classes

    def __call__(self, frames: np.ndarray) -> list[Boxes]:
        boxes = Boxes([[10, 5, 40, 30], [0, 0, 9, 9]], [self.classes.index("dog"), 0], [0.9, 0.8])
        return [boxes for _ in frames]


def test_a_coco_detector_is_scored_on_its_known_classes(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from jostle.models.objects.torchvision import COCO

    done = jostle.run("imagenet-vid-robust-boxes", model=CocoDetector(COCO), data=root, out=tmp_path / "run")
    objects = json.loads((done.folder / "scores.json").read_text())["clean_more"]["objects"]
    assert (objects["classes"], objects["of_classes"]) == (16, 30)
    assert objects["detection"]["pm_k"] == 1
    assert objects["detection"]["per_class"] == {str(DOG): [1, 1]}
