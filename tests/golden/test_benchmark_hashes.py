"""Pinned fingerprints of benchmarks: results with different fingerprints are not comparable.

A change here needs a higher `version` of the recipe, and an explanation in the commit message.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.evaluation.recipes.recipe import benchmarks

FILE = Path(__file__).with_name("benchmark-hashes.json")


def test_fingerprints_are_pinned(request: pytest.FixtureRequest) -> None:
    fingerprints = {f"{recipe.name} {recipe.version}": recipe.fingerprint for recipe in benchmarks.values()}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(fingerprints, indent=1) + "\n")
    assert fingerprints == json.loads(FILE.read_text())
