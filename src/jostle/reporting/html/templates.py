"""Templates of pages, and what a page says of its own style and script, so that no other could run."""

from __future__ import annotations

import base64
import hashlib
import importlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from jostle.core.environment import library_versions
from jostle.errors import MissingExtra
from jostle.reporting.charts.looks import style_sheet
from jostle.reporting.charts.palette import all_colours

HERE = Path(__file__).parent


def templates(what: str = "the report") -> Any:
    """An environment in which everything is escaped; raises MissingExtra if Jinja, which `what` needs, is missing."""
    try:
        importlib.import_module("jinja2")
    except ImportError:
        raise MissingExtra(what, "report") from None
    return _templates()


@lru_cache(1)
def _templates() -> Any:
    """Keep the environment, and with it what was compiled: a page's template takes longer than the page."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["kind_of"] = lambda block: type(block).__name__
    return environment


def inline_assets(styles: tuple[str, ...], script: str = "") -> dict[str, str]:
    """Style and script of a page with their hashes, from palette, looks and files in this folder, and who writes it."""
    style = "\n".join([all_colours(), style_sheet(), *map(_text, styles)])
    text = _text(script) if script else ""
    return {
        "style": style,
        "script": text,
        "style_hash": _hash(style),
        "script_hash": _hash(text),
        "version": library_versions()["jostle"],
    }


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
