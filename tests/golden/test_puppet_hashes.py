"""The films of the embedded data set, pinned: a cache filled today is worth as much after the next change."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import pytest

from jostle.datasets.puppets.film import CLASSES, Film, write_film
from jostle.datasets.puppets.parameters import VERSION
from jostle.datasets.puppets.trimmed import TrimmedClip
from jostle.datasets.puppets.untrimmed import Video
from jostle.io.video.decode import Reader

FILE = Path(__file__).with_name("puppet-hashes.json")


def digest(film: Film) -> str:
    """A hash of what happens in a film and of eight frames from its middle."""
    made = hashlib.sha256(repr((film.frames, film.actions)).encode())
    made.update(film.draw(film.frames // 2, film.frames // 2 + 8).tobytes())
    return made.hexdigest()


def coded_digest(film: Film, path: Path) -> str:
    """A hash of a film's file and of all frames that are read from it."""
    write_film(film, path)
    made = hashlib.sha256(path.read_bytes())
    with Reader(path) as reader:
        for frame in reader:
            made.update(frame.tobytes())
    return made.hexdigest()


def test_films_are_pinned(request: pytest.FixtureRequest) -> None:
    films = [Video(0, subset, 1) for subset in ("extractor", "training", "validation", "test")]
    clips = [TrimmedClip(0, "test", label, 1) for label in CLASSES]
    found = {recipe.id: digest(recipe.film()) for recipe in (*films, *clips)}
    if request.config.getoption("--update-golden"):
        pin(f"version {VERSION}", found)
    known = json.loads(FILE.read_text())
    changed = [name for name, value in found.items() if known.get(f"version {VERSION}", {}).get(name) != value]
    assert not changed, "these films are not what they were; raise VERSION in jostle.datasets.puppets.parameters"


def test_coded_films_are_pinned(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The films are of those that processors coded differently while the encoder weighed fractions."""
    recipes = [Video(0, "test", 4), Video(0, "test", 48), *(TrimmedClip(0, "test", label, 1) for label in CLASSES[:4])]
    found = {recipe.id: coded_digest(recipe.film(), tmp_path / f"{recipe.id}.mp4") for recipe in recipes}
    library = f"av {version('av')}"
    if request.config.getoption("--update-golden"):
        pin(library, found)
    known = json.loads(FILE.read_text())
    assert library in known, f"nothing is pinned for {library}: run with --update-golden and explain what moved"
    assert found == known[library]


def pin(what: str, found: dict[str, str]) -> None:
    known = json.loads(FILE.read_text())
    FILE.write_text(json.dumps(known | {what: found}, indent=1) + "\n")
