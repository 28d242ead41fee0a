"""Where the corrupted copies of a benchmark lie: `<corruption>/<severity>/<path of the source>`, as -C sets have it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Literal

import numpy as np

from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.versions import builds
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.video import corrupt_video
from jostle.datasets.dataset import Dataset, Files
from jostle.datasets.generated_files import Recipe as FileRecipe
from jostle.datasets.generated_files import fill, recorded, sha256_of
from jostle.errors import BadValue, DataError, JostleError, SourceChanged
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe, safe
from jostle.io.files.atomic import write_text
from jostle.io.files.records import read_record
from jostle.io.files.video_ids import refuse_collisions, shown
from jostle.io.video.source import identity_of


def cell_folders(recipe: Recipe) -> dict[str, PurePosixPath]:
    """The folder of every cell, by its name, under the root of the written set.

    The first part is the corruption, without its profile unless two profiles of the recipe share the name; the second
    is the severity, a whole number that loaders can read. A placement that the recipe asks for stands with the
    corruption. The clean videos are at severity 0.

    >>> from jostle.evaluation.recipes.recipe import benchmarks
    >>> folders = cell_folders(benchmarks["thumos14-c"])
    >>> str(folders["thumos14-c/packet_loss:3"]), str(folders["thumos14-c/black_frame:1@at:10%x5"])
    ('packet_loss/3', 'black_frame@at-10pct-x5/1')
    """
    homes: dict[str, set[str | None]] = defaultdict(set)
    for cell in recipe.cells:
        for spec in cell.parsed:
            homes[spec.name].add(spec.profile)
    return {
        cell.name: _folder(cell, {name for name, found in homes.items() if len(found) > 1}) for cell in recipe.cells
    }


def _folder(cell: Cell, shared: set[str]) -> PurePosixPath:
    if cell.name == CLEAN:
        return PurePosixPath(CLEAN, "0")
    place = cell.name.partition("@")[2]
    names = [_word(spec, shared) for spec in cell.parsed]
    severities = [str(spec.severity) for spec in cell.parsed]
    if len(set(severities)) == 1:
        severities = severities[:1]
    return PurePosixPath("+".join(names) + (f"@{safe(place)}" if place else ""), "+".join(severities))


def _word(spec: Spec, shared: set[str]) -> str:
    return f"{spec.profile}-{spec.name}" if spec.profile and spec.name in shared else spec.name


FORMAT = 1
ABOUT = "jostle.json"
LOSSLESS_GROWS = 30  # times the size of an H.264 source: about what films of puppets take

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Copy:
    """One video in one cell, as it is to lie on the disk.

    Attributes:
        name: path under the root of the set.
        source: the clean file, or folder of images.
        video_id: what random draws are keyed by.
        segments: its actions, for cells that strike them.
    """

    name: str
    cell: Cell
    source: Path
    video_id: str
    segments: Segments | None
    seed: int
    lossless: bool
    fps: Fraction | None = None

    @cached_property
    def key(self) -> str:
        """All that decides the bytes, but for the versions of libraries; a source is known by its size and time."""
        try:
            _, found = identity_of(self.source)
        except JostleError:
            return ""
        specs = [[spec.entry.corruption, spec.value, dict(spec.entry.options)] for spec in self.cell.parsed]
        where = [] if self.segments is None else np.stack([self.segments.start, self.segments.end]).tolist()
        facts = [specs, self.cell.placement, self.video_id, where, self.seed, found.size, found.mtime_ns]
        facts += [] if self.fps is None else [str(self.fps)]
        return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Corrupt the video; the file appears when it is whole."""
        specs = [Spec.parse(spec) for spec in self.cell.specs]
        if path.is_dir():  # images that are damaged, or of another recipe
            shutil.rmtree(path)
        corrupt_video(
            self.source,
            specs,
            path,
            seed=self.seed,
            video_id=self.video_id,
            placement=self.cell.placement,
            segments=self.segments,
            lossless=self.lossless,
            fps=self.fps,
        )

    def __str__(self) -> str:
        return f"{self.source} as {self.name}"


@dataclass(frozen=True)
class BuildPlan:
    """What is to be written.

    Attributes:
        copies: every video in every cell, cell after cell.
        bytes: about how many they will take, by the size of the sources.
    """

    copies: tuple[Copy, ...]
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        cells = list(dict.fromkeys(copy.cell.name for copy in self.copies))
        videos = len({copy.video_id for copy in self.copies})
        return {"format": FORMAT, "cells": cells, "videos": videos, "files": len(self.copies), "bytes": self.bytes}


@dataclass(frozen=True)
class Built:
    """What became of a set of copies.

    Attributes:
        folder: its root.
        files: how many were made, kept and made again.
        failures: copies that could not be made, by path, and why.
    """

    folder: Path
    files: Files
    failures: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counts = {"made": self.files.made, "kept": self.files.kept, "rebuilt": self.files.rebuilt}
        return {"format": FORMAT, "folder": str(self.folder), **counts, "failures": dict(self.failures)}


def corrupted_cells(recipe: Recipe, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Those of the cells that have something to write; raises BadValue if none has."""
    chosen = tuple(cell for cell in cells if cell.name != CLEAN)
    if not chosen:
        raise BadValue(f"{recipe.name}: there are no corrupted cells among those asked for, so nothing to write")
    return chosen


def plan_build(recipe: Recipe, data: Dataset, cells: Sequence[Cell], *, seed: int, lossless: bool) -> BuildPlan:
    """Which files a set of copies of `corrupted_cells` consists of.

    Raises:
        DataError: if no video is there, or two copies would have one name.
    """
    if not data.videos:
        raise DataError(f"{data}: no video is there, so there is nothing to corrupt")
    folders = cell_folders(recipe)
    truth = next((part for part in data.annotations if isinstance(part, Truth)), None)
    actions = {} if truth is None else truth.actions
    places = {name: _relative(data, name, path, lossless=lossless) for name, path in data.videos.items()}
    refuse_collisions([str(place) for place in places.values()], data.name)
    copies = [
        Copy(
            str(folders[cell.name] / places[name]),
            cell,
            path,
            name,
            actions.get(name),
            seed,
            lossless,
            data.rate_of(name),
        )
        for cell in cells
        for name, path in data.videos.items()
    ]
    sources = sum(_bytes(path) for path in data.videos.values())
    return BuildPlan(tuple(copies), sources * len(cells) * (LOSSLESS_GROWS if lossless else 1))


def _bytes(path: Path) -> int:
    try:
        return identity_of(path)[1].size
    except JostleError:  # whoever corrupts it says what is wrong with it
        return 0


def build(
    recipe: Recipe,
    data: Dataset,
    plan: BuildPlan,
    out: Path,
    *,
    seed: int,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Built:
    """Write what is planned; what is there and whole is kept, so work that was stopped goes on.

    `jostle.json` at the root says what the set is, and has the hash of every file; it is written last.

    Raises:
        SourceChanged: if the folder holds another set.
        ResourceError: if the disk is full; finished copies stay.
        DataError: if none of the videos could be used.
    """
    about = _about(recipe, data, plan, seed)
    _check(out, about)
    failures: dict[str, str] = {}

    def note(copy: FileRecipe, error: JostleError) -> None:
        failures[copy.name] = str(error)

    files = fill(out, plan.copies, jobs=jobs, on_bad=note, progress=progress)
    if len(failures) == len(plan.copies):
        raise DataError(f"none of {len(plan.copies)} copies could be made: {next(iter(failures.values()))}")
    known = recorded(out)
    hashes = {copy.name: known[copy.name] for copy in plan.copies if copy.name not in failures}
    before = _read(out).files if is_built(out) else {}  # of cells that were built earlier
    about |= {"versions": builds(), "files": dict(sorted((before | hashes).items())), "failures": failures}
    write_text(out / ABOUT, [json.dumps(about, indent=1), "\n"])
    return Built(out, files, failures)


@dataclass(frozen=True)
class _Set:
    """What jostle.json says of a set of copies, as far as anything reads it.

    Attributes:
        files: the hash of every copy.
        failures: copies that could not be made, and why.
    """

    format: Literal[1]
    benchmark: str
    fingerprint: str
    dataset: str
    subset: str
    truth: str | None
    seed: int
    lossless: bool
    files: dict[str, str]
    failures: dict[str, str]


@dataclass(frozen=True)
class CheckedCopies:
    """What a check of a set of copies found.

    Attributes:
        whole: how many are as they were written.
        of: how many were written.
        altered: those that are not.
        lacking: those that could not be made.
    """

    folder: Path
    whole: int
    of: int
    altered: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def summary(self) -> str:
        """What is there, in a line."""
        return f"{self.whole} of {self.of} copies are as they were written"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counts = {"whole": self.whole, "of": self.of, "altered": list(self.altered), "lacking": list(self.lacking)}
        return {"format": FORMAT, "folder": str(self.folder), **counts}


def check_built(folder: Path, progress: Progress | None = None) -> CheckedCopies:
    """Compare every copy with its hash.

    Raises:
        DataError: if the folder holds no set of copies.
    """
    about = _read(folder)
    files, altered = about.files, []
    for done, (name, sha256) in enumerate(files.items(), 1):
        if not _is(folder / name, sha256):
            altered.append(f"{shown(name)} is not what was written")
        if progress is not None:
            progress(done, len(files))
    lacking = tuple(f"{shown(name)} could not be made: {why}" for name, why in about.failures.items())
    return CheckedCopies(folder, len(files) - len(altered), len(files), tuple(altered), lacking)


def _is(path: Path, sha256: str) -> bool:
    try:
        if not path.is_file() and not path.is_dir():  # reading a pipe might never end
            return False
        return sha256_of(path) == sha256
    except (OSError, JostleError):
        return False


def is_built(folder: Path) -> bool:
    """Whether a folder holds a set of copies."""
    return os.path.lexists(folder / ABOUT)


def _about(recipe: Recipe, data: Dataset, plan: BuildPlan, seed: int) -> dict[str, Any]:
    annotated = data.annotations[0]
    return {
        "format": FORMAT,
        "name": recipe.title,
        "benchmark": recipe.name,
        "recipe": recipe.base or recipe.name,
        "fingerprint": recipe.fingerprint,
        "content": recipe.content(),
        "dataset": data.name,
        "subset": data.subset,
        "truth": annotated.fingerprint if isinstance(annotated, Truth) else None,
        "seed": seed,
        "lossless": plan.copies[0].lossless,
        "missing": list(data.missing),
    }


def _check(out: Path, about: Mapping[str, Any]) -> None:
    if not out.exists():
        return
    if not is_built(out):
        left = [path for path in out.iterdir() if not path.name.startswith(".")]
        if left and not (out / "manifest.jsonl").exists():
            raise DataError(f"{out}: holds something that is no set of copies; name a new or an empty folder")
        return
    before = _read(out)
    said = [key for key in ("benchmark", "fingerprint", "dataset", "subset", "truth", "seed", "lossless")
            if getattr(before, key) != about[key]]  # fmt: skip
    if said:
        raise SourceChanged(f"{out}: holds another set: {', '.join(said)} differ; name another folder")


def _read(folder: Path) -> _Set:
    return read_record(_Set, folder / ABOUT, "delete it and build again, which keeps whole copies")


def _relative(data: Dataset, name: str, path: Path, *, lossless: bool) -> PurePosixPath:
    """Where the copy of a video lies in its cell: as in the source, with an ending that can be written."""
    try:
        place: PurePath = path.relative_to(data.folder)
    except ValueError:
        place = PurePath(path.name)
    if path.is_dir():
        return PurePosixPath(place.as_posix())
    return PurePosixPath(place.with_suffix(".mkv" if lossless else ".mp4").as_posix())
