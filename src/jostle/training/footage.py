"""Anybody's videos as films to learn from: read in pieces, struck, glanced at, and kept, so that it is done once."""

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
from jostle.mending.descriptor import glances
from jostle.parallel.workers import cores, worked
from jostle.training.descriptor_bank import FORMAT, FilmBank, Struck, read_bank, write_bank
from jostle.training.inspection_config import InspectionConfig

LEAST = 8  # frames of a piece


@dataclass(frozen=True)
class Piece:
    """A part of a video, to be struck; plain data, for it travels to other processes."""

    name: str
    path: Path
    first: int
    stop: int


def load_footage(config: InspectionConfig, progress: Callable[[int, int], None] | None = None) -> FilmBank:
    """The films of a folder of videos, made by several processes unless the cache holds them.

    Raises:
        DataError: if there is no video, or none is long enough.
    """
    data = config.data
    folder = Path(data.videos)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; data.videos is a folder of videos to learn from")
    videos = find_videos(folder)
    if not videos:
        raise DataError(f"{folder}: no videos there to learn from")
    specs = config.strikes.specs or every_picture()
    for spec in specs:
        drawn_spec([spec], config.strikes.severities, rng_for(0))  # a wrong one is told before videos are read
    made = hashlib.sha256(
        json.dumps([FORMAT, specs, repr(config.strikes), data.piece, data.pieces, config.seed]).encode()
    )
    for name, path in sorted(videos.items()):
        made.update(json.dumps([name, *source_state(path)]).encode())
    cache = (cache_folder() if data.cache is None else Path(data.cache)) / f"films-{made.hexdigest()[:24]}.bank"
    if cache.exists():
        return read_bank(cache)
    pieces = [piece for name, path in sorted(videos.items()) for piece in _pieces(name, path, data.piece, data.pieces)]
    if not pieces:
        raise DataError(f"{folder}: no video there has {LEAST} frames")
    films: dict[str, Struck] = {}
    for piece, film in worked(partial(_striker, config, tuple(specs)), pieces, data.jobs or cores()):
        films[piece.name] = film
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
    return [Piece(f"{name}@{first}", path, first, first + size) for first in firsts] if size >= LEAST else []


def _striker(config: InspectionConfig, specs: tuple[str, ...]) -> Callable[[Piece], Struck]:
    import cv2

    cv2.setNumThreads(1)
    strikes = config.strikes

    def struck(piece: Piece) -> Struck:
        with Reader(piece.path) as reader:
            frames = reader.block(piece.first, piece.stop)
            clip = Clip(frames, reader.pts[piece.first : piece.stop], reader.fps)
        return strike_film(
            clip,
            specs,
            name=piece.name,
            kind="video",
            strikes=strikes.each,
            lengths=(strikes.lengths[0], strikes.lengths[1]),
            seed=config.seed,
            severities=strikes.severities,
        )

    return struck


MARGIN = 32  # frames around a stretch that a corruption may look at
Finish = Callable[[Frames], Frames]


def every_picture() -> tuple[str, ...]:
    """All corruptions that change pictures, of jostle's own table and of the papers'; those of time change none."""
    own = [name for name in corruptions if corruptions[name].level != "time"]
    papers = [
        f"{profile}/{name}"
        for profile in profiles
        for name, entry in profiles[profile].entries.items()
        if corruptions[entry.corruption].level != "time"
    ]
    return tuple(sorted([*own, *papers]))


def strike_film(
    clip: Clip,
    specs: Sequence[str],
    *,
    name: str,
    kind: str,
    strikes: int,
    lengths: tuple[int, int],
    seed: int,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    finish: Finish | None = None,
) -> Struck:
    """Glances of a film, and of stretches of it that are struck.

    Args:
        specs: drawn from, one for each stretch; of those without a severity it is drawn, too.
        strikes: stretches.
        lengths: of a stretch in frames, the least and the greatest; short ones are as likely as long ones.
        finish: done to struck frames afterwards, such as another coding.
    """
    made = []
    for number in range(strikes):
        rng = rng_for(seed, "strike", name, number)
        spec = drawn_spec(specs, severities, rng)
        low, high = lengths[0], min(lengths[1], len(clip))
        many = min(round(float(np.exp(rng.uniform(np.log(low), np.log(max(high, low) + 0.49))))), len(clip))
        at = int(rng.integers(len(clip) - many + 1))
        struck = struck_frames(clip, spec, at, at + many, seed=key_for(seed, name, number), video_id=name)
        made.append((str(spec), at, glances(struck if finish is None else finish(struck))))
    return Struck(name, kind, glances(clip.frames), tuple(made))


def drawn_spec(specs: Sequence[str], severities: Sequence[int], rng: np.random.Generator) -> Spec:
    """One of the specs; its severity is drawn from those that it has, where it names none."""
    text = specs[int(rng.integers(len(specs)))]
    if ":" in text:
        return Spec.parse(text)
    most = len(Spec.parse(f"{text}:1").entry.values)
    known = [severity for severity in severities if severity <= most]
    if not known:
        raise BadValue(f"{text} has severities 1 to {most}, and none of {list(severities)}")
    return Spec.parse(f"{text}:{known[int(rng.integers(len(known)))]}")


def struck_frames(clip: Clip, spec: Spec, lo: int, hi: int, *, seed: int, video_id: str) -> Frames:
    """Frames `lo` up to `hi` of a clip with exactly these struck."""
    first, stop = max(lo - MARGIN, 0), min(hi + MARGIN, len(clip))
    part = clip[first:stop]
    mask: Mask = np.zeros(len(part), np.bool_)
    mask[lo - first : hi - first] = True
    return chain(ClipSource(part), [spec], [mask], seed=seed, video_id=video_id).block(lo - first, hi - first)
