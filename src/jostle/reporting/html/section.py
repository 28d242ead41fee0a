"""Sections of the report: what one is made from, its registry, and the order in which they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from jostle.core.registry import Registry
from jostle.errors import BadValue, JostleError
from jostle.evaluation.results.comparison import RunComparison, compared
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import RunAnalysis
from jostle.evaluation.tasks.words import Words
from jostle.gate.verdict import Check
from jostle.reporting.html.blocks import Block, Blocks, Heading

TAKEN = ("content", "status", "texts")  # addresses of the page itself


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """A run as a report calls it."""

    number: int  # its place among the runs, from 0
    name: str
    analysis: RunAnalysis
    check: Check | None = None  # the decisions of a gate on it

    @property
    def record(self) -> RunRecord:
        """The run itself."""
        return self.analysis.record


@dataclass(frozen=True, eq=False)
class Report:
    """Runs of one benchmark, as the sections of a report get them."""

    runs: tuple[ReportedRun, ...]
    advance: Callable[[], None] = lambda: None  # called after each video that is pictured

    @property
    def alone(self) -> bool:
        """Whether there is one run only, which then needs no name."""
        return len(self.runs) == 1

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each run."""
        return tuple(run.name for run in self.runs)

    @property
    def metric(self) -> str:
        """The metric as readers know it."""
        return str(self.runs[0].record.scores.metric)

    @property
    def words(self) -> Words:
        """Words for what is special about the task."""
        return self.runs[0].record.task.words

    @cached_property
    def comparisons(self) -> tuple[tuple[ReportedRun, RunComparison], ...]:
        """Every further run, held against the first."""
        first, *others = self.runs
        return tuple((run, compared(first.analysis, run.analysis)) for run in others)

    def heading_of(self, run: ReportedRun) -> Heading | None:
        """Return the heading over what is about one run; None where there is no other."""
        return None if self.alone else Heading(run.name)


class Section(Blocks):
    """What a section has to say on some runs.

    Args:
        title: instead of the registered one, where it depends on the runs.
        short: the same in the navigation.
    """

    def __init__(self, *blocks: Block | None, title: str = "", short: str = "") -> None:
        super().__init__(*blocks)
        self.title = title
        self.short = short


Compose = Callable[[Report], Section | None]


@dataclass(frozen=True)
class SectionKind:
    """A registered section."""

    name: str  # its address in the page
    after: str  # the section that it follows
    title: str
    short: str  # its name in the navigation; empty for one that is not there, and whose heading is unseen
    compose: Compose


sections: Registry[SectionKind] = Registry("section", "jostle.reporting.sections")


def section(name: str, *, after: str, title: str, short: str | None = None) -> Callable[[Compose], Compose]:
    """Register the decorated function as a section of the report, and return it unchanged.

    Args:
        name: its address in the page.
        after: the section that it follows, if that one is there or not.
        title: its heading.
        short: its name in the navigation; by default the title.
    """
    if name in TAKEN or not name.isidentifier():  # no hyphen, as `<name>-title` and `figure-<name>` are addresses too
        taken = ", ".join(TAKEN)
        raise BadValue(f"a section cannot be called {name!r}; use letters, digits and _, and none of {taken}")

    def register(function: Compose) -> Compose:
        sections.add(name, SectionKind(name, after, title, title if short is None else short, function))
        return function

    return register


def sections_in_order() -> list[SectionKind]:
    """Return all sections, each behind the one that it follows; a plugin's before what jostle has there."""
    every = sorted(sections.values(), key=lambda one: (sections.part(one.name) is None, one.name))

    def following(name: str) -> Iterator[SectionKind]:
        for one in every:
            if one.after == name:
                yield from chain([one], following(one.name))

    ordered = list(following(""))
    for lost in every:
        if lost not in ordered:
            sections[lost.after]  # raises UnknownName, with what it may have meant
            raise BadValue(f"section {lost.name} stands after {lost.after}, which stands after it; name another")
    return ordered


@dataclass(frozen=True)
class PlacedSection:
    """A section in its place, ready for the template."""

    name: str
    title: str
    short: str
    blocks: tuple[Block, ...]


def compose_sections(report: Report) -> list[PlacedSection]:
    """Return the sections that have something to say, in order."""
    placed = []
    for kind in sections_in_order():
        found = _compose(kind, report)
        if found is not None:
            title, short = found.title or kind.title, found.short or kind.short
            placed.append(PlacedSection(kind.name, title, short, found.blocks))
    return placed


def _compose(kind: SectionKind, report: Report) -> Section | None:
    part = sections.part(kind.name)
    if part is None:
        return kind.compose(report)
    try:
        found = kind.compose(report)
    except JostleError:
        raise
    except Exception as error:  # a plugin may raise anything
        raise BadValue(f"section {part} failed ({type(error).__name__}: {error})") from error
    if not isinstance(found, Section | None):
        raise BadValue(f"section {part} returned {type(found).__name__}; it must return a Section, or None")
    return found
