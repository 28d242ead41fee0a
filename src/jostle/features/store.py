"""Feature store on disk: one `.npy` a video, and a `features.json` that describes and verifies them.

An existing file is not trusted by itself. It counts if `features.json` lists it with its checksum, and if it was
extracted by the same network with the same settings from the same video.
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
from jostle.features.extraction import Extraction
from jostle.io.files.arrays import read_features
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.files.records import ValidationError, parse_record
from jostle.io.files.video_ids import file_name_for, normalize_id, path_for, quote_name
from jostle.io.video.source import sha256_of_file
from jostle.models.extractors.protocol import Features

FORMAT = 1
FILE = "features.json"
FRAMES = "frames"  # folder of frame features
_LEFTOVER_S = 3600.0  # age from which a temporary file counts as abandoned
_LEAST_PAUSE_S, _PAUSE = 1.0, 20  # between two saves of the list: a second, or twenty times what one takes


@dataclass(frozen=True)
class FeatureOrigin:
    """Provenance of the features of a folder, the same for all of its videos."""

    extractor: str
    weights: str | None  # checksum of its weights, None if they are not a file
    # `window`, `stride`, `rule`: layout of the windows.
    window: int
    stride: int
    rule: str
    dim: int  # length of a feature
    specs: tuple[str, ...] = ()  # corruptions, in order; none for clean video
    placement: str | None = None  # which frames they affect, None for each spec's default
    seed: int = 0  # seed of the corruptions
    truth: str | None = None  # fingerprint of the annotations that placements used
    reproduce_bugs: tuple[str, ...] = ()  # bugs of the THUMOS14-C extractors that were reproduced
    mend: str | None = None  # name of the mending strategy; None without mending
    mend_weights: str | None = None  # fingerprint of its inspector


@dataclass(frozen=True)
class VideoEntry:
    """One video of a folder of features."""

    file: str  # name of the array
    rows: int  # number of features
    fps: float  # frames a second on the axis of the windows
    frames: int  # frames of the video
    duration: float  # seconds of the video
    sha256: str  # checksum of the file
    source: tuple[int, int]  # size and modification time of the video file
    frames_sha256: str | None = None  # checksum of the frame features, None if they were not kept
    warnings: tuple[str, ...] = ()  # warnings from reading the video


@dataclass(frozen=True)
class _StoredFeatures(FeatureOrigin):
    """Content of a `features.json` file."""

    videos: dict[str, VideoEntry] = field(kw_only=True)


class FeatureStore:
    """Folder of features, open for reading and writing.

    Args:
        folder: created if missing.
        overwrite: discard existing features of another origin.

    Attributes:
        videos: finished videos by id.
        set_aside: ids of videos that could not be used, and why.
        warnings: problems found in the folder.

    Raises:
        SourceChanged: if the folder holds features of another origin, or another program's.
    """

    def __init__(self, folder: Path, origin: FeatureOrigin, *, overwrite: bool = False) -> None:
        self.folder, self.origin = folder, origin
        self.videos: dict[str, VideoEntry] = {}
        self.set_aside: dict[str, str] = {}
        self.warnings: tuple[str, ...] = ()
        self._written, self._pause = 0.0, 0.0
        self._make_folder()
        try:
            stored = read_store(folder)
        except DataError as error:
            self.warnings = (f"{error}; its videos are extracted again",)
            return
        if stored is None:
            if (folder / FILE).exists() and not overwrite:
                raise SourceChanged(f"{folder / FILE} was not written by jostle; choose another folder")
        elif stored[0] == origin:
            self.videos = stored[1]
        elif not overwrite:
            raise SourceChanged(f"{folder} holds other features: {_differences(stored[0], origin)}")

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.folder}: cannot be created ({error.strerror}); choose another folder") from None
        for folder in (self.folder, self.folder / FRAMES):
            _clear_leftovers(folder)

    def is_done(self, video_id: str, source: tuple[int, int], *, with_frames: bool) -> bool:
        """Return whether the features of this version of a video are present and undamaged."""
        entry = self.videos.get(video_id)
        if entry is None or entry.source != source or (with_frames and entry.frames_sha256 is None):
            return False
        if sha256_of_file(path_for(self.folder, entry.file)) != entry.sha256:
            return False
        return not with_frames or sha256_of_file(path_for(self.folder / FRAMES, entry.file)) == entry.frames_sha256

    def add(self, video_id: str, entry: VideoEntry) -> None:
        """Add a video whose files are written to the list."""
        self.videos[video_id] = entry
        self.set_aside.pop(video_id, None)
        if time.monotonic() - self._written > self._pause:
            self.save()

    def leave_out(self, video_id: str, why: str) -> None:
        """Record a video that could not be used, and why."""
        self.videos.pop(video_id, None)
        self.set_aside[video_id] = why

    def save(self) -> None:
        """Write the list of videos to `features.json`."""
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
    """Write the arrays of a video; return its file name and the checksums of features and frame features.

    Raises:
        ResourceError: if the disk is full; nothing half-written is left.
    """
    name = file_name_for(video_id, ".npy")
    frames, frames_sha = path_for(folder / FRAMES, name), None
    if with_frames and done.seen is not None:
        frames.parent.mkdir(exist_ok=True)
        frames_sha = _write_array(frames, done.seen)
    else:
        frames.unlink(missing_ok=True)  # from an earlier run, so it does not belong to these features
    return name, _write_array(path_for(folder, name), done.features), frames_sha


def read_extraction(folder: Path, entry: VideoEntry, *, with_frames: bool) -> Extraction:
    """Read the arrays of a video after verifying their checksums."""
    paths = [(path_for(folder, entry.file), entry.sha256)]
    if with_frames:
        if entry.frames_sha256 is None:
            raise DataError(f"{folder}: has no frame features; extract with --keep-frames")
        paths.append((path_for(folder / FRAMES, entry.file), entry.frames_sha256))
    for path, expected in paths:
        if sha256_of_file(path) != expected:
            raise DataError(f"{path}: missing, or changed since it was written; extract it again", fault="F50")
    arrays = [read_features(path) for path, _ in paths]
    return Extraction(arrays[0], arrays[1] if with_frames else None)


def read_store(folder: Path) -> tuple[FeatureOrigin, dict[str, VideoEntry]] | None:
    """Read the `features.json` of a folder; None if there is none, or one of another program."""
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
        stored = parse_record(_StoredFeatures, content)
        videos = {normalize_id(name): entry for name, entry in stored.videos.items()}
        stray = [name for name, entry in videos.items() if entry.file != file_name_for(name, ".npy")]
    except ValidationError as error:
        raise DataError(f"{path}: damaged ({error})", fault="F117") from None
    if stray:
        raise DataError(f"{path}: video {quote_name(stray[0])} has a file that is not its own")
    return FeatureOrigin(**{field.name: getattr(stored, field.name) for field in fields(FeatureOrigin)}), videos


def read_extractor_name(folder: Path) -> str | None:
    """Return the name of the extractor of a folder's features, or None if it is unknown."""
    try:
        stored = read_store(folder)
    except DataError:  # damaged, which is reported when the features are read
        return None
    return None if stored is None else stored[0].extractor


def _differences(stored: FeatureOrigin, requested: FeatureOrigin) -> str:
    before, after = asdict(stored), asdict(requested)
    differences = [f"{key} is {before[key]!r}, not {after[key]!r}" for key in after if before[key] != after[key]]
    return "; ".join(differences) + "; choose another folder, or pass --overwrite"


def _write_array(path: Path, array: Features) -> str:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    data = buffer.getvalue()  # a copy: Python 3.12.1 fails to free a view that a failed write leaves
    write_bytes(path, [data])
    return hashlib.sha256(data).hexdigest()


def _clear_leftovers(folder: Path) -> None:
    """Remove temporary files that were abandoned long ago."""
    for path in folder.glob(".*.part-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_S:
                path.unlink()
