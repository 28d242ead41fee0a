"""Corrupted copies of a benchmark on disk: `<corruption>/<severity>/<path of the source>`, as in -C data sets."""

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

from jostle.core.environment import library_versions
from jostle.core.results import Result, plain
from jostle.core.tables import Column, Table, findings_table
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.video import corrupt_video
from jostle.datasets.dataset import Dataset, FileCounts
from jostle.datasets.generated_files import FileRecipe as FileRecipe
from jostle.datasets.generated_files import fill, read_hashes
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe, slugify
from jostle.io.files.atomic import write_text
from jostle.io.files.ledger import MANIFEST, check_same
from jostle.io.files.records import read_record
from jostle.io.files.video_ids import quote_name, refuse_collisions
from jostle.io.video.source import fingerprint_of, identity_of


def cell_folders(recipe: Recipe) -> dict[str, PurePosixPath]:
    """Return the folder of every cell by name, relative to the root of the set.

    The first part is the corruption, without its profile unless two profiles of the recipe share the name; the second
    is the severity, a whole number that loaders can read. A placement of the recipe is appended to the corruption. The
    clean videos are at severity 0.

    >>> from jostle.evaluation.recipes.recipe import benchmarks
    >>> folders = cell_folders(benchmarks["thumos14-c"])
    >>> str(folders["thumos14-c/packet_loss:3"]), str(folders["thumos14-c/black_frame:1@at:10%x5"])
    ('packet_loss/3', 'black_frame@at-10pct-x5/1')
    """
    profiles: dict[str, set[str | None]] = defaultdict(set)
    for cell in recipe.cells:
        for spec in cell.parsed:
            profiles[spec.name].add(spec.profile)
    return {
        cell.name: _cell_folder(cell, {name for name, names in profiles.items() if len(names) > 1})
        for cell in recipe.cells
    }


def _cell_folder(cell: Cell, shared: set[str]) -> PurePosixPath:
    if cell.name == CLEAN:
        return PurePosixPath(CLEAN, "0")
    placement = cell.name.partition("@")[2]
    names = [_folder_word(spec, shared) for spec in cell.parsed]
    severities = [str(spec.severity) for spec in cell.parsed]
    if len(set(severities)) == 1:
        severities = severities[:1]
    return PurePosixPath("+".join(names) + (f"@{slugify(placement)}" if placement else ""), "+".join(severities))


def _folder_word(spec: Spec, shared: set[str]) -> str:
    return f"{spec.profile}-{spec.name}" if spec.profile and spec.name in shared else spec.name


FORMAT = 1
ABOUT = "jostle.json"
LOSSLESS_GROWS = 30  # times the size of an H.264 source, about right for puppet videos

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Copy:
    """One video in one cell, to be written to disk."""

    name: str  # path under the root of the set
    cell: Cell
    source: Path  # the clean file, or folder of images
    video_id: str  # key of random draws
    segments: Segments | None  # its actions, for placements
    seed: int
    lossless: bool
    fps: Fraction | None = None

    @cached_property
    def key(self) -> str:
        """Hash of all that decides the bytes, except library versions; sources count by size and time."""
        try:
            _, identity = identity_of(self.source)
        except JostleError:
            return ""
        specs = [[spec.entry.corruption, spec.value, dict(spec.entry.options)] for spec in self.cell.parsed]
        where = [] if self.segments is None else np.stack([self.segments.start, self.segments.end]).tolist()
        facts = [specs, self.cell.placement, self.video_id, where, self.seed, identity.size, identity.mtime_ns]
        facts += [] if self.fps is None else [str(self.fps)]
        return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Write the corrupted video; the file appears when it is complete."""
        specs = [Spec.parse(spec) for spec in self.cell.specs]
        if path.is_dir():  # damaged images, or those of another recipe
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
class BuildPlan(Result):
    """Copies that a build will write."""

    json_keys = ("cells", "videos", "files", "bytes")

    copies: tuple[Copy, ...]  # every video in every cell, cell by cell
    bytes: int  # estimated size, from the size of the sources

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells."""
        return tuple(dict.fromkeys(copy.cell.name for copy in self.copies))

    @property
    def videos(self) -> int:
        """Number of different videos."""
        return len({copy.video_id for copy in self.copies})

    @property
    def files(self) -> int:
        """Number of copies."""
        return len(self.copies)

    def tables(self) -> tuple[Table, ...]:
        """Return the amounts of work."""
        amounts = (*(Column(name, "count") for name in ("files", "cells", "videos")), Column("about GB", "decimal", 2))
        return (Table("", amounts, ((self.files, len(self.cells), self.videos, self.bytes / 1e9),)),)


@dataclass(frozen=True)
class BuildResult(Result):
    """Result of writing a set of copies."""

    folder: Path  # root of the set
    files: FileCounts  # number of files written, kept and rewritten
    failures: Mapping[str, str]  # copies that could not be written, by path, with the error
    layouts: tuple[str, ...] = ()  # files for other programs, relative to the root

    def written(self) -> tuple[Path, ...]:
        """Return the root of the set."""
        return (self.folder,)

    def notes(self) -> tuple[str, ...]:
        """Return how many files were written, and those for other programs."""
        others = f"for other programs: {', '.join(self.layouts[:5])}" if self.layouts else ""
        return tuple(note for note in (str(self.files), others) if note)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, failures and layouts as plain values for JSON."""
        inner = {"failures": self.failures, "layouts": self.layouts}
        return {"format": FORMAT, "folder": str(self.folder), **plain(self.files), **plain(inner)}


def require_corrupted_cells(recipe: Recipe, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the corrupted ones of some cells; raise BadValue if there are none."""
    chosen = tuple(cell for cell in cells if cell.name != CLEAN)
    if not chosen:
        raise BadValue(f"{recipe.name}: none of the requested cells is corrupted, so there is nothing to write")
    return chosen


def plan_build(recipe: Recipe, data: Dataset, cells: Sequence[Cell], *, seed: int, lossless: bool) -> BuildPlan:
    """Plan the files of a set of copies."""
    if not data.videos:
        raise DataError(f"{data}: there is no video to corrupt")
    folders = cell_folders(recipe)
    truth = next((part for part in data.annotations if isinstance(part, Truth)), None)
    actions = {} if truth is None else truth.actions
    paths = {name: _copy_path(data, name, path, lossless=lossless) for name, path in data.videos.items()}
    refuse_collisions([str(path) for path in paths.values()], data.name)
    copies = [
        Copy(
            str(folders[cell.name] / paths[name]),
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
    sources = sum(_source_bytes(path) for path in data.videos.values())
    return BuildPlan(tuple(copies), sources * len(cells) * (LOSSLESS_GROWS if lossless else 1))


def _source_bytes(path: Path) -> int:
    try:
        return identity_of(path)[1].size
    except JostleError:  # the corruption reports what is wrong with it
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
) -> BuildResult:
    """Write the planned copies; complete ones are kept, so an interrupted build resumes.

    `jostle.json` at the root describes the set and has the hash of every file; it is written last.

    Raises:
        SourceChanged: if the folder contains another set.
        ResourceError: if the disk is full; finished copies are kept.
        DataError: if none of the videos could be used.
    """
    about = _describe_set(recipe, data, plan, seed)
    _check_same_set(out, about)
    failures: dict[str, str] = {}

    def note(copy: FileRecipe, error: JostleError) -> None:
        failures[copy.name] = str(error)

    files = fill(out, plan.copies, jobs=jobs, on_bad=note, progress=progress)
    if len(failures) == len(plan.copies):
        raise DataError(f"none of {len(plan.copies)} copies could be written: {next(iter(failures.values()))}")
    known = read_hashes(out)
    hashes = {copy.name: known[copy.name] for copy in plan.copies if copy.name not in failures}
    before = _read_set(out).files if is_built(out) else {}  # of cells built earlier
    about |= {"versions": library_versions(), "files": dict(sorted((before | hashes).items())), "failures": failures}
    write_text(out / ABOUT, [json.dumps(about, indent=1), "\n"])
    return BuildResult(out, files, failures)


@dataclass(frozen=True)
class _Set:
    """Fields of jostle.json that are read."""

    format: Literal[1]
    benchmark: str
    fingerprint: str
    dataset: str
    subset: str
    truth: str | None
    seed: int
    lossless: bool
    files: dict[str, str]  # hash of every copy
    failures: dict[str, str]  # copies that could not be written, with the error


@dataclass(frozen=True)
class BuildCheck(Result):
    """Result of checking a set of copies."""

    folder: Path
    whole: int  # number of unchanged copies
    of: int  # number of copies written
    altered: tuple[str, ...]  # copies that changed
    lacking: tuple[str, ...]  # copies that could not be written

    @property
    def summary(self) -> str:
        """One-line summary of the copies."""
        return f"{self.whole} of {self.of} copies are unchanged"

    def tables(self) -> tuple[Table, ...]:
        """Return what is altered and what is lacking."""
        return (findings_table(self.summary, self.altered, self.lacking),)


def check_built(folder: Path, progress: Progress | None = None) -> BuildCheck:
    """Compare every copy with its recorded hash.

    Raises:
        DataError: if the folder contains no set of copies.
    """
    about = _read_set(folder)
    files, altered = about.files, []
    for done, (name, sha256) in enumerate(files.items(), 1):
        if not _matches_hash(folder / name, sha256):
            altered.append(f"{quote_name(name)} is not what was written")
        if progress is not None:
            progress(done, len(files))
    lacking = tuple(f"{quote_name(name)} could not be written: {why}" for name, why in about.failures.items())
    return BuildCheck(folder, len(files) - len(altered), len(files), tuple(altered), lacking)


def _matches_hash(path: Path, sha256: str) -> bool:
    try:
        return fingerprint_of(path) == f"sha256:{sha256}"
    except JostleError:
        return False


def is_built(folder: Path) -> bool:
    """Whether a folder contains a set of copies."""
    return os.path.lexists(folder / ABOUT)


def _describe_set(recipe: Recipe, data: Dataset, plan: BuildPlan, seed: int) -> dict[str, Any]:
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


def _check_same_set(out: Path, about: Mapping[str, Any]) -> None:
    if not out.exists():
        return
    if not is_built(out):
        left = [path for path in out.iterdir() if not path.name.startswith(".")]
        if left and not (out / MANIFEST).exists():
            raise DataError(f"{out}: contains files that are not a set of copies; name a new or an empty folder")
        return
    keys = ("benchmark", "fingerprint", "dataset", "subset", "truth", "seed", "lossless")
    check_same(
        out, "another set", vars(_read_set(out)), {key: about[key] for key in keys}, "use the options of that set"
    )


def _read_set(folder: Path) -> _Set:
    return read_record(_Set, folder / ABOUT, "delete it and build again, which keeps complete copies")


def _copy_path(data: Dataset, name: str, path: Path, *, lossless: bool) -> PurePosixPath:
    """Return the path of a copy in its cell: that of the source, with a suffix that can be written."""
    try:
        relative: PurePath = path.relative_to(data.folder)
    except ValueError:
        relative = PurePath(path.name)
    if path.is_dir():
        return PurePosixPath(relative.as_posix())
    return PurePosixPath(relative.with_suffix(".mkv" if lossless else ".mp4").as_posix())
