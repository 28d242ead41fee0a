"""The fingerprints of benchmarks, pinned: if one changes, its numbers are those of another benchmark.

A change here needs a higher `version` of the recipe, and a word in the commit.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.evaluation.recipes.recipe import benchmarks

FILE = Path(__file__).with_name("benchmark-hashes.json")


def test_fingerprints_are_pinned(request: pytest.FixtureRequest) -> None:
    found = {f"{recipe.name} {recipe.version}": recipe.fingerprint for recipe in benchmarks.values()}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(FILE.read_text())
