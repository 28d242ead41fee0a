"""The films of the embedded data set, pinned: a cache filled today is worth as much after the next change."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from jostle.puppets.film import CLASSES, Film
from jostle.puppets.splits import VERSION
from jostle.puppets.trimmed import TrimmedClip
from jostle.puppets.untrimmed import Video

FILE = Path(__file__).with_name("puppet-hashes.json")


def digest(film: Film) -> str:
    """A hash of what happens in a film and of eight frames from its middle."""
    made = hashlib.sha256(repr((film.frames, film.actions)).encode())
    made.update(film.draw(film.frames // 2, film.frames // 2 + 8).tobytes())
    return made.hexdigest()


def test_films_are_pinned(request: pytest.FixtureRequest) -> None:
    films = [Video(0, subset, 1) for subset in ("extractor", "training", "validation", "test")]
    clips = [TrimmedClip(0, "test", label, 1) for label in CLASSES]
    found = {recipe.id: digest(recipe.film()) for recipe in (*films, *clips)}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps({f"version {VERSION}": found}, indent=1) + "\n")
    known = json.loads(FILE.read_text())
    changed = [name for name, value in found.items() if known.get(f"version {VERSION}", {}).get(name) != value]
    assert not changed, "these films are not what they were; raise VERSION in jostle.puppets.splits"
