"""One self-contained page that shows corruptions side by side with the clean clip."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import MissingExtra


@dataclass(frozen=True)
class Exhibit:
    """A corrupted clip on show."""

    name: str
    family: str
    level: str
    summary: str
    clip: Path
    note: str = ""  # remark below the clip


def write_gallery(path: Path, exhibits: Sequence[Exhibit], clean: Path, sheet: Path, *, about: str) -> Path:
    """Write the page about a clean clip; clips and sheet are inside it, so it can be moved and opened anywhere."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtra("the gallery page", "report") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    families: dict[str, list[tuple[Exhibit, str]]] = {}
    for exhibit in exhibits:
        families.setdefault(exhibit.family, []).append((exhibit, _embedded(exhibit.clip, "video/mp4")))
    page = environment.get_template("gallery.html.jinja").render(
        families=families,
        count=len(exhibits),
        about=about,
        clean=_embedded(clean, "video/mp4"),
        sheet=_embedded(sheet, "image/png"),
    )
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    part.write_text(page, encoding="utf-8")
    part.replace(path)
    return path


def _embedded(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
