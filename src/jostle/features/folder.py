"""Features of many videos: some at once, taken up where a stopped run left off, bad videos set aside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.types.segments import Segments
from jostle.corruptions.engine.placement import placements
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, DataError, JostleError, ResourceError
from jostle.features.engine import Progress, VideoFeatures
from jostle.features.frames import KEEP_BYTES
from jostle.features.interpolation import Finder, Mended
from jostle.features.result import Cost, Extraction
from jostle.features.store import (
    Entry,
    FeatureStore,
    Origin,
    read_extraction,
    read_store,
    write_extraction,
)
from jostle.features.windows import ReleasedFault, Rule, WindowGrid
from jostle.io.files.fingerprint import source_state
from jostle.io.files.video_ids import file_name_for, listing, refuse_collisions, shown
from jostle.io.video.decode import Reader
from jostle.models.extractors.protocol import FeatureExtractor
from jostle.parallel.workers import worked

Loader = Callable[[], FeatureExtractor]
FinderLoader = Callable[[], Finder]
Result = tuple[Entry, Cost] | JostleError


@dataclass(frozen=True)
class Corrupting:
    """What befalls the videos before they are looked at: nothing by default.

    Attributes:
        specs: in order, as written.
        placement: which frames; None for what each spec says.
        segments: actions by video, for placements that need them.
        truth: fingerprint of where they come from.
    """

    specs: tuple[str, ...] = ()
    placement: str | None = None
    seed: int = 0
    segments: Mapping[str, Segments] = field(default_factory=dict)
    truth: str | None = None


@dataclass(frozen=True)
class Extracted:
    """What became of a folder of videos.

    Attributes:
        made: ids of videos that were extracted.
        kept: ids of those that were there already.
        set_aside: ids of those that could not be used, and why.
        warnings: what a user should know.
        cost: what was computed for those that were made.
    """

    folder: Path
    made: tuple[str, ...]
    kept: tuple[str, ...]
    set_aside: Mapping[str, str]
    warnings: tuple[str, ...]
    cost: Cost


@dataclass(frozen=True)
class _Order:
    """One video for one worker."""

    video_id: str
    path: Path
    out: Path
    corrupting: Corrupting
    rule: Rule
    released_faults: tuple[ReleasedFault, ...]
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
    corrupting: Corrupting = Corrupting(),  # noqa: B008
    rule: Rule = "all",
    released_faults: Sequence[ReleasedFault] = (),
    keep_frames: bool = False,
    clean: Path | None = None,
    mend: FinderLoader | None = None,
    rates: Mapping[str, Fraction] | None = None,
    overwrite: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Extracted:
    """Write the features of videos into a folder; those that are there and whole are left as they are.

    Args:
        videos: files by id, or folders of images.
        load: gives the extractor; every worker process calls it once, so for several jobs it has to be picklable.
        name: of the extractor.
        weights: fingerprint of its weights.
        rule, released_faults: see `jostle.features.windows.WindowGrid`.
        keep_frames: also write what was seen of each frame.
        clean: folder of clean features of the same videos, made with `keep_frames`: only what a corruption changed
            is computed.
        mend: gives what says which frames were struck, as `load` does: what they touch is then replaced.
        rates: of folders of images that do not say it themselves.
        overwrite: replace features that were made otherwise.
        jobs: videos at once, each in a process of its own.
        progress: told of videos, or of the frames of a single one.

    Raises:
        JostleError: for a single video, what is wrong with it.
        DataError: if none of several videos could be used.
        ResourceError: if the disk is full; what is finished stays.
        SourceChanged: if the folder holds features that were made otherwise.
    """
    refuse_collisions([file_name_for(video_id, ".npy") for video_id in videos], str(out))
    extractor, finder = load(), None if mend is None else mend()
    if keep_frames and extractor.frame_dim is None:
        raise BadValue(f"{name} sees windows whole, so there is nothing to keep of single frames")
    faults = tuple(sorted(set(released_faults)))
    WindowGrid(extractor.spec.frames, extractor.spec.stride, rule, faults)  # says what is wrong with them
    if faults and not corrupting.specs:
        raise BadValue(f"{', '.join(faults)}: clean rows are right in the released programs; name a corruption as well")
    origin = Origin(
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
    if clean is not None:
        _check_clean(clean, origin)
    store = FeatureStore(out, origin, overwrite=overwrite)
    orders, kept = [], []
    jobs = max(min(jobs, len(videos)), 1)
    for video_id, path in videos.items():
        own, threads = _own(corrupting, video_id), 1 if jobs > 1 else None
        order = _Order(video_id, path, out, own, rule, faults, keep_frames, clean, threads, (rates or {}).get(video_id))
        if _is_done(store, order):
            kept.append(video_id)
        else:
            orders.append(order)
    made, cost, warnings = [], Cost(), list(store.warnings)
    told = progress if len(videos) == 1 else None
    try:
        # One that works here has loaded its extractor.
        here = partial(_attempt, extractor=extractor, finder=finder, progress=told)
        start = partial(_working, load, mend, _functions(corrupting)) if min(jobs, len(orders)) > 1 else lambda: here
        with closing(worked(start, orders, jobs)) as results:
            for done, (order, result) in enumerate(results, 1):
                if isinstance(result, JostleError):
                    if len(videos) == 1:
                        raise result
                    store.leave_out(order.video_id, str(result))
                else:
                    entry, one = result
                    store.add(order.video_id, entry)
                    made.append(order.video_id)
                    cost += one
                    warnings += [f"{shown(order.video_id)}: {warning}" for warning in entry.warnings]
                if progress is not None and told is None:
                    progress(done, len(orders))
    finally:
        if store.videos or store.set_aside:
            store.save()
    if videos and len(store.set_aside) == len(videos):
        first, why = next(iter(store.set_aside.items()))
        raise DataError(f"none of {len(videos)} videos could be used ({listing(videos)}); {shown(first)}: {why}")
    return Extracted(out, tuple(made), tuple(kept), dict(store.set_aside), tuple(warnings), cost)


def features_of(
    path: Path,
    extractor: FeatureExtractor,
    *,
    video_id: str,
    corrupting: Corrupting = Corrupting(),  # noqa: B008
    rule: Rule = "all",
    released_faults: Sequence[ReleasedFault] = (),
    clean: Extraction | None = None,
    finder: Finder | None = None,
    threads: int | None = None,
    fps: Fraction | None = None,
    progress: Progress | None = None,
) -> tuple[Extraction, Reader, float]:
    """The features of one video, how it was read, and the rate on the axis of the windows.

    Args:
        finder: says which frames were struck; what these touch is replaced.

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
            released_faults=released_faults,
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
    if not np.isfinite(done.features).all():
        raise DataError(f"{path}: the extractor gave numbers that are not finite; check its weights", fault="F50")
    return done, reader, video.fps


def said_of(mended: Mended | None) -> tuple[str, ...]:
    """What a user should know about the struck frames of a video."""
    if mended is None or not mended.struck.any():
        return ()
    found = f"{np.count_nonzero(mended.struck)} of {len(mended.struck)} frames were found struck"
    return (f"{found}: nothing sound is left to lean on, so all stays as it is",) if mended.left else (found,)


def single_threaded() -> AbstractContextManager[None]:
    """Features must not depend on how many cores there are, nor on how many videos are in hand."""
    if "torch" not in sys.modules:  # then the extractor is of another kind
        return nullcontext()
    from jostle.models.precision import one_thread

    return one_thread()


def _is_done(store: FeatureStore, order: _Order) -> bool:
    try:
        source = source_state(order.path, order.fps)
    except JostleError:
        return False  # whoever extracts it will say what is wrong with it
    return store.is_done(order.video_id, source, with_frames=order.keep_frames)


def _extract(
    order: _Order, extractor: FeatureExtractor, finder: Finder | None, progress: Progress | None = None
) -> tuple[Entry, Cost]:
    source = source_state(order.path, order.fps)
    done, reader, fps = features_of(
        order.path,
        extractor,
        video_id=order.video_id,
        corrupting=order.corrupting,
        rule=order.rule,
        released_faults=order.released_faults,
        clean=_clean(order, source, with_frames=extractor.frame_dim is not None),
        finder=finder,
        threads=order.threads,
        fps=order.fps,
        progress=progress,
    )
    file, features_sha, frames_sha = write_extraction(order.out, order.video_id, done, with_frames=order.keep_frames)
    warnings = (*reader.warnings, *said_of(done.mended))
    facts = (len(done.features), fps, len(reader), reader.end_s, features_sha, source, frames_sha, warnings)
    return Entry(file, *facts), done.cost


def _clean(order: _Order, source: tuple[int, int], *, with_frames: bool) -> Extraction | None:
    """The clean features of the video in hand, where there are any of this state of it."""
    found = None if order.clean is None else read_store(order.clean)
    if order.clean is None or found is None:
        return None
    entry = found[1].get(order.video_id)
    if entry is None or entry.source != source:
        why = "are not there" if entry is None else "are of another state of the file"
        raise DataError(f"{order.clean}: clean features of {shown(order.video_id)} {why}; extract them first")
    return read_extraction(order.clean, entry, with_frames=with_frames)


def _check_clean(clean: Path, asked: Origin) -> None:
    found = read_store(clean)
    if found is None:
        raise DataError(f"{clean}: no features.json there; give the folder that `jostle extract` wrote clean video to")
    plain = Origin(asked.extractor, asked.weights, asked.window, asked.stride, asked.rule, asked.dim)
    for key in ("extractor", "weights", "window", "stride", "rule", "specs", "mend"):
        here, wanted = getattr(found[0], key), getattr(plain, key)
        if here != wanted:
            raise BadValue(f"{clean}: not the clean features of this: {key} is {here!r}, not {wanted!r}")


def _own(corrupting: Corrupting, video_id: str) -> Corrupting:
    """The same with the actions of one video only: it goes to another process."""
    own = {video_id: corrupting.segments[video_id]} if video_id in corrupting.segments else {}
    return Corrupting(corrupting.specs, corrupting.placement, corrupting.seed, own, corrupting.truth)


def _functions(corrupting: Corrupting) -> tuple[Callable[..., Any], ...]:
    """The registered functions that names stand for: whoever unpickles them knows the names, whosever they are."""
    found: list[Callable[..., Any]] = [Spec.parse(spec).corruption.function for spec in corrupting.specs]
    if corrupting.placement is not None:
        found.append(placements[corrupting.placement.partition(":")[0]].maker)
    return tuple(found)


def _working(
    load: Loader, mend: FinderLoader | None, functions: tuple[Callable[..., Any], ...]
) -> Callable[[_Order], Result]:
    return partial(_attempt, extractor=load(), finder=None if mend is None else mend())


def _attempt(
    order: _Order, extractor: FeatureExtractor, finder: Finder | None, progress: Progress | None = None
) -> Result:
    """The features of a video, or what is wrong with it; a full disk is no fault of the video."""
    try:
        return _extract(order, extractor, finder, progress)
    except ResourceError:
        raise
    except JostleError as error:
        return error
