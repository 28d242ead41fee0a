"""Feature store on disk: one `.npy` a video, and a `features.json` that describes and verifies them.

An existing file is not trusted by itself. It counts if it is listed with its checksum, and if it was extracted by the
same network with the same settings from the same video. A ledger lists each video as soon as its files are written, so
that a killed process loses none, nor do several in one folder; `features.json`, for others to read, is written from it.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path

import numpy as np

from jostle.core.schema import Mismatch, parse
from jostle.errors import DataError, SourceChanged
from jostle.features.extraction import Extraction
from jostle.io.files.arrays import read_features
from jostle.io.files.atomic import remove_leftovers, write_bytes, write_text
from jostle.io.files.ledger import MANIFEST, Ledger, check_same
from jostle.io.files.video_ids import file_name_for, normalize_id, path_for, quote_name
from jostle.io.video.source import sha256_of_file
from jostle.models.extractors.protocol import Features

FORMAT = 1
FILE = "features.json"
FRAMES = "frames"  # folder of frame features


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

    @property
    def fingerprint(self) -> str:
        """Hash of all fields."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


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


@dataclass(frozen=True)
class _LedgerLine:
    """A video whose features were written, or found to be of no use; the last line of a video counts."""

    video: str
    origin: str  # fingerprint of the origin
    entry: VideoEntry | None

    def __post_init__(self) -> None:
        if self.entry is not None and self.entry.file != file_name_for(self.video, ".npy"):
            raise Mismatch("is not the file of its video").under("file").under("entry")


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
        self.set_aside: dict[str, str] = {}
        self.warnings: tuple[str, ...] = ()
        self._ledger = _ledger_of(folder)
        self._make_folder()
        self._listed = self._read_listed(overwrite=overwrite)
        self.videos = _updated(self._listed or {}, origin, self._ledger.read())

    def _read_listed(self, *, overwrite: bool) -> dict[str, VideoEntry] | None:
        """Return the videos that `features.json` lists; None if it does not describe this origin yet."""
        try:
            stored = _read_list(self.folder)
        except DataError as error:
            self.warnings = (f"{error}; it is written again",)
            return None
        if stored is None:
            if (self.folder / FILE).exists() and not overwrite:
                raise SourceChanged(f"{self.folder / FILE} was not written by jostle; choose another folder")
            return None
        if not overwrite:
            check_same(self.folder, "other features", vars(stored[0]), vars(self.origin), "pass --overwrite")
        return stored[1] if stored[0] == self.origin else None

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.folder}: cannot be created ({error.strerror}); choose another folder") from None
        for folder in (self.folder, self.folder / FRAMES):
            remove_leftovers(folder)

    def is_done(self, video_id: str, source: tuple[int, int], *, with_frames: bool) -> bool:
        """Return whether the features of this version of a video are present and undamaged."""
        entry = self.videos.get(video_id)
        if entry is None or entry.source != source or (with_frames and entry.frames_sha256 is None):
            return False
        if sha256_of_file(path_for(self.folder, entry.file)) != entry.sha256:
            return False
        return not with_frames or sha256_of_file(path_for(self.folder / FRAMES, entry.file)) == entry.frames_sha256

    def add(self, video_id: str, entry: VideoEntry) -> None:
        """Record a video whose files are written."""
        self._record(video_id, entry)
        self.videos[video_id] = entry
        self.set_aside.pop(video_id, None)
        if self._listed is None:  # from now on the folder says whose features it holds
            self.save()

    def leave_out(self, video_id: str, why: str) -> None:
        """Record a video that could not be used, and why."""
        if self.videos.pop(video_id, None) is not None:
            self._record(video_id, None)
        self.set_aside[video_id] = why

    def save(self) -> None:
        """Write `features.json` from the ledger, again if another process has added to it meanwhile."""
        written = None
        while (lines := self._ledger.read()) != written:
            self.videos = _updated(self._listed or {}, self.origin, lines)
            content = {
                "format": FORMAT,
                **asdict(self.origin),
                "videos": {name: asdict(entry) for name, entry in sorted(self.videos.items())},
                "set_aside": dict(sorted(self.set_aside.items())),
            }
            write_text(self.folder / FILE, [json.dumps(content, indent=1, allow_nan=False), "\n"])
            written, self._listed = lines, self.videos

    def _record(self, video_id: str, entry: VideoEntry | None) -> None:
        with self._ledger:
            self._ledger.add(_LedgerLine(video_id, self.origin.fingerprint, entry))


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
    """Read the origin and the finished videos of a folder; None if it has no `features.json` of jostle."""
    stored = _read_list(folder)
    return None if stored is None else (stored[0], _updated(stored[1], stored[0], _ledger_of(folder).read()))


def _updated(
    videos: Mapping[str, VideoEntry], origin: FeatureOrigin, lines: Sequence[_LedgerLine]
) -> dict[str, VideoEntry]:
    """Return the videos after the lines of a ledger; the files of a video are of the origin of its last line."""
    own = origin.fingerprint
    last = {line.video: line.entry if line.origin == own else None for line in lines}
    return {video: entry for video, entry in {**videos, **last}.items() if entry is not None}


def _ledger_of(folder: Path) -> Ledger[_LedgerLine]:
    line, remedy = partial(parse, _LedgerLine), "remove it, and its videos are extracted again"
    return Ledger(folder / MANIFEST, line, shared=True, damaged="redo", remedy=remedy, fault="F117")


def _read_list(folder: Path) -> tuple[FeatureOrigin, dict[str, VideoEntry]] | None:
    """Read the `features.json` of a folder; None if there is none, or one of another program."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({str(error).splitlines()[0][:80]})") from None
    if not isinstance(content, dict) or not {"format", "extractor", "videos"} <= set(content):
        return None
    try:
        if content["format"] != FORMAT:
            raise DataError(f"{path}: format {content['format']!r}, this jostle reads {FORMAT}")
        stored = parse(_StoredFeatures, content)
        videos = {normalize_id(name): entry for name, entry in stored.videos.items()}
        stray = [name for name, entry in videos.items() if entry.file != file_name_for(name, ".npy")]
    except Mismatch as error:
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


def _write_array(path: Path, array: Features) -> str:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    data = buffer.getvalue()  # a copy: Python 3.12.1 fails to free a view that a failed write leaves
    write_bytes(path, [data])
    return hashlib.sha256(data).hexdigest()
