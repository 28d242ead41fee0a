"""Blocks of a page as plain data: words, facts, tables, figures and pictures, each drawn by a macro of its name.

Whatever strangers wrote may stand in them: the template escapes all text, and a drawing escapes its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from jostle.core.tables import Table
from jostle.errors import BadValue
from jostle.reporting.charts.drawing import Drawing

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Strong:
    """Words that stand out in a paragraph."""

    words: str


@dataclass(frozen=True)
class Text:
    """Paragraph; in a section a plain `str` is one too."""

    words: str | tuple[str | Strong, ...]
    look: str = ""  # a class of the style sheet, such as `lead` or `pale`

    @property
    def parts(self) -> tuple[str | Strong, ...]:
        """The words, in pieces that stand out or do not."""
        return (self.words,) if isinstance(self.words, str) else self.words


@dataclass(frozen=True)
class Heading:
    """Heading inside a section."""

    words: str
    aside: str = ""  # paler words behind it
    level: int = 3


@dataclass(frozen=True)
class Items:
    """List of paragraphs, each with a point before it."""

    items: tuple[Text, ...]


@dataclass(frozen=True)
class Facts:
    """Pairs of what something is called and what it is."""

    facts: tuple[tuple[str, str], ...]
    look: str = ""


@dataclass(frozen=True)
class Number:
    """A number that is read at a glance."""

    label: str
    value: str
    interval: str = ""


@dataclass(frozen=True)
class Numbers:
    """A few numbers in large letters, side by side."""

    numbers: tuple[Number, ...]


@dataclass(frozen=True)
class Figure:
    """A drawing that can be saved."""

    name: str  # of the file it is saved to, and in the page `figure-<name>`
    title: str  # its heading
    drawing: Drawing
    note: str = ""  # how to read it

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadValue(f"a figure is called by letters, digits, _ and -, not {self.name!r}")


@dataclass(frozen=True)
class Shot:
    """One moment of a video."""

    time_s: float
    # The frame before and after, as data addresses
    clean: str
    corrupted: str
    affected: bool  # whether the corruption touches it

    def __post_init__(self) -> None:
        _check_embedded(self.clean, self.corrupted)


@dataclass(frozen=True)
class FilmStrip:
    """Moments of a video, clean above corrupted."""

    video: str
    shots: tuple[Shot, ...]
    size: tuple[int, int]  # (height, width) of a picture


@dataclass(frozen=True)
class Film:
    """A video that can be played, clean beside corrupted."""

    video: str
    address: str  # its data
    size: tuple[int, int]  # (height, width) of both pictures together

    def __post_init__(self) -> None:
        _check_embedded(self.address)


def _check_embedded(*addresses: str) -> None:
    for address in addresses:
        if not address.startswith("data:"):
            raise BadValue(f"a page holds its pictures itself, as data:..., and does not fetch {address[:40]!r}")


@dataclass(frozen=True)
class Bare:
    """A figure or a table without its heading, which it still has for screen readers and files."""

    block: Figure | Table


class Blocks:
    """Blocks in order; those that are None are left out."""

    def __init__(self, *blocks: Block | None) -> None:
        self.blocks = tuple(one for one in blocks if one is not None)
        for one in self.blocks:
            if not isinstance(one, Block):
                raise BadValue(f"a page is made of blocks, and {type(one).__name__} is none")


class Side(Blocks):
    """Blocks side by side, where there is room."""


class Fold(Blocks):
    """Blocks behind a line of words that opens them; opened for print."""

    def __init__(self, title: str, *blocks: Block | None) -> None:
        super().__init__(*blocks)
        self.title = title


class Article(Blocks):
    """Blocks that belong together, such as all on one video."""

    def __init__(self, look: str, *blocks: Block | None) -> None:
        super().__init__(*blocks)
        self.look = look


class Detail(Blocks):
    """Blocks that a square of a map opens.

    Args:
        address: its anchor in the page.
        back: the anchor to go to when it is closed.
        before, after: anchors of its neighbours; empty at the ends.
    """

    def __init__(
        self, address: str, title: str, *blocks: Block | None, back: str, before: str = "", after: str = ""
    ) -> None:
        super().__init__(*blocks)
        self.address = address
        self.title = title
        self.back = back
        self.before = before
        self.after = after


@dataclass(frozen=True)
class Details:
    """Maps whose squares open a detail each."""

    maps: tuple[Figure, ...]
    hint: str  # what stands there as long as none is open
    details: tuple[Detail, ...]


Block: TypeAlias = (
    str
    | Text
    | Heading
    | Items
    | Facts
    | Numbers
    | Table
    | Figure
    | Bare
    | FilmStrip
    | Film
    | Side
    | Fold
    | Article
    | Details
)


def figures_in(blocks: Iterable[Block]) -> Iterator[Figure]:
    """Yield the figures among blocks and inside of them."""
    for block in blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Bare):
            yield from figures_in([block.block])
        elif isinstance(block, Details):
            yield from (*block.maps, *(one for detail in block.details for one in figures_in(detail.blocks)))
        elif isinstance(block, Blocks):
            yield from figures_in(block.blocks)
