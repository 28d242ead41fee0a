"""ImageNet-Vid-Robust and YTBB-Robust: frames around an anchor that look like it, for pm-k (Shankar et al., 2021).

Layout: `pmsets.json` and `labels.json` in one folder, usually `metadata/`, and the images by the names that these
have, `val/<video>/000432.JPEG` or `<video>/frame-1362.jpg`, below any folder of the root: `data/`, or
`ILSVRC2015/Data/VID/`. A root that is itself the `val` folder does as well.

Both files may be gzipped. A video is named by the folder of its frames, `val/ILSVRC2015_val_00000000`.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from jostle.core.formatting import join_names
from jostle.core.types.boxes import Boxes
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.errors import DataError
from jostle.io.files.video_ids import quote_name
from jostle.io.formats.boxes import read_vid_boxes
from jostle.io.formats.frame_scores import read_frame_labels, read_frame_sets
from jostle.metrics.class_projection import class_names

SETS = ("pmsets.json", "*pmsets*.json", "*pm_sets*.json")
LABELS = ("labels.json", "*labels*.json")
ANNOTATIONS = "Annotations"  # of ILSVRC2015: a folder with a folder of each video, and no image in it
_TRIED = 20  # videos by which the folder of images is recognised


@dataset("imagenet-vid-robust", subsets=("test",), task="frames", on_disk=True)
def imagenet_vid_robust(request: Request) -> Dataset:
    """ImageNet-Vid-Robust: 1,109 anchors from ImageNet-Vid with 21,070 frames that look like them, 30 classes."""
    return load_frames(request, "imagenet-vid-robust", "ImageNet-Vid-Robust")


@dataset("ytbb-robust", subsets=("test",), task="frames", on_disk=True)
def ytbb_robust(request: Request) -> Dataset:
    """YTBB-Robust: 2,030 anchors from YouTube-BoundingBoxes with 36,827 frames that look like them, 24 classes."""
    return load_frames(request, "ytbb-robust", "YTBB-Robust")


def load_frames(request: Request, name: str, title: str) -> Dataset:
    """Load the sets of frames in a folder, with the images that exist."""
    search.check_root(request.root, title)
    place, frames = read_sets(request.root, title, request.annotations)
    unlabelled = [frame for frame in frames.frames if frame not in frames.labels]
    if unlabelled:
        raise DataError(
            f"{place}: {len(unlabelled)} frame(s) of the sets have no label in the file of labels beside it: "
            f"{join_names(map(quote_name, unlabelled))}; the two files must be of one release",
            fault="F36",
        )
    videos, absent = images_of(request.root, frames)
    return Dataset(name, request.subset, request.root, (frames,), videos, source=place, missing=absent)


def read_sets(root: Path, title: str, labels: Path | None = None) -> tuple[Path, FrameSets]:
    """Read the sets with the labels beside them; return the path of the sets, too."""
    path = [labels] if labels else search.named(search.small_files(root), SETS)
    if not path:
        raise search.no_annotations(root, title, (SETS[0], LABELS[0]))
    beside = search.named(sorted(path[0].parent.iterdir()), LABELS)
    if not beside:
        raise DataError(f"{path[0]}: no labels.json beside it; put the labels of the frames there")
    return path[0], FrameSets(read_frame_sets(path[0]), read_frame_labels(beside[0]))


def images_of(root: Path, frames: FrameSets) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Return the folder of each video that has an image, and the frames that have none."""
    names = frames.videos
    unsafe = [video for video in names if PurePosixPath(video).is_absolute() or ".." in PurePosixPath(video).parts]
    if unsafe:
        raise DataError(
            f"the frames of {quote_name(unsafe[0])} lie outside the folder; name them from its root", fault="F23"
        )
    tried = names[:: max(1, len(names) // _TRIED)]
    # A root may be the `val` folder itself; a name of one part has nothing to cut.
    cuts = (0, 1) if all("/" in video for video in names) else (0,)
    bases = [base for base in search.folders_of(root) if ANNOTATIONS not in base.parts[len(root.parts) :]]
    places = [(base, cut) for base in bases for cut in cuts]
    # `max` takes the first of equals, which is the nearest.
    base, cut = max(places, key=lambda place: sum(_below(place[0], place[1], video).is_dir() for video in tried))
    folders = {video: _below(base, cut, video) for video in names}
    held = {video: _names(folder) for video, folder in folders.items()}
    split = [(frame, *frame.rpartition("/")[::2]) for frame in frames.frames]
    absent = tuple(frame for frame, video, name in split if name not in held[video])
    used = {video for _, video, name in split if name in held[video]}
    return {video: folder for video, folder in folders.items() if video in used}, absent


def _below(base: Path, cut: int, video: str) -> Path:
    return base.joinpath(*PurePosixPath(video).parts[cut:])


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


NAME, TITLE = "imagenet-vid-robust-boxes", "ImageNet-Vid-Robust"


@dataset(NAME, subsets=("test",), task="objects", on_disk=True)
def imagenet_vid_robust_boxes(request: Request) -> Dataset:
    """ImageNet-Vid-Robust with the boxes of ImageNet-Vid: 1,109 anchors and their frames, objects of 30 classes."""
    search.check_root(request.root, TITLE)
    box_sets = [request.annotations] if request.annotations else search.named(search.small_files(request.root), SETS)
    if not box_sets:
        raise search.no_annotations(request.root, TITLE, SETS[:1])
    frames = FrameSets(read_frame_sets(box_sets[0]), {})
    videos, absent = images_of(request.root, frames)
    sets = BoxSets(class_names("imagenet-vid"), frames.sets, _boxes(request, frames))
    return Dataset(NAME, request.subset, request.root, (sets,), videos, source=box_sets[0], missing=absent)


def _boxes(request: Request, frames: FrameSets) -> dict[str, Boxes]:
    """Read the true boxes of every frame of the sets."""
    names = {frame: PurePosixPath(frame).with_suffix(".xml") for frame in frames.frames}
    base, cut = _annotations(request.root, list(names.values()))
    files = {frame: base.joinpath(*path.parts[cut:]) for frame, path in names.items()}
    lacking = [frame for frame, file in files.items() if not file.is_file()]
    if lacking:
        raise DataError(
            f"{base}: {len(lacking)} frame(s) of the sets have no annotation: {join_names(map(quote_name, lacking))}; "
            "unpack the annotations of ILSVRC2015's VID whole",
            fault="F36",
        )
    boxes = {}
    for done, (frame, file) in enumerate(files.items(), 1):
        boxes[frame] = read_vid_boxes(file)
        if request.progress is not None:
            request.progress(done, len(files))
    return boxes


def _annotations(root: Path, frames: list[PurePosixPath]) -> tuple[Path, int]:
    """Return the annotation folder, and how many leading parts of the frames' names it includes."""
    for folder in search.folders_of(root):
        for cut in (0, 1):
            if any(folder.joinpath(*path.parts[cut:]).is_file() for path in frames[:1]):
                return folder, cut
    first = str(frames[0]) if frames else ""
    raise DataError(
        f"{root}: no folder has {quote_name(first)}, the annotation of the first frame; put ILSVRC2015's "
        f"{ANNOTATIONS}/VID there, and give the folder that has them and the images",
        fault="F36",
    )
