"""Feature extraction of many videos: parallel, resumable, unreadable videos set aside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.formatting import join_names
from jostle.core.results import Result
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.damage_finder import DamageFinder
from jostle.corruptions.engine.placement import placements
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, DataError, JostleError, ResourceError
from jostle.features.caches import KEEP_BYTES
from jostle.features.extraction import Cost, Extraction
from jostle.features.interpolation import MendingResult
from jostle.features.options import ReleasedBug, Rule
from jostle.features.requests import Progress
from jostle.features.store import FeatureOrigin, FeatureStore, VideoEntry, read_extraction, read_store, write_extraction
from jostle.features.video import VideoFeatures
from jostle.features.windows import WindowGrid
from jostle.io.files.video_ids import file_name_for, quote_name, refuse_collisions
from jostle.io.video.decode import Reader
from jostle.io.video.source import source_state
from jostle.models.extractors.protocol import FeatureExtractor
from jostle.parallel.workers import map_unordered

Loader = Callable[[], FeatureExtractor]
FinderLoader = Callable[[], DamageFinder]
Extracted = tuple[VideoEntry, Cost] | JostleError


@dataclass(frozen=True)
class CorruptionOptions:
    """Corruption of the videos before extraction; none by default."""

    specs: tuple[str, ...] = ()  # in order, as written
    placement: str | None = None  # which frames; None for each spec's default
    seed: int = 0
    segments: Mapping[str, Segments] = field(default_factory=dict)  # actions by video, for placements that need them
    truth: str | None = None  # fingerprint of the annotations


@dataclass(frozen=True)
class ExtractionSummary(Result):
    """Summary of the extraction of a folder of videos."""

    json_keys = ("out", "made", "kept", "set_aside", "cost", "warnings")

    folder: Path
    made: tuple[str, ...]  # ids of videos that were extracted
    kept: tuple[str, ...]  # ids of videos whose features existed already
    set_aside: Mapping[str, str]  # ids of videos that could not be used, and why
    warnings: tuple[str, ...]
    cost: Cost  # amount of computation for the extracted videos

    @property
    def out(self) -> Path:
        """The folder of the features."""
        return self.folder

    def written(self) -> tuple[Path, ...]:
        """Return the folder of the features."""
        return (self.folder,)

    def notes(self) -> tuple[str, ...]:
        """Return warnings, and how many videos and frames were processed."""
        cost = self.cost
        counts = (
            f"{len(self.made)} extracted, {len(self.kept)} there already, {len(self.set_aside)} set aside; "
            f"{cost.decoded} frames decoded, {cost.seen} seen, {cost.joined} windows"
        )
        return (*self.warnings, counts + (f", {cost.flows} flows" if cost.flows else ""))


@dataclass(frozen=True)
class _ExtractionJob:
    """Extraction of one video by one worker."""

    video_id: str
    path: Path
    out: Path
    corrupting: CorruptionOptions
    rule: Rule
    reproduce_bugs: tuple[ReleasedBug, ...]
    keep_frames: bool
    clean: Path | None
    threads: int | None
    fps: Fraction | None = None

    def __str__(self) -> str:
        return str(self.path)


def extract_videos(
    videos: Mapping[str, Path],
    load: Loader,
    out: Path,
    *,
    name: str,
    weights: str | None = None,
    corrupting: CorruptionOptions = CorruptionOptions(),  # noqa: B008
    rule: Rule = "all",
    reproduce_bugs: Sequence[ReleasedBug] = (),
    keep_frames: bool = False,
    clean: Path | None = None,
    mend: FinderLoader | None = None,
    rates: Mapping[str, Fraction] | None = None,
    overwrite: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> ExtractionSummary:
    """Write the features of videos into a folder, skipping videos whose features exist and are intact.

    Args:
        videos: files by id, or folders of images.
        load: extractor factory, called once per process; must be picklable for several jobs.
        rule, reproduce_bugs: see `jostle.features.windows.WindowGrid`.
        keep_frames: also write the features of single frames.
        clean: folder of clean features of the same videos, extracted with `keep_frames`: only what a corruption
            changed is computed.
        mend: factory of the mending strategy, called like `load`.
        rates: frame rates of image folders that do not state them.
        overwrite: replace features of another origin.
        progress: called with finished videos, or with the frames of a single one.

    Raises:
        JostleError: for a single video, what is wrong with it.
        DataError: if none of several videos could be used.
        ResourceError: if the disk is full; what is finished stays.
        SourceChanged: if the folder holds features of another origin.
    """
    refuse_collisions([file_name_for(video_id, ".npy") for video_id in videos], str(out))
    extractor, finder = load(), None if mend is None else mend()
    if keep_frames and extractor.frame_dim is None:
        raise BadValue(f"{name} processes whole windows and has no frame features; leave out keep_frames")
    faults = tuple(sorted(set(reproduce_bugs)))
    WindowGrid(extractor.spec.frames, extractor.spec.stride, rule, faults)  # validates them
    if faults and not corrupting.specs:
        raise BadValue(f"{', '.join(faults)}: these bugs affect corrupted video only; name a corruption as well")
    origin = _origin(name, weights, extractor, corrupting, rule, faults, finder)
    if clean is not None:
        _check_clean(clean, origin)
    store = FeatureStore(out, origin, overwrite=overwrite)
    jobs = max(min(jobs, len(videos)), 1)
    threads = 1 if jobs > 1 else None
    shared = _ExtractionJob("", Path(), out, corrupting, rule, faults, keep_frames, clean, threads)
    pending = [job for job in _jobs(videos, shared, rates or {}) if not _is_done(store, job)]
    left = {job.video_id for job in pending}
    # This process has loaded the extractor already.
    here = partial(_attempt, extractor=extractor, finder=finder, progress=progress if len(videos) == 1 else None)
    start = (
        partial(_start_worker, load, mend, _registered_functions(corrupting))
        if min(jobs, len(pending)) > 1
        else lambda: here
    )
    extracted, cost = _extract_all(store, start, pending, jobs, alone=len(videos) == 1, progress=progress)
    if videos and len(store.set_aside) == len(videos):
        first, why = next(iter(store.set_aside.items()))
        raise DataError(
            f"none of {len(videos)} videos could be used ({join_names(videos)}); {quote_name(first)}: {why}"
        )
    warnings = [f"{quote_name(video)}: {warning}" for video, entry in extracted.items() for warning in entry.warnings]
    return ExtractionSummary(
        out,
        made=tuple(extracted),
        kept=tuple(video_id for video_id in videos if video_id not in left),
        set_aside=dict(store.set_aside),
        warnings=(*store.warnings, *warnings),
        cost=cost,
    )


def _jobs(
    videos: Mapping[str, Path], shared: _ExtractionJob, rates: Mapping[str, Fraction]
) -> Iterator[_ExtractionJob]:
    """Yield a job for each video that is like the shared one."""
    for video_id, path in videos.items():
        options = _options_for(shared.corrupting, video_id)
        yield replace(shared, video_id=video_id, path=path, corrupting=options, fps=rates.get(video_id))


def _origin(
    name: str,
    weights: str | None,
    extractor: FeatureExtractor,
    corrupting: CorruptionOptions,
    rule: Rule,
    faults: tuple[ReleasedBug, ...],
    finder: DamageFinder | None,
) -> FeatureOrigin:
    return FeatureOrigin(
        name,
        weights,
        extractor.spec.frames,
        extractor.spec.stride,
        rule,
        extractor.dim,
        tuple(str(Spec.parse(spec)) for spec in corrupting.specs),
        corrupting.placement,
        corrupting.seed if corrupting.specs else 0,
        corrupting.truth,
        faults,
        None if finder is None else finder.name,
        None if finder is None else finder.fingerprint,
    )


def _extract_all(
    store: FeatureStore,
    start: Callable[[], Callable[[_ExtractionJob], Extracted]],
    pending: Sequence[_ExtractionJob],
    jobs: int,
    *,
    alone: bool,
    progress: Progress | None,
) -> tuple[dict[str, VideoEntry], Cost]:
    """Extract videos and enter them in the store, which is saved whatever happens.

    Args:
        alone: whether the only video was given, whose error is raised, and whose frames are the progress.
    """
    extracted, cost = {}, Cost()
    try:
        with closing(map_unordered(start, pending, jobs, lost=lambda job, error: error)) as results:
            for done, (job, result) in enumerate(results, 1):
                if isinstance(result, JostleError):
                    if alone:
                        raise result
                    store.leave_out(job.video_id, str(result))
                else:
                    extracted[job.video_id], video_cost = result
                    store.add(job.video_id, extracted[job.video_id])
                    cost += video_cost
                if progress is not None and not alone:
                    progress(done, len(pending))
    finally:
        if store.videos or store.set_aside:
            store.save()
    return extracted, cost


def extract_video(
    path: Path,
    extractor: FeatureExtractor,
    *,
    video_id: str,
    corrupting: CorruptionOptions = CorruptionOptions(),  # noqa: B008
    rule: Rule = "all",
    reproduce_bugs: Sequence[ReleasedBug] = (),
    clean: Extraction | None = None,
    finder: DamageFinder | None = None,
    threads: int | None = None,
    fps: Fraction | None = None,
    progress: Progress | None = None,
) -> tuple[Extraction, Reader, float]:
    """Extract one video; return its features, its reader, and the frame rate on the axis of the windows.

    Raises:
        MediaError: if the file cannot be read, or changed meanwhile.
        DataError: if the extractor gives numbers that are not finite.
    """
    specs = [Spec.parse(spec) for spec in corrupting.specs]
    with Reader(path, threads=threads, fps=fps, progress=progress) as reader, single_threaded():
        video = VideoFeatures(
            reader,
            extractor,
            rule=rule,
            reproduce_bugs=reproduce_bugs,
            seed=corrupting.seed,
            video_id=video_id,
            segments=corrupting.segments.get(video_id),
            path=None if reader.damage else reader.coded_path,
            bit_rate=reader.facts.bit_rate,
            clean=clean,
            keep_bytes=KEEP_BYTES if specs or finder is not None else 0,
            finder=finder,
            progress=progress,
        )
        if not specs:
            done = video.clean()
        elif clean is None:
            done = video.whole(specs, corrupting.placement)
        else:
            done = video.under(specs, corrupting.placement)
    return done, reader, video.fps


def mending_warnings(mended: MendingResult | None) -> tuple[str, ...]:
    """Return warnings about the damaged frames of a video."""
    if mended is None or not mended.damaged.any():
        return ()
    summary = f"{np.count_nonzero(mended.damaged)} of {len(mended.damaged)} frames are damaged"
    return (f"{summary}: too many to interpolate, so nothing was mended",) if mended.left else (summary,)


def single_threaded() -> AbstractContextManager[None]:
    """Limit torch to one thread, so that features do not depend on the number of cores or jobs."""
    if "torch" not in sys.modules:  # the extractor does not use torch
        return nullcontext()
    from jostle.models.devices import one_thread

    return one_thread()


def _is_done(store: FeatureStore, job: _ExtractionJob) -> bool:
    try:
        source = source_state(job.path, job.fps)
    except JostleError:
        return False  # reported when it is extracted
    return store.is_done(job.video_id, source, with_frames=job.keep_frames)


def _extract(
    job: _ExtractionJob, extractor: FeatureExtractor, finder: DamageFinder | None, progress: Progress | None = None
) -> tuple[VideoEntry, Cost]:
    source = source_state(job.path, job.fps)
    done, reader, fps = extract_video(
        job.path,
        extractor,
        video_id=job.video_id,
        corrupting=job.corrupting,
        rule=job.rule,
        reproduce_bugs=job.reproduce_bugs,
        clean=_read_clean(job, source, with_frames=extractor.frame_dim is not None),
        finder=finder,
        threads=job.threads,
        fps=job.fps,
        progress=progress,
    )
    file, features_sha, frames_sha = write_extraction(job.out, job.video_id, done, with_frames=job.keep_frames)
    warnings = (*reader.warnings, *mending_warnings(done.mended))
    facts = (len(done.features), fps, len(reader), reader.end_s, features_sha, source, frames_sha, warnings)
    return VideoEntry(file, *facts), done.cost


def _read_clean(job: _ExtractionJob, source: tuple[int, int], *, with_frames: bool) -> Extraction | None:
    """Read the clean features of a video, if a folder of them was given."""
    stored = None if job.clean is None else read_store(job.clean)
    if job.clean is None or stored is None:
        return None
    entry = stored[1].get(job.video_id)
    if entry is None or entry.source != source:
        why = "are missing" if entry is None else "belong to another version of the file"
        raise DataError(f"{job.clean}: clean features of {quote_name(job.video_id)} {why}; extract them first")
    return read_extraction(job.clean, entry, with_frames=with_frames)


def _check_clean(clean: Path, requested: FeatureOrigin) -> None:
    stored = read_store(clean)
    if stored is None:
        raise DataError(f"{clean}: no features.json; pass the folder of clean features that `jostle extract` wrote")
    plain = FeatureOrigin(
        requested.extractor, requested.weights, requested.window, requested.stride, requested.rule, requested.dim
    )
    for key in ("extractor", "weights", "window", "stride", "rule", "specs", "mend"):
        value, expected = getattr(stored[0], key), getattr(plain, key)
        if value != expected:
            raise BadValue(f"{clean}: clean features do not match: {key} is {value!r}, not {expected!r}")


def _options_for(corrupting: CorruptionOptions, video_id: str) -> CorruptionOptions:
    """Return the options with the actions of one video only, to be sent to another process."""
    segments = {video_id: corrupting.segments[video_id]} if video_id in corrupting.segments else {}
    return CorruptionOptions(corrupting.specs, corrupting.placement, corrupting.seed, segments, corrupting.truth)


def _registered_functions(corrupting: CorruptionOptions) -> tuple[Callable[..., Any], ...]:
    """Return the registered functions of the options, whose unpickling registers them in a worker."""
    functions: list[Callable[..., Any]] = [Spec.parse(spec).corruption.function for spec in corrupting.specs]
    if corrupting.placement is not None:
        functions.append(placements[corrupting.placement.partition(":")[0]].maker)
    return tuple(functions)


def _start_worker(
    load: Loader, mend: FinderLoader | None, functions: tuple[Callable[..., Any], ...]
) -> Callable[[_ExtractionJob], Extracted]:
    return partial(_attempt, extractor=load(), finder=None if mend is None else mend())


def _attempt(
    job: _ExtractionJob, extractor: FeatureExtractor, finder: DamageFinder | None, progress: Progress | None = None
) -> Extracted:
    """Return the features of a video, or its error; a full disk is raised."""
    try:
        return _extract(job, extractor, finder, progress)
    except ResourceError:
        raise
    except JostleError as error:
        return error
