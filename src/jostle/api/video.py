"""Videos that verbs are given: files, folders of images, and objects with frames."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.core.types.clip import Clip, Frames
from jostle.core.types.segments import Segments
from jostle.core.types.video_location import location_of
from jostle.errors import BadValue, DataError

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset

FramesOrClip = TypeVar("FramesOrClip", Frames, Clip, Any)  # anything else is a tensor, of a library that may be absent
SegmentsLike = Segments | Iterable[Sequence[float]] | None


def read(
    path: str | Path | Any,
    start: int | float | None = None,
    stop: int | float | None = None,
    *,
    fps: Fraction | float | None = None,
) -> Clip:
    """The frames of a video from `start` to before `stop`: frame numbers if whole, seconds if floats.

    Args:
        path: a video file, a folder of numbered images, an address, or a file in a tar archive; or a torchcodec
            `VideoDecoder`, or another object with frames and timestamps.
        fps: the rate of images that have no `times.json`; 30 if nothing says it.
    """
    from jostle.io.video.decode import read as read_video
    from jostle.io.video.frame_objects import is_frame_object, read_object

    if is_frame_object(path):
        return read_object(path, start, stop, fps=fps)
    return read_video(path, start, stop, fps=fps)


def single_video(source: str | Path) -> Path:
    """The path of a video; a folder has to be one, of images.

    Raises:
        DataError: if a folder holds no images, or video files beside them.
    """
    from jostle.core.formatting import join_names
    from jostle.datasets.videos import find_videos, holds_frames
    from jostle.io.files.video_ids import quote_name

    path = location_of(source)
    if path.is_dir() and not holds_frames(path):
        videos = (quote_name(str(file.relative_to(path))) for file in find_videos(path).values())
        there = join_names(videos) or "no video either"
        raise DataError(f"{path}: no images in this folder, so it is not one video; it holds {there}", fault="F4")
    return path


@contextmanager
def video_path(source: str | Path | Any, video_id: str | None, fps: Fraction | float | None = None) -> Iterator[Path]:
    """Give the path of a video; frames of an object are written as images, for as long as they are needed."""
    from jostle.io.files.video_ids import file_name_for
    from jostle.io.video.frame_objects import is_frame_object, write_object

    if not is_frame_object(source):
        yield location_of(source)
        return
    if video_id is None:
        raise BadValue(f"a {type(source).__name__} has no name; pass video_id=", fault="F185")
    with TemporaryDirectory(prefix="jostle-") as folder:
        yield write_object(source, Path(folder, file_name_for(video_id, "")), fps=fps)


def with_videos(
    data: Dataset, videos: Mapping[str, Any] | None, folder: Path, fps: Fraction | float | None = None
) -> Dataset:
    """Return a data set with other videos in place of its files.

    Args:
        videos: by id, paths or objects with frames and timestamps.
        folder: where frames of objects are written.

    Raises:
        DataError: if the data set has no annotations of one of them.
    """
    from jostle.core.formatting import join_names
    from jostle.io.files.video_ids import file_name_for, quote_name
    from jostle.io.video.frame_objects import is_frame_object, write_object

    if not videos:
        return data
    listed = {*data.videos, *data.missing}
    strange = [quote_name(name) for name in videos if name not in listed]
    if strange:
        raise DataError(
            f"{data.name} has no annotations of {join_names(strange)}; it has {join_names(map(quote_name, listed))}",
            fault="F185",
        )
    paths = dict(data.videos)
    for name, video in videos.items():
        if is_frame_object(video):
            target = folder / file_name_for(name, "")
            shutil.rmtree(target, ignore_errors=True)  # of a run that goes on
            folder.mkdir(parents=True, exist_ok=True)
            paths[name] = write_object(video, target, fps=fps)
        else:
            paths[name] = single_video(video)
    return replace(data, videos=paths, missing=tuple(name for name in data.missing if name not in paths))


def as_segments(segments: SegmentsLike) -> Segments | None:
    """Segments from what a caller may give: Segments, pairs of seconds, or nothing."""
    if segments is None or isinstance(segments, Segments):
        return segments
    return Segments.from_pairs(segments)
