"""Fill every table of docs/results/ from the records, and draw the figures: `python -m studies.tables`."""

from __future__ import annotations

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
from studies.harness import RESULT_PAGES


def fill_tables(page: str) -> str:
    """Return a page with every table as its records have it."""
    page = detection_tables.fill_page(page, detection_tables.Results())
    page = breaking_points.fill_page(page, breaking_points.read_results())
    page = questions.fill_page(page, questions.read_results())
    page = recognition_tables.fill_page(page, recognition_tables.Results())
    page = inspector_tables.fill_page(page, inspector_tables.read_results())
    page = watching_tables.fill_page(page, watching_tables.read_results())
    page = mending_tables.fill_page(page, mending_tables.Results())
    page = film_stability.fill_page(page, film_stability.read_results())
    return film_tables.fill_page(page, film_tables.Film())


def main() -> None:
    """Write every page and every figure."""
    for path in sorted(RESULT_PAGES.glob("*.md")):
        path.write_text(fill_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
    for figure in FIGURES:
        (RESULT_PAGES / figure.file).write_text(draw(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
