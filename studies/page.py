"""The page of results: tables of a study stand between marks, and are put there from its records."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"

R = TypeVar("R")


def with_tables(study: str, tables: Mapping[str, Callable[[R], str]], page: str, results: R) -> str:
    """The page with every `<!-- STUDY: NAME -->` ... `<!-- end -->` filled from the results."""

    def put(found: re.Match[str]) -> str:
        return f"<!-- {study}: {found[1]} -->\n\n{tables[found[1]](results)}\n\n<!-- end -->"

    return re.sub(rf"<!-- {study}: (\w+) -->.*?<!-- end -->", put, page, flags=re.DOTALL)


def fill_page(filled: Callable[[str, R], str], results: R) -> None:
    """Write the page with its tables as they should be."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
