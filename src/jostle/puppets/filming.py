"""Films as files: drawn piece by piece and coded as H.264."""

from __future__ import annotations

from pathlib import Path

from jostle.media.encode import Writer
from jostle.puppets.film import FPS, SIZE, Difficulty, Film
from jostle.puppets.splits import VERSION
from jostle.seeds import key_for

QUALITY = 20.0  # no block is seen at this size
CODING = 3  # raise it when the same frames become other files, so that no cache holds a mixture
FRAMES_AT_ONCE = 120


def write_film(film: Film, path: Path) -> None:
    """Draw a film and write it; the file appears when it is whole."""
    with Writer(path, size=SIZE, fps=FPS, quality=QUALITY) as writer:
        for first in range(0, film.frames, FRAMES_AT_ONCE):
            for frame in film.draw(first, min(first + FRAMES_AT_ONCE, film.frames)):
                writer.write(frame)


class Keyed:
    """A recipe whose key is made of all that decides the file: the recipe's own data, and how films are made."""

    @property
    def key(self) -> str:
        return f"{key_for(VERSION, repr(self), repr(Difficulty()), QUALITY, CODING):016x}"
