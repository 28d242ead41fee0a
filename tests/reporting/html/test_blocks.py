"""Blocks of a page: each is drawn, with the text of strangers escaped, and wrong ones are refused."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from helpers.synthetic_runs import HOSTILE
from jostle.core.tables import Column, Table
from jostle.errors import BadValue
from jostle.reporting.charts.drawing import Drawing
from jostle.reporting.html.blocks import (
    Article,
    Bare,
    Block,
    Detail,
    Details,
    Facts,
    Figure,
    Film,
    FilmStrip,
    Fold,
    Heading,
    Items,
    Number,
    Numbers,
    Shot,
    Side,
    Strong,
    Text,
)
from jostle.reporting.html.report import Page, render
from jostle.reporting.html.section import PlacedSection

BAD = "".join(HOSTILE) + "\" onload='alert(1)' &amp;"
PIXEL = "data:image/png;base64,AA=="


def drawing() -> Drawing:
    made = Drawing(20, 10, BAD)
    made.open_link("#here", BAD)
    made.text(1, 5, BAD, hint=BAD)
    made.close_link()
    return made


TABLE = Table(BAD, (Column(BAD), Column(BAD, "percent")), ((BAD, 0.5),))
FIGURE = Figure("a-figure", BAD, drawing(), BAD)
BLOCKS: dict[type, Block] = {
    str: BAD,
    Text: Text((BAD, Strong(BAD)), BAD),
    Heading: Heading(BAD, BAD),
    Items: Items((Text(BAD), Text((Strong(BAD),)))),
    Facts: Facts(((BAD, BAD),), BAD),
    Numbers: Numbers((Number(BAD, BAD, BAD),)),
    Table: TABLE,
    Figure: FIGURE,
    Bare: Bare(TABLE),
    FilmStrip: FilmStrip(BAD, (Shot(0.5, PIXEL, f'{PIXEL}"{BAD}', True), Shot(1, PIXEL, PIXEL, False)), (4, 6)),
    Film: Film(BAD, f'data:video/mp4;base64,AA=="{BAD}', (4, 12)),
    Side: Side(BAD, TABLE),
    Fold: Fold(BAD, BAD),
    Article: Article(BAD, BAD),
    Details: Details(
        (FIGURE,), BAD, (Detail("here", BAD, BAD, TABLE, back="figure-a-figure", before="here", after="here"),)
    ),
}


def page_of(*blocks: Block, name: str = "made", title: str = "Made") -> str:
    return render(Page(title, title, (title,), (PlacedSection(name, title, title, blocks),)))


def tags_of(page: str) -> list[str]:
    return re.findall(r"<[a-zA-Z/!][^>]*>", page)


def test_every_block_is_tried() -> None:
    assert set(BLOCKS) == set(get_args(Block))


@pytest.mark.parametrize("kind", BLOCKS, ids=lambda kind: kind.__name__)
def test_text_of_strangers_stays_text_in_every_block(kind: type) -> None:
    page = page_of(BLOCKS[kind])
    head, _, body = page.partition("</head>")
    assert "<script" not in head
    assert body.count("<script") == body.count("</script>") == 2  # those of the page
    tags = tags_of(body)
    assert not any(re.match(r"<img src=x", tag) for tag in tags)
    assert not any(re.search(r"\sonload=", re.sub(r'"[^"]*"', "", tag)) for tag in tags)
    assert BAD not in body.partition('id="texts"')[0]
    assert "&amp;amp;" in body  # what looks escaped already is text as well


def test_text_of_strangers_stays_text_around_the_blocks() -> None:
    page = page_of("words", title=BAD)
    assert page.count("<script") == 2
    assert BAD not in page


def test_empty_arrangements_leave_nothing() -> None:
    plain = page_of("words")
    assert page_of("words", Side(None), Fold("nothing", None)).split() == plain.split()


def test_a_bare_figure_keeps_its_name_for_screen_readers() -> None:
    figure = Figure("f", "What it shows", Drawing(1, 1, ""))
    assert "<h3>What it shows</h3>" in page_of(figure)
    bare = page_of(Bare(figure))
    assert "<h3>" not in bare
    assert 'aria-label="What it shows"' in bare


def test_wrong_blocks_are_refused() -> None:
    with pytest.raises(BadValue, match="made of blocks, and int is none"):
        Side(3)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="does not fetch 'https://example"):
        Film("v", "https://example.org/film.mp4", (1, 1))
    with pytest.raises(BadValue, match="does not fetch"):
        Shot(0, PIXEL, "http://example.org/a.png", False)
    with pytest.raises(BadValue, match="called by letters"):
        Figure("../away", "", Drawing(1, 1, ""))
