"""Escaping of untrusted text in CSV, Markdown and LaTeX tables (F87)."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.core.tables import Column, Table, csv_escape, format_value, latex_escape, markdown_escape

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def table_of(word: str, value: float | None = 0.5) -> Table:
    return Table("t", (Column("name"), Column("v", "percent"), Column("i", "interval")), ((word, value, (0.1, 0.2)),))


@given(WORDS)
def test_csv_never_has_formulas(word: str) -> None:
    rows = list(csv.reader(io.StringIO(table_of(word).csv(), newline="")))
    assert rows[0] == ["name", "v (%)", "i low (%)", "i high (%)"]
    assert len(rows) == 2
    line = "".join(letter if letter.isprintable() else " " for letter in word)
    assert rows[1][0] in (line, f"'{line}")
    assert not re.match(r"\s*[=+\-@|%]", rows[1][0]) or re.fullmatch(r"[+-]?\d+(\.\d+)?", rows[1][0])
    assert rows[1][1:] == ["50", "10", "20"]


@given(WORDS)
def test_markdown_table_keeps_its_shape(word: str) -> None:
    lines = table_of(word).markdown().split("\n")
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 4
    assert "<" not in lines[2]


@given(WORDS)
def test_latex_has_no_foreign_commands(word: str) -> None:
    latex = latex_escape(word)
    assert "\n" not in latex
    bare = re.sub(r"\\text(backslash|asciitilde|asciicircum|less|greater|bar|quotedbl)\{\}|\\[&%$#_{}]", "", latex)
    assert not set(bare) & set('\\&%$#_{}~^<>|"')


def test_latex_is_a_booktabs_table() -> None:
    columns = (Column("name"), Column("v", "points"), Column("i", "interval"), Column("", "mark"))
    latex = Table("t", columns, (("a_b & 50%", 0.5, (0.1, 0.2), True), ("c", 0.1, None, False))).latex()
    assert latex.splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name & v & i \\",
        r"\midrule",
        r"a\_b \& 50\% & \textbf{+50.00} & [10.00, 20.00] \\",
        r"c & +10.00 & n/a \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_has_a_minus_sign() -> None:
    columns = (Column("name"), Column("v", "points"), Column("i", "interval"))
    latex = Table("", columns, (("a-b", -0.01, (-0.02, 0.01)),)).latex()
    assert r"a-b & $-$1.00 & [$-$2.00, 1.00] \\" in latex


@pytest.mark.parametrize(
    ("value", "kind", "words"), [(None, "percent", "n/a"), (3, "count", "3"), (0.1, "points", "+10.00")]
)
def test_format_value(value: float | None, kind: str, words: str) -> None:
    assert format_value(value, kind) == words  # type: ignore[arg-type]


def test_csv_numbers_are_exact_and_none_is_empty() -> None:
    assert table_of("x", 1 / 3).csv().splitlines()[1] == "x,33.3333333333,10,20"
    assert table_of("x", None).csv().splitlines()[1] == "x,,10,20"
    negative = Table("t", (Column("d", "points"),), ((-0.25,),))
    assert negative.csv().splitlines()[1] == "-25"
    assert csv_escape("-x") == "'-x"
    assert markdown_escape("a|b<i>") == r"a\|b&lt;i>"
