"""Training data of inspectors: descriptors of clean and corrupted films in one compact array."""

from __future__ import annotations

import io
import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle.errors import DataError
from jostle.io.files.atomic import write_bytes
from jostle.mending.descriptor import CELLS, CHANNELS, Descriptors

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
    """Read a bank from a file.

    Raises:
        DataError: if it is missing or damaged.
    """
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
    except (lzma.LZMAError, ValueError, KeyError, TypeError, EOFError):
        raise DataError(f"{path}: not a complete file of descriptors; create it again") from None
    return FilmBank(np.cumsum(steps, axis=0, dtype=np.uint8), films, visible)
