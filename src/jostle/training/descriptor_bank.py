"""Training data of inspectors: videos read, corrupted and described, and the descriptors in one compact array."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle.core.environment import cache_folder
from jostle.core.random import key_for, rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.corruptions.engine.stages import chain
from jostle.datasets.videos import find_videos
from jostle.errors import BadValue, DataError, JostleError
from jostle.io.files.atomic import write_bytes
from jostle.io.video.decode import Reader
from jostle.io.video.source import source_state
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.parallel.workers import available_cpus, map_unordered
from jostle.training.inspection_config import InspectionConfig

FORMAT = 1
LZMA_PRESET = 1  # fast: descriptors are noisy and hardly compress better
MIN_CHANGE = 1.5  # mean change of a descriptor's bytes below which damage is invisible


@dataclass(frozen=True)
class CorruptedSpan:
    """A corrupted span of a film.

    Attributes:
        kind: the corruption, as a spec.
        at: frame of the film at which it begins.
        first: row of the bank at which it begins.
        count: number of frames.
    """

    kind: str
    at: int
    first: int
    count: int


@dataclass(frozen=True)
class BankFilm:
    """A film of a bank: its clean frames, and its corrupted spans.

    Attributes:
        kind: kind of content, by which false alarms are counted.
        first: row of the bank at which it begins.
        count: number of frames.
    """

    name: str
    kind: str
    first: int
    count: int
    spans: tuple[CorruptedSpan, ...]


@dataclass(frozen=True, eq=False)
class CorruptedFilm:
    """Descriptors of a film, to be added to a bank.

    Attributes:
        spans: for each corrupted span its spec, its first frame, and the descriptors of its frames.
    """

    name: str
    kind: str
    clean: Descriptors
    spans: tuple[tuple[str, int, Descriptors], ...]


@dataclass(frozen=True, eq=False)
class FilmBank:
    """Films and the descriptors of their frames.

    Attributes:
        frames: (M, CHANNELS, CELLS, CELLS) bytes, clean and corrupted.
        films: rows of each film.
        visible: (M,) whether a corrupted frame differs visibly from the clean one.
    """

    frames: Descriptors
    films: tuple[BankFilm, ...]
    visible: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, corrupted: Iterable[CorruptedFilm]) -> FilmBank:
        """Build the bank of some films."""
        parts: list[Descriptors] = []
        visible: list[npt.NDArray[np.bool_]] = []
        films: list[BankFilm] = []
        row = 0
        for film in corrupted:
            first, spans = row, []
            parts.append(film.clean)
            visible.append(np.zeros(len(film.clean), np.bool_))
            row += len(film.clean)
            for kind, at, descriptors in film.spans:
                clean = film.clean[at : at + len(descriptors)]
                change = np.abs(descriptors.astype(np.int16) - clean).reshape(len(descriptors), -1).mean(1)
                parts.append(descriptors)
                visible.append(change >= MIN_CHANGE)
                spans.append(CorruptedSpan(kind, at, row, len(descriptors)))
                row += len(descriptors)
            films.append(BankFilm(film.name, film.kind, first, len(film.clean), tuple(spans)))
        if not films:
            raise DataError("no film to learn from; pass videos")
        return cls(np.concatenate(parts), tuple(films), np.concatenate(visible))

    def only(self, films: Iterable[BankFilm]) -> FilmBank:
        """Return a bank of some of the films; the frames are shared."""
        return FilmBank(self.frames, tuple(films), self.visible)


def write_bank(bank: FilmBank, path: Path) -> None:
    """Write a bank as one compressed file."""
    # Little changes from one frame to the next, so that differences compress well.
    steps = bank.frames.copy()
    steps[1:] -= bank.frames[:-1]
    index = {
        "format": FORMAT,
        "frames": len(bank.frames),
        "films": [
            [film.name, film.kind, film.first, film.count, [[s.kind, s.at, s.first, s.count] for s in film.spans]]
            for film in bank.films
        ],
    }
    header = json.dumps(index).encode()
    buffer = io.BytesIO()
    buffer.write(len(header).to_bytes(8, "little") + header + np.packbits(bank.visible).tobytes())
    buffer.write(steps.tobytes())
    write_bytes(path, [lzma.compress(buffer.getvalue(), preset=LZMA_PRESET)])


def read_bank(path: str | Path) -> FilmBank:
    """Read a bank from a file."""
    path = Path(path)
    try:
        data = lzma.decompress(path.read_bytes())
        size = int.from_bytes(data[:8], "little")
        index = json.loads(data[8 : 8 + size])
        if index["format"] != FORMAT:
            raise DataError(f"{path}: has format {index['format']}, this jostle reads {FORMAT}; create it again")
        count = index["frames"]
        begin = 8 + size
        packed = -(-count // 8)
        visible = np.unpackbits(np.frombuffer(data[begin : begin + packed], np.uint8), count=count).astype(np.bool_)
        steps = np.frombuffer(data[begin + packed :], np.uint8).reshape(count, CHANNELS, CELLS, CELLS)
        films = tuple(
            BankFilm(name, kind, first, frames, tuple(CorruptedSpan(*span) for span in spans))
            for name, kind, first, frames, spans in index["films"]
        )
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); pass a file of descriptors") from None
    except (lzma.LZMAError, ValueError, KeyError, TypeError, EOFError, RecursionError):
        raise DataError(f"{path}: not a complete file of descriptors; create it again") from None
    return FilmBank(np.cumsum(steps, axis=0, dtype=np.uint8), films, visible)


MIN_FRAMES = 8  # per piece


@dataclass(frozen=True)
class Piece:
    """A part of a video to corrupt; plain data, as it is sent to other processes."""

    name: str
    path: Path
    first: int
    stop: int


def load_footage(config: InspectionConfig, progress: Callable[[int, int], None] | None = None) -> FilmBank:
    """Load the films of a folder of videos, prepared in parallel unless they are cached."""
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
