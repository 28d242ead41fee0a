"""Matching of annotated videos with files on disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from jostle.core.formatting import join_names
from jostle.datasets.layouts.search import folders_of, linked_folders, subset_of_path
from jostle.datasets.videos import VideoFiles, every_video
from jostle.errors import DataError
from jostle.io.files.video_ids import normalize_id, quote_name
from jostle.io.video.video_source import video_suffixes


@dataclass(frozen=True)
class VideoMatch:
    """Result of matching; see `Dataset`."""

    videos: dict[str, Path]
    missing: tuple[str, ...]
    unlisted: tuple[Path, ...]


class VideoIndex:
    """Index of all videos in a data set's folder, files and folders of images.

    Links to folders are followed if they lie in the root itself, as people put a root together from disks; deeper
    ones must stay inside, and so must links to files.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_id, self._skipped = every_video(root)
        for link in linked_folders(root):
            linked, skipped = every_video(link)
            self._skipped = [entry for entry in self._skipped if entry[0] != link] + skipped
            for video_id, paths in linked.items():
                self.by_id.setdefault(video_id, []).extend(paths)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about skipped files, one line for each reason."""
        return VideoFiles({}, self._skipped).warnings

    @cached_property
    def paths(self) -> list[Path]:
        """All videos, sorted by name."""
        return sorted((path for paths in self.by_id.values() for path in paths), key=os.fsencode)

    def match(
        self,
        ids: Sequence[str],
        *,
        paths: Sequence[str] = (),
        images: bool = False,
        subset: str = "",
        known: Collection[str] | None = None,
        core: Callable[[str], str] = str,
    ) -> VideoMatch:
        """Find the file of each id.

        Of several files with one id, one is chosen by the folder its path in the list names, then by the folder of
        the subset; if that is still ambiguous, nothing is guessed.

        Args:
            paths: where a list says that each video lies.
            images: whether the list says that videos lie as folders of images.
            subset: the requested subset; a file below the folder of another one is not called unlisted.
            known: ids of the other subsets; if None, nothing is called unlisted.
            core: the part of an id that its spellings share, for files whose id is not spelled as annotated.

        Raises:
            DataError: F20 if files remain that one id could mean.
        """
        by_core = self._by_core(ids, core)
        matches: dict[str, Path] = {}
        doubles = []
        for place, video_id in enumerate(ids):
            path = PurePosixPath(paths[place]) if paths else PurePosixPath(video_id)
            files = self.by_id.get(video_id) or by_core.get(core(video_id)) or self._in_folder(video_id, path)
            files = self._nearest(files, path.parent.name, subset)
            if len(files) == 1:
                matches[video_id] = files[0]
            elif files:
                doubles.append(
                    f"{quote_name(video_id)} ({' and '.join(quote_name(self._short(file)) for file in files)})"
                )
            elif images and (folder := self._image_folder(path)):
                matches[video_id] = folder
        if doubles:
            raise DataError(
                f"{self.root}: {len(doubles)} video(s) have more than one file: {join_names(doubles, separator='; ')}; "
                "move one of each away, or give the folder of one copy",
                fault="F20",
            )
        return VideoMatch(
            matches, tuple(i for i in ids if i not in matches), self._unlisted(matches, known, core, subset)
        )

    def _by_core(self, ids: Sequence[str], core: Callable[[str], str]) -> dict[str, list[Path]]:
        """Return files by the common part of their ids' spellings, unless two annotated ids share it."""
        shared = Counter(map(core, ids))
        by_core: dict[str, list[Path]] = {}
        for video_id, files in self.by_id.items():
            if shared[core(video_id)] == 1:
                by_core.setdefault(core(video_id), []).extend(files)
        return by_core

    def _in_folder(self, video_id: str, path: PurePosixPath) -> list[Path]:
        """Return the files of an id that is a path; they must lie in a folder of the same name."""
        name = normalize_id(path.stem if path.suffix.lower() in video_suffixes() else path.name)
        return [file for file in self.by_id.get(name, []) if "/" in video_id and file.parent.name == path.parent.name]

    def _nearest(self, files: list[Path], folder: str, subset: str) -> list[Path]:
        for fits in (
            lambda file: not file.is_dir(),  # images of a video that is there itself
            lambda file: bool(folder) and file.parent.name == folder,
            lambda file: bool(subset) and subset_of_path(file, self.root) == subset,
        ):
            if len(files) > 1:
                files = [file for file in files if fits(file)] or files
        return files

    def _unlisted(
        self, unlisted: dict[str, Path], known: Collection[str] | None, core: Callable[[str], str], subset: str
    ) -> tuple[Path, ...]:
        if known is None:
            return ()
        used, others = set(unlisted.values()), {core(video_id) for video_id in known}
        left = [
            path
            for video_id, files in self.by_id.items()
            for path in files
            if path not in used and core(video_id) not in others and subset_of_path(path, self.root) in ("", subset)
        ]
        return tuple(sorted(left, key=os.fsencode))

    def _image_folder(self, path: PurePosixPath) -> Path | None:
        """Find the folder of images that a list names, in the root and one folder below."""
        if path.is_absolute() or ".." in path.parts:
            return None
        return next((base / path for base in self._bases if (base / path).is_dir()), None)

    @cached_property
    def _bases(self) -> list[Path]:
        return list(folders_of(self.root, 1))

    def _short(self, file: Path) -> str:
        return str(file.relative_to(self.root))
