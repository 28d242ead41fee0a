"""Boxes of objects as ILSVRC2015 VID has them: an XML file a frame, classes by the number of their noun in WordNet."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from jostle.errors import BadValue, DataError
from jostle.filing.text import read_text
from jostle.types.boxes import Boxes

MAX_BYTES = 1 << 20  # a frame has a few objects

# The nouns of the thirty classes, in the order of their numbers.
NOUNS = (
    *("n02691156", "n02419796", "n02131653", "n02834778", "n01503061", "n02924116", "n02958343", "n02402425"),
    *("n02084071", "n02121808", "n02503517", "n02118333", "n02510455", "n02342885", "n02374451", "n02129165"),
    *("n01674464", "n02484322", "n03790512", "n02324045", "n02509815", "n02411705", "n01726692", "n02355227"),
    *("n02129604", "n04468005", "n01662784", "n04530566", "n02062744", "n02391049"),
)
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def read_vid_boxes(path: Path) -> Boxes:
    """The true boxes of one frame; a frame without objects has none.

    Raises:
        DataError: if the file is no annotation of a frame of ImageNet-Vid.
    """
    text = read_text(path, max_bytes=MAX_BYTES)
    if "<!" in text:  # entities are defined there, and annotations need none
        raise DataError(f"{path}: has a document type or comments, which annotations of frames do not", fault="F28")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{path}: is no XML: {error}", fault="F28") from None
    found = [_object(path, one) for one in root.iter("object")]
    try:
        return Boxes(np.array([box for _, box in found]), np.array([label for label, _ in found], np.int64))
    except BadValue as error:
        raise DataError(f"{path}: {error}", fault=error.fault) from None


def _object(path: Path, one: ElementTree.Element) -> tuple[int, list[float]]:
    noun = (one.findtext("name") or "").strip()
    if noun not in NOUNS:
        raise DataError(f"{path}: {noun!r} is the noun of no class of ImageNet-Vid", fault="F28")
    said = [(one.findtext(f"bndbox/{side}") or "").strip() for side in _SIDES]
    try:
        box = [float(side) for side in said]
    except ValueError:
        raise DataError(f"{path}: a {noun} has the box {said}, not {', '.join(_SIDES)}", fault="F28") from None
    if box[0] > box[2] or box[1] > box[3]:
        raise DataError(f"{path}: a {noun} has a box that ends before it begins: {said}", fault="F28")
    return NOUNS.index(noun), box
