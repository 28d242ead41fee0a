"""The documented comparison of puppets with THUMOS14 is up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from jostle.datasets.puppets.parameters import VIDEOS
from jostle.datasets.puppets.untrimmed import Annotations
from jostle.io.files.annotations import read_truth

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.slow
def test_the_documented_table_matches_the_films(tmp_path: Path) -> None:
    """Compare the table; if it fails, films have changed: run the command on the page and copy its output."""
    spec = importlib.util.spec_from_file_location("compare_puppets", DOCS / "compare_puppets.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    path = tmp_path / "annotations.json"
    Annotations(0, tuple(VIDEOS.items())).write(path)
    lines = script.table({f"puppets {subset}": read_truth(path, subset=subset) for subset in VIDEOS})
    page = (DOCS / "how-to" / "use-the-puppets.md").read_text().splitlines()
    for line in lines:
        assert any(text.startswith(line) for text in page), line
