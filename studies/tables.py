"""Fill every table of docs/results.md from the records: `python -m studies.tables`."""

from __future__ import annotations

from studies import (
    breaking_points,
    detection_tables,
    inspector_tables,
    mending_tables,
    recognition_tables,
    watching_tables,
)
from studies.harness import PAGE


def main() -> None:
    """Write the page with every table as its records have it."""
    page = PAGE.read_text(encoding="utf-8")
    page = detection_tables.fill_page(page, detection_tables.Results())
    page = breaking_points.fill_page(page, breaking_points.read_results())
    page = recognition_tables.fill_page(page, recognition_tables.Results())
    page = inspector_tables.fill_page(page, inspector_tables.read_results())
    page = watching_tables.fill_page(page, watching_tables.read_results())
    page = mending_tables.fill_page(page, mending_tables.Results())
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
