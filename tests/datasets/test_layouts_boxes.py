"""ImageNet-Vid-Robust with boxes: files in the layout of ILSVRC2015, and scores of a COCO detector."""

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
from jostle.errors import DataError
from jostle.io.formats.boxes import NOUNS, read_vid_boxes
from jostle.metrics.class_projection import class_names

VIDEOS = ("val/ILSVRC2015_val_00000000", "val/ILSVRC2015_val_00000001")
SETS = {
    f"{VIDEOS[0]}/000005.JPEG": [f"{VIDEOS[0]}/000004.JPEG", f"{VIDEOS[0]}/000006.JPEG"],
    f"{VIDEOS[1]}/000009.JPEG": [],
}
FRAMES = [frame for anchor, others in SETS.items() for frame in (anchor, *others)]
DOG, FOX = class_names("imagenet-vid").index("dog"), class_names("imagenet-vid").index("fox")
OBJECT = """<object><trackid>0</trackid><name>{}</name><bndbox><xmax>40</xmax><xmin>10</xmin><ymax>30</ymax>
<ymin>5</ymin></bndbox><occluded>0</occluded><generated>0</generated></object>"""


def annotated(*nouns: str) -> str:
    objects = "".join(OBJECT.format(noun) for noun in nouns)
    return f"<annotation><folder>v</folder><size><width>64</width><height>48</height></size>{objects}</annotation>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_text(tmp_path / "metadata" / "pmsets.json", json.dumps(SETS))
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
