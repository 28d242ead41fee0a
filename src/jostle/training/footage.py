"""Preparation of users' videos for inspector training: read, corrupted, described and cached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from jostle.core.cache import cache_folder
from jostle.core.random import key_for, rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.profile import profiles
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, chain
from jostle.datasets.videos import find_videos
from jostle.errors import BadValue, DataError, JostleError
from jostle.io.files.fingerprint import source_state
from jostle.io.video.decode import Reader
from jostle.mending.descriptor import describe_frames
from jostle.parallel.workers import available_cpus, map_unordered
from jostle.training.descriptor_bank import FORMAT, CorruptedFilm, FilmBank, read_bank, write_bank
from jostle.training.inspection_config import InspectionConfig

MIN_FRAMES = 8  # per piece


@dataclass(frozen=True)
class Piece:
    """A part of a video to corrupt; plain data, as it is sent to other processes."""

    name: str
    path: Path
    first: int
    stop: int


def load_footage(config: InspectionConfig, progress: Callable[[int, int], None] | None = None) -> FilmBank:
    """Load the films of a folder of videos, prepared in parallel unless they are cached.

    Raises:
        DataError: if there is no video, or none is long enough.
    """
    data = config.data
    folder = Path(data.videos)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; data.videos is a folder of videos to learn from")
    videos = find_videos(folder)
    if not videos:
        raise DataError(f"{folder}: contains no videos to learn from")
    specs = config.strikes.specs or picture_corruptions()
    for spec in specs:
        draw_spec([spec], config.strikes.severities, rng_for(0))  # reports a wrong one before videos are read
    digest = hashlib.sha256(
        json.dumps([FORMAT, specs, repr(config.strikes), data.piece, data.pieces, config.seed]).encode()
    )
    for name, path in sorted(videos.items()):
        digest.update(json.dumps([name, *source_state(path)]).encode())
    cache = (cache_folder() if data.cache is None else Path(data.cache)) / f"films-{digest.hexdigest()[:24]}.bank"
    if cache.exists():
        return read_bank(cache)
    pieces = [piece for name, path in sorted(videos.items()) for piece in _pieces(name, path, data.piece, data.pieces)]
    if not pieces:
        raise DataError(f"{folder}: contains no video with {MIN_FRAMES} frames")
    films: dict[str, CorruptedFilm] = {}
    for piece, corrupted in map_unordered(
        partial(_start_worker, config, tuple(specs)), pieces, data.jobs or available_cpus()
    ):
        films[piece.name] = corrupted
        if progress is not None:
            progress(len(films), len(pieces))
    bank = FilmBank.of(films[name] for name in sorted(films))
    cache.parent.mkdir(parents=True, exist_ok=True)
    write_bank(bank, cache)
    return bank


def _pieces(name: str, path: Path, piece: int, pieces: int) -> list[Piece]:
    try:
        with Reader(path) as reader:
            total = len(reader)
    except JostleError as error:
        error.add_note(f"while reading {name} to learn from it")
        raise
    many = min(pieces, max(total // piece, 1))
    size = min(piece, total)
    firsts = [(total - size) * i // max(many - 1, 1) for i in range(many)]
    return [Piece(f"{name}@{first}", path, first, first + size) for first in firsts] if size >= MIN_FRAMES else []


def _start_worker(config: InspectionConfig, specs: tuple[str, ...]) -> Callable[[Piece], CorruptedFilm]:
    import cv2

    cv2.setNumThreads(1)
    options = config.strikes

    def corrupt(piece: Piece) -> CorruptedFilm:
        with Reader(piece.path) as reader:
            frames = reader.block(piece.first, piece.stop)
            clip = Clip(frames, reader.pts[piece.first : piece.stop], reader.fps)
        return corrupt_film(
            clip,
            specs,
            name=piece.name,
            kind="video",
            count=options.each,
            lengths=(options.lengths[0], options.lengths[1]),
            seed=config.seed,
            severities=options.severities,
        )

    return corrupt


MARGIN = 32  # frames around a span that a corruption may use
Finish = Callable[[Frames], Frames]


def picture_corruptions() -> tuple[str, ...]:
    """Return all corruptions that change pictures, of jostle and of the papers; not those of time."""
    own = [name for name in corruptions if corruptions[name].level != "time"]
    papers = [
        f"{profile}/{name}"
        for profile in profiles
        for name, entry in profiles[profile].entries.items()
        if corruptions[entry.corruption].level != "time"
    ]
    return tuple(sorted([*own, *papers]))


def corrupt_film(
    clip: Clip,
    specs: Sequence[str],
    *,
    name: str,
    kind: str,
    count: int,
    lengths: tuple[int, int],
    seed: int,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    finish: Finish | None = None,
) -> CorruptedFilm:
    """Describe a film, and corrupted spans of it.

    Args:
        specs: corruptions to draw from, one for each span; missing severities are drawn, too.
        count: number of spans.
        lengths: least and greatest length of a span in frames, drawn log-uniformly.
        finish: applied to corrupted frames afterwards, such as another encoding.
    """
    spans = []
    for number in range(count):
        rng = rng_for(seed, "strike", name, number)
        spec = draw_spec(specs, severities, rng)
        low, high = lengths[0], min(lengths[1], len(clip))
        many = min(round(float(np.exp(rng.uniform(np.log(low), np.log(max(high, low) + 0.49))))), len(clip))
        at = int(rng.integers(len(clip) - many + 1))
        frames = corrupt_span(clip, spec, at, at + many, seed=key_for(seed, name, number), video_id=name)
        spans.append((str(spec), at, describe_frames(frames if finish is None else finish(frames))))
    return CorruptedFilm(name, kind, describe_frames(clip.frames), tuple(spans))


def draw_spec(specs: Sequence[str], severities: Sequence[int], rng: np.random.Generator) -> Spec:
    """Draw one of the specs, and its severity if it names none."""
    text = specs[int(rng.integers(len(specs)))]
    if ":" in text:
        return Spec.parse(text)
    most = len(Spec.parse(f"{text}:1").entry.values)
    valid = [severity for severity in severities if severity <= most]
    if not valid:
        raise BadValue(f"{text} has severities 1 to {most}, none of {list(severities)}; change strikes.severities")
    return Spec.parse(f"{text}:{valid[int(rng.integers(len(valid)))]}")


def corrupt_span(clip: Clip, spec: Spec, lo: int, hi: int, *, seed: int, video_id: str) -> Frames:
    """Return frames `lo` to `hi` (exclusive) of a clip, with exactly these corrupted."""
    first, stop = max(lo - MARGIN, 0), min(hi + MARGIN, len(clip))
    part = clip[first:stop]
    mask: Mask = np.zeros(len(part), np.bool_)
    mask[lo - first : hi - first] = True
    return chain(ClipSource(part), [spec], [mask], seed=seed, video_id=video_id).block(lo - first, hi - first)
