"""The page on puppets compares them with THUMOS14 by numbers that are true."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from jostle.datasets.puppets.parameters import VIDEOS
from jostle.datasets.puppets.untrimmed import Annotations
from jostle.io.files.annotations import read_truth

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.slow
def test_the_table_on_the_page_is_that_of_the_films(tmp_path: Path) -> None:
    """If this fails, films have changed: run the command on the page, and copy what it prints."""
    spec = importlib.util.spec_from_file_location("compare_puppets", DOCS / "compare_puppets.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    path = tmp_path / "annotations.json"
    Annotations(0, tuple(VIDEOS.items())).write(path)
    lines = script.table({f"puppets {subset}": read_truth(path, subset=subset) for subset in VIDEOS})
    page = (DOCS / "how-to" / "use-the-puppets.md").read_text().splitlines()
    for line in lines:
        assert any(shown.startswith(line) for shown in page), line
