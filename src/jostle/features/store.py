"""Features on disk: one `.npy` a video, and one `features.json` that says what they are and whether they are whole.

A file is never trusted because it is there. It counts if `features.json` names it with the checksum it has, and if it
was made by the same network with the same settings from the same video.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from jostle.errors import DataError, SourceChanged
from jostle.features.result import Extraction
from jostle.io.files.arrays import read_features
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.files.fingerprint import sha256_of_file
from jostle.io.files.records import Misfit, fitted
from jostle.io.files.video_ids import file_name_for, normal_id, path_for, shown
from jostle.models.extractors.protocol import Features

FORMAT = 1
FILE = "features.json"
FRAMES = "frames"  # folder of what was seen of each frame
_LEFTOVER_S = 3600.0  # after which a file under its temporary name was left by a process that is gone
_LEAST_PAUSE_S, _PAUSE = 1.0, 20  # between two writings of the list: a second, or twenty times what one takes


@dataclass(frozen=True)
class Origin:
    """What features were made by and from, the same for all of a folder.

    Attributes:
        extractor: name of the network.
        weights: checksum of its weights, None if they are not a file.
        window, stride, rule: how windows lie in time.
        dim: length of a feature.
        specs: corruptions, in order; none for clean video.
        placement: which frames they strike, None for what each spec says.
        seed: of random draws.
        truth: fingerprint of the annotations that placements looked at.
        released_faults: of the THUMOS14-C extractors, which were repeated.
        mend: what said which frames were struck, so that what they touch was replaced; None where it was let be.
        mend_weights: fingerprint of that.
    """

    extractor: str
    weights: str | None
    window: int
    stride: int
    rule: str
    dim: int
    specs: tuple[str, ...] = ()
    placement: str | None = None
    seed: int = 0
    truth: str | None = None
    released_faults: tuple[str, ...] = ()
    mend: str | None = None
    mend_weights: str | None = None


@dataclass(frozen=True)
class Entry:
    """One video of a folder of features.

    Attributes:
        file: name of the array.
        rows: features in it.
        fps: frames a second on the axis of the windows.
        frames: frames of the video.
        duration: seconds of the video.
        sha256: checksum of the file.
        source: size and time of change of the video file.
        frames_sha256: checksum of what was seen of each frame, None if that was not kept.
        warnings: how the video was read, where that was not plain.
    """

    file: str
    rows: int
    fps: float
    frames: int
    duration: float
    sha256: str
    source: tuple[int, int]
    frames_sha256: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Held(Origin):
    """What features.json holds."""

    videos: dict[str, Entry] = field(kw_only=True)


class FeatureStore:
    """A folder of features, to read and to fill.

    Args:
        folder: made if it is not there.
        origin: what features of it are made by.
        overwrite: forget what is there if it was made otherwise.

    Attributes:
        videos: the finished ones by id.
        set_aside: ids of videos that could not be used, and why.
        warnings: what was found wrong with the folder.

    Raises:
        SourceChanged: if the folder holds features of another origin, or another program's.
    """

    def __init__(self, folder: Path, origin: Origin, *, overwrite: bool = False) -> None:
        self.folder, self.origin = folder, origin
        self.videos: dict[str, Entry] = {}
        self.set_aside: dict[str, str] = {}
        self.warnings: tuple[str, ...] = ()
        self._written, self._pause = 0.0, 0.0
        self._make_folder()
        try:
            found = read_store(folder)
        except DataError as error:
            self.warnings = (f"{error}; its videos are extracted again",)
            return
        if found is None:
            if (folder / FILE).exists() and not overwrite:
                raise SourceChanged(f"{folder / FILE} is not of jostle's making; name another folder")
        elif found[0] == origin:
            self.videos = found[1]
        elif not overwrite:
            raise SourceChanged(f"{folder} holds other features: {_differences(found[0], origin)}")

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.folder}: cannot be made ({error.strerror}); name another folder") from None
        for folder in (self.folder, self.folder / FRAMES):
            _clear_leftovers(folder)

    def is_done(self, video_id: str, source: tuple[int, int], *, with_frames: bool) -> bool:
        """Whether the features of this state of a video are here and undamaged."""
        entry = self.videos.get(video_id)
        if entry is None or entry.source != source or (with_frames and entry.frames_sha256 is None):
            return False
        if sha256_of_file(path_for(self.folder, entry.file)) != entry.sha256:
            return False
        return not with_frames or sha256_of_file(path_for(self.folder / FRAMES, entry.file)) == entry.frames_sha256

    def add(self, video_id: str, entry: Entry) -> None:
        """List a video whose files are written."""
        self.videos[video_id] = entry
        self.set_aside.pop(video_id, None)
        if time.monotonic() - self._written > self._pause:
            self.save()

    def leave_out(self, video_id: str, why: str) -> None:
        """List a video that could not be used."""
        self.videos.pop(video_id, None)
        self.set_aside[video_id] = why

    def save(self) -> None:
        """Write the list."""
        begun = time.monotonic()
        content = {
            "format": FORMAT,
            **asdict(self.origin),
            "videos": {name: asdict(entry) for name, entry in sorted(self.videos.items())},
            "set_aside": dict(sorted(self.set_aside.items())),
        }
        write_text(self.folder / FILE, [json.dumps(content, indent=1, allow_nan=False), "\n"])
        self._written = time.monotonic()
        self._pause = max(_LEAST_PAUSE_S, _PAUSE * (self._written - begun))


def write_extraction(
    folder: Path, video_id: str, done: Extraction, *, with_frames: bool
) -> tuple[str, str, str | None]:
    """Write the arrays of a video; the name of its file and the checksums of features and frames.

    Raises:
        ResourceError: if the disk is full; nothing half-written is left.
    """
    name = file_name_for(video_id, ".npy")
    frames, kept = path_for(folder / FRAMES, name), None
    if with_frames and done.seen is not None:
        frames.parent.mkdir(exist_ok=True)
        kept = _write_array(frames, done.seen)
    else:
        frames.unlink(missing_ok=True)  # of an earlier run: it would not belong to the features beside it
    return name, _write_array(path_for(folder, name), done.features), kept


def read_extraction(folder: Path, entry: Entry, *, with_frames: bool) -> Extraction:
    """What was written of a video, once its checksums agree.

    Raises:
        DataError: if a file is missing or damaged.
    """
    paths = [(path_for(folder, entry.file), entry.sha256)]
    if with_frames:
        if entry.frames_sha256 is None:
            raise DataError(f"{folder}: what was seen of frames was not kept; extract with --keep-frames")
        paths.append((path_for(folder / FRAMES, entry.file), entry.frames_sha256))
    for path, expected in paths:
        if sha256_of_file(path) != expected:
            raise DataError(f"{path}: missing, or not as it was written; extract it again", fault="F50")
    arrays = [read_features(path) for path, _ in paths]
    return Extraction(arrays[0], arrays[1] if with_frames else None)


def read_store(folder: Path) -> tuple[Origin, dict[str, Entry]] | None:
    """What a folder says about its features; None if it has no `features.json`, or somebody else's.

    Raises:
        DataError: if the file is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        if path.exists() and not path.is_file():  # reading a pipe might never end
            raise DataError(f"{path}: not a regular file")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({str(error).splitlines()[0][:80]})") from None
    if not isinstance(content, dict) or not {"format", "extractor", "videos"} <= set(content):
        return None
    try:
        if content["format"] != FORMAT:
            raise DataError(f"{path}: format {content['format']!r}, this jostle reads {FORMAT}")
        held = fitted(_Held, content)
        videos = {normal_id(name): entry for name, entry in held.videos.items()}
        stray = [name for name, entry in videos.items() if entry.file != file_name_for(name, ".npy")]
    except Misfit as error:
        raise DataError(f"{path}: damaged ({error})", fault="F117") from None
    if stray:
        raise DataError(f"{path}: video {shown(stray[0])} has a file that is not its own")
    return Origin(**{field.name: getattr(held, field.name) for field in fields(Origin)}), videos


def extractor_of(folder: Path) -> str | None:
    """The extractor that made the features of a folder, where the folder says so."""
    try:
        found = read_store(folder)
    except DataError:  # damaged; whoever needs more than a name will say so
        return None
    return None if found is None else found[0].extractor


def _differences(here: Origin, asked: Origin) -> str:
    before, after = asdict(here), asdict(asked)
    said = [f"{key} is {before[key]!r}, not {after[key]!r}" for key in after if before[key] != after[key]]
    return "; ".join(said) + "; name another folder, or pass --overwrite"


def _write_array(path: Path, array: Features) -> str:
    packed = io.BytesIO()
    np.lib.format.write_array(packed, np.ascontiguousarray(array), allow_pickle=False)
    data = packed.getvalue()  # not a view of it, over which Python 3.12.1 stumbles when a failed write leaves one
    write_bytes(path, [data])
    return hashlib.sha256(data).hexdigest()


def _clear_leftovers(folder: Path) -> None:
    """Remove half-written files that nobody can be at work on any more."""
    for path in folder.glob(".*.part-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_S:
                path.unlink()
