"""Glances of films, clean and struck, in one array: what an inspector learns from, small enough to carry about."""

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
from jostle.mending.descriptor import CELLS, CHANNELS, Glances

FORMAT = 1
PACKED = 1  # of lzma: fast, for glances are noisy and hardly pack better
SEEN = 1.5  # mean change of a glance, in its bytes, below which nobody could say that a frame was struck


@dataclass(frozen=True)
class Strike:
    """A stretch of a film that was struck.

    Attributes:
        kind: by what, as a spec.
        at: the frame of the film it begins at.
        first: the row of the bank it begins at.
        count: frames.
    """

    kind: str
    at: int
    first: int
    count: int


@dataclass(frozen=True)
class Film:
    """A film of a bank: its clean frames, and its strikes.

    Attributes:
        kind: what it shows, in a word; false alarms are counted by it.
        first: the row of the bank it begins at.
        count: frames.
    """

    name: str
    kind: str
    first: int
    count: int
    strikes: tuple[Strike, ...]


@dataclass(frozen=True, eq=False)
class Struck:
    """A film on its way into a bank.

    Attributes:
        strikes: what struck it, the frame it begins at, and the glances of the struck frames.
    """

    name: str
    kind: str
    clean: Glances
    strikes: tuple[tuple[str, int, Glances], ...]


@dataclass(frozen=True, eq=False)
class FilmBank:
    """Films and their frames.

    Attributes:
        frames: (M, CHANNELS, CELLS, CELLS) bytes, clean and struck.
        films: which rows are whose.
        visible: (M,) whether a struck frame differs from the clean one so that it can be seen.
    """

    frames: Glances
    films: tuple[Film, ...]
    visible: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, made: Iterable[Struck]) -> FilmBank:
        """The bank of some films."""
        parts: list[Glances] = []
        visible: list[npt.NDArray[np.bool_]] = []
        films: list[Film] = []
        row = 0
        for film in made:
            first, strikes = row, []
            parts.append(film.clean)
            visible.append(np.zeros(len(film.clean), np.bool_))
            row += len(film.clean)
            for kind, at, struck in film.strikes:
                clean = film.clean[at : at + len(struck)]
                change = np.abs(struck.astype(np.int16) - clean).reshape(len(struck), -1).mean(1)
                parts.append(struck)
                visible.append(change >= SEEN)
                strikes.append(Strike(kind, at, row, len(struck)))
                row += len(struck)
            films.append(Film(film.name, film.kind, first, len(film.clean), tuple(strikes)))
        if not films:
            raise DataError("no film to learn from; give videos")
        return cls(np.concatenate(parts), tuple(films), np.concatenate(visible))

    def only(self, films: Iterable[Film]) -> FilmBank:
        """Some of the films; the frames stay where they are."""
        return FilmBank(self.frames, tuple(films), self.visible)


def write_bank(bank: FilmBank, path: Path) -> None:
    """Write a bank as one packed file."""
    # From one frame to the next little changes, so that differences pack well.
    steps = bank.frames.copy()
    steps[1:] -= bank.frames[:-1]
    index = {
        "format": FORMAT,
        "frames": len(bank.frames),
        "films": [
            [film.name, film.kind, film.first, film.count, [[s.kind, s.at, s.first, s.count] for s in film.strikes]]
            for film in bank.films
        ],
    }
    told = json.dumps(index).encode()
    made = io.BytesIO()
    made.write(len(told).to_bytes(8, "little") + told + np.packbits(bank.visible).tobytes())
    made.write(steps.tobytes())
    write_bytes(path, [lzma.compress(made.getvalue(), preset=PACKED)])


def read_bank(path: str | Path) -> FilmBank:
    """The bank in a file.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    path = Path(path)
    try:
        data = lzma.decompress(path.read_bytes())
        size = int.from_bytes(data[:8], "little")
        index = json.loads(data[8 : 8 + size])
        if index["format"] != FORMAT:
            raise DataError(f"{path}: of format {index['format']}, this jostle reads {FORMAT}; make it anew")
        count = index["frames"]
        begin = 8 + size
        packed = -(-count // 8)
        visible = np.unpackbits(np.frombuffer(data[begin : begin + packed], np.uint8), count=count).astype(np.bool_)
        steps = np.frombuffer(data[begin + packed :], np.uint8).reshape(count, CHANNELS, CELLS, CELLS)
        films = tuple(
            Film(name, kind, first, many, tuple(Strike(*strike) for strike in strikes))
            for name, kind, first, many, strikes in index["films"]
        )
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); give a file of glances") from None
    except (lzma.LZMAError, ValueError, KeyError, TypeError, EOFError):
        raise DataError(f"{path}: is no whole file of glances; make it anew") from None
    return FilmBank(np.cumsum(steps, axis=0, dtype=np.uint8), films, visible)
