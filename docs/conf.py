"""Configuration of Sphinx for these pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jostle

sys.path.insert(0, str(Path(__file__).parent))  # for the generator of the reference

project = "jostle"
author = "the jostle authors"
release = version = jostle.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
root_doc = "index"

html_theme = "furo"
html_title = f"jostle {release}"


def setup(app: Any) -> None:
    """Write the page of full signatures and docstrings, which is not committed."""
    from generate_reference import api_page

    (Path(__file__).parent / "reference" / "api.md").write_text(api_page(), encoding="utf-8")
