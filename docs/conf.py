"""How Sphinx builds these pages."""

from __future__ import annotations

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
