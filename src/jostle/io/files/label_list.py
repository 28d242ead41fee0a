"""Lists of video labels, collected row by row."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from jostle.core.formatting import describe
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError
from jostle.io.files.text import read_text
from jostle.io.files.video_ids import normalize_id
from jostle.io.video.video_source import video_suffixes


@dataclass
class LabelList:
    """Collects rows of (video, class), in the order of the file; videos are identified by their paths."""

    path: str | os.PathLike[str]
    numbered: bool = False
    _videos: dict[str, int] = field(default_factory=dict)
    _frames: dict[int, int] = field(default_factory=dict)
    _classes: dict[str, int] = field(default_factory=dict)
    _rows: dict[tuple[int, int], None] = field(default_factory=dict)

    def add(self, video: str, labels: Sequence[str], *, frames: int | None = None) -> None:
        """Add a video, by its path or id, with its classes."""
        index = self._videos.setdefault(video, len(self._videos))
        if frames is not None:
            self._frames[index] = frames
        for label in labels:
            self._rows[index, self._classes.setdefault(label, len(self._classes))] = None

    def finish(self, *, are_paths: bool) -> VideoLabels:
        """Return the labels; with `are_paths`, video ids are derived from file names."""
        if not self._videos:
            raise DataError(f"{self.path}: no video is listed; give a list with at least one", fault="F46")
        rows = np.array(list(self._rows), np.int32).reshape(-1, 2)
        return VideoLabels(
            videos=ids_of(list(self._videos)) if are_paths else tuple(map(normalize_id, self._videos)),
            classes=tuple(self._classes),
            video=rows[:, 0],
            label=rows[:, 1],
            numbered=self.numbered,
            paths=tuple(self._videos) if are_paths else (),
            frames=np.array([self._frames.get(i, 0) for i in range(len(self._videos))], np.int32)
            if self._frames
            else (),
        )


def ids_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return an id for each path: the file name, or the whole path without suffix where names repeat.

    >>> ids_of(["run/v_1.mp4", "jump/v_2"]), ids_of(["run/1.mp4", "jump/1.mp4"])
    (('v_1', 'v_2'), ('run/1', 'jump/1'))
    """
    whole = [PurePosixPath(path) for path in paths]
    bare = [path.with_suffix("") if path.suffix.lower() in video_suffixes() else path for path in whole]
    names = [normalize_id(path.name) for path in bare]
    if len(set(names)) == len(names):
        return tuple(names)
    long = [normalize_id(str(path)) for path in bare]
    return tuple(long) if len(set(long)) == len(long) else tuple(normalize_id(path) for path in paths)


def read_ids(path: str | Path) -> frozenset[str]:
    """Read video ids in normal form: a JSON list, or one id per line. Raises DataError if the file is neither."""
    text = read_text(path)
    if text.lstrip()[:1] not in ("[", "{"):
        return frozenset(normalize_id(line.strip()) for line in text.splitlines() if line.strip())
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: broken JSON ({str(error)[:80]}); a list of video ids is needed", fault="F27"
        ) from None
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise DataError(f"{path}: holds {describe(ids)}, not a list of video ids; or write one a line", fault="F28")
    return frozenset(map(normalize_id, ids))
