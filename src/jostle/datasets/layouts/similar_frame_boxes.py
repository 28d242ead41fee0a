"""ImageNet-Vid-Robust with boxes of objects, for pm-k of object detectors (Shankar et al., 2021).

Layout: as `imagenet-vid-robust`, `pmsets.json` and the images of ILSVRC2015 VID, and its annotations of the same
frames, `Annotations/VID/val/<video>/000432.xml`, in any folder of the root. A file of labels is not needed.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from jostle.datasets.box_sets import BoxSets
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.frame_sets import FrameSets
from jostle.datasets.layouts import tree
from jostle.datasets.layouts.similar_frames import ANNOTATIONS, SETS, images_of
from jostle.errors import DataError
from jostle.filing.frames import read_frame_sets
from jostle.filing.names import listing, shown
from jostle.filing.vid_boxes import read_vid_boxes
from jostle.metrics.class_projection import class_names
from jostle.types.boxes import Boxes

NAME, TITLE = "imagenet-vid-robust-boxes", "ImageNet-Vid-Robust"


@dataset(NAME, subsets=("test",), task="objects", on_disk=True)
def imagenet_vid_robust_boxes(request: Request) -> Dataset:
    """ImageNet-Vid-Robust with the boxes of ImageNet-Vid: 1,109 anchors and their frames, objects of 30 classes."""
    tree.check_root(request.root, TITLE)
    found = [request.annotations] if request.annotations else tree.named(tree.small_files(request.root), SETS)
    if not found:
        raise tree.no_annotations(request.root, TITLE, SETS[:1])
    frames = FrameSets(read_frame_sets(found[0]), {})
    videos, absent = images_of(request.root, frames)
    sets = BoxSets(class_names("imagenet-vid"), frames.sets, _boxes(request, frames))
    return Dataset(NAME, request.subset, request.root, (sets,), videos, source=found[0], missing=absent)


def _boxes(request: Request, frames: FrameSets) -> dict[str, Boxes]:
    """The true boxes of every frame of the sets."""
    wanted = {frame: PurePosixPath(frame).with_suffix(".xml") for frame in frames.frames}
    base, cut = _annotations(request.root, list(wanted.values()))
    files = {frame: base.joinpath(*path.parts[cut:]) for frame, path in wanted.items()}
    lacking = [frame for frame, file in files.items() if not file.is_file()]
    if lacking:
        raise DataError(
            f"{base}: {len(lacking)} frame(s) of the sets have no annotation there: {listing(map(shown, lacking))}; "
            "unpack the annotations of ILSVRC2015's VID whole",
            fault="F36",
        )
    made = {}
    for done, (frame, file) in enumerate(files.items(), 1):
        made[frame] = read_vid_boxes(file)
        if request.progress is not None:
            request.progress(done, len(files))
    return made


def _annotations(root: Path, wanted: list[PurePosixPath]) -> tuple[Path, int]:
    """The folder that the frames' names are to be taken from, and how many of their first parts it has already."""
    for folder in tree.folders_of(root):
        for cut in (0, 1):
            if any(folder.joinpath(*path.parts[cut:]).is_file() for path in wanted[:1]):
                return folder, cut
    first = str(wanted[0]) if wanted else ""
    raise DataError(
        f"{root}: no folder has {shown(first)}, the annotation of the first frame; put ILSVRC2015's "
        f"{ANNOTATIONS}/VID there, and give the folder that has them and the images",
        fault="F36",
    )
