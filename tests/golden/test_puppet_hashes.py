"""Pinned films of the built-in dataset: cached films stay valid after every change."""

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
    """Return a hash of the actions of a film and of eight frames from its middle."""
    hasher = hashlib.sha256(repr((film.frames, film.actions)).encode())
    hasher.update(film.draw(film.frames // 2, film.frames // 2 + 8).tobytes())
    return hasher.hexdigest()


def coded_digest(film: Film, path: Path) -> str:
    """Return a hash of the encoded file of a film and of all its decoded frames."""
    write_film(film, path)
    hasher = hashlib.sha256(path.read_bytes())
    with Reader(path) as reader:
        for frame in reader:
            hasher.update(frame.tobytes())
    return hasher.hexdigest()


def test_films_are_pinned(request: pytest.FixtureRequest) -> None:
    films = [Video(0, subset, 1) for subset in ("extractor", "training", "validation", "test")]
    clips = [TrimmedClip(0, "test", label, 1) for label in CLASSES]
    digests = {recipe.id: digest(recipe.film()) for recipe in (*films, *clips)}
    if request.config.getoption("--update-golden"):
        pin(f"version {VERSION}", digests)
    pinned = json.loads(FILE.read_text())
    changed = [name for name, value in digests.items() if pinned.get(f"version {VERSION}", {}).get(name) != value]
    assert not changed, "these films are not what they were; raise VERSION in jostle.datasets.puppets.parameters"


def test_coded_films_are_pinned(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The films are ones that processors encoded differently while the encoder used floating point."""
    recipes = [Video(0, "test", 4), Video(0, "test", 48), *(TrimmedClip(0, "test", label, 1) for label in CLASSES[:4])]
    digests = {recipe.id: coded_digest(recipe.film(), tmp_path / f"{recipe.id}.mp4") for recipe in recipes}
    library = f"av {version('av')}"
    if request.config.getoption("--update-golden"):
        pin(library, digests)
    pinned = json.loads(FILE.read_text())
    assert library in pinned, f"nothing is pinned for {library}: run with --update-golden and explain what moved"
    assert digests == pinned[library]


def pin(key: str, digests: dict[str, str]) -> None:
    pinned = json.loads(FILE.read_text())
    FILE.write_text(json.dumps(pinned | {key: digests}, indent=1) + "\n")
