"""One self-contained page that shows corruptions side by side with the clean clip."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.io.files.atomic import write_text
from jostle.reporting.html.templates import inline_assets, templates


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
    families: dict[str, list[tuple[Exhibit, str]]] = {}
    for exhibit in exhibits:
        families.setdefault(exhibit.family, []).append((exhibit, _embedded(exhibit.clip, "video/mp4")))
    template = templates("the gallery page").get_template("gallery.html.jinja")
    page = template.render(
        title=f"{len(exhibits)} corruptions of a video",
        families=families,
        about=about,
        clean=_embedded(clean, "video/mp4"),
        sheet=_embedded(sheet, "image/png"),
        **inline_assets(("gallery.css",)),
    )
    write_text(path, [page])
    return path


def _embedded(path: Path, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
