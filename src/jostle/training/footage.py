"""Anybody's videos as films to learn from: read in pieces, struck, glanced at, and kept, so that it is done once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jostle.cache import cache_folder
from jostle.datasets.videos import find_videos
from jostle.errors import DataError, JostleError
from jostle.extraction.store import source_state
from jostle.media.decode import Reader
from jostle.seeds import rng_for
from jostle.training.film_bank import FORMAT, FilmBank, Struck, read_bank, write_bank
from jostle.training.inspection_config import InspectionConfig
from jostle.training.striking import drawn_spec, every_picture, strike_film
from jostle.types.clip import Clip
from jostle.workers import cores, worked

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
