"""How Sphinx builds these pages; the reference is written from the code first, so it cannot fall behind."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import jostle

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


def write_reference(app: Sphinx) -> None:
    """Write the generated pages into `reference/`, beside the hand-written index."""
    from generate_reference import write_pages

    write_pages(Path(app.srcdir) / "reference")


def setup(app: Sphinx) -> None:
    """Called by Sphinx when it starts."""
    app.connect("builder-inited", write_reference)
