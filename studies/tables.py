"""Fill every table of docs/results/ from the records, and draw the figures: `python -m studies.tables`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from studies import (
    breaking_points,
    detection_tables,
    film_stability,
    film_tables,
    inspector_tables,
    mending_tables,
    questions,
    recognition_tables,
    watching_tables,
)
from studies.figures import FIGURES, draw
from studies.harness import RESULT_PAGES, Results, fill_tables

TABLES: dict[str, Mapping[str, Callable[[Results], str]]] = {
    "table": detection_tables.TABLES,
    "end to end": detection_tables.END_TO_END_TABLES,
    "breaking": breaking_points.TABLES,
    "questions": questions.TABLES,
    "recognition": recognition_tables.TABLES,
    "inspector": inspector_tables.TABLES,
    "mending": mending_tables.TABLES,
    "film": film_stability.TABLES,
    "on film": film_tables.TABLES,
    "watching": watching_tables.TABLES,
}


def fill_page(page: str, results: Results) -> str:
    """Return a page with every table as its records have it."""
    for study, tables in TABLES.items():
        page = fill_tables(study, tables, page, results)
    return page


def main() -> None:
    """Write every page and every figure."""
    fill = partial(fill_page, results=Results())
    for path in sorted(RESULT_PAGES.glob("*.md")):
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
    for figure in FIGURES:
        (RESULT_PAGES / figure.file).write_text(draw(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
