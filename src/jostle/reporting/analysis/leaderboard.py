"""A leaderboard as plain data: runs of one benchmark that may stand side by side, and what papers print of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run
from jostle.evaluation.run_folder.folder import run_folder
from jostle.reporting.analysis.labels import short_name
from jostle.reporting.analysis.summary import RunSummary, read_summary, summary_of
from jostle.reporting.published.table import PublishedModel, published_models

REPORTS = ("report.html", "report/report.html", "report/index.html")  # where a run's own page may lie, in its folder
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LeaderboardEntry:
    """A row of a board."""

    name: str  # as it is called there; two rows of one table have two names
    summary: RunSummary  # what it says
    origin: str  # where it was taken from, without the folders above: a run folder or a file
    # Whether that is a record, which holds means and no results of videos: they cannot be computed again here
    self_reported: bool
    report: Path | None  # its own page, where there is one

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values for JSON; scores are fractions."""
        own = self.summary
        numbers = {"clean": own.clean, "corrupted": own.corrupted, "relative": own.relative}
        return {
            "name": self.name,
            "model": own.facts.model,
            "self_reported": self.self_reported,
            "whole": own.whole,
            "guesses": own.guesses,
            "conditions": own.conditions,
            "chance": own.chance,
            **{key: {"value": one.value, "interval": one.interval} for key, one in numbers.items()},
            "origin": self.origin,
            "checksum": own.checksum,
        }


@dataclass(frozen=True)
class LeaderboardGroup:
    """Runs that were measured alike: one make of the benchmark, one data set, one ground truth."""

    json_keys: ClassVar = ("scope", "rows")

    scope: str  # data set and coverage, in words
    # The best mean under corruption first; those that lack videos or cells behind the others
    entries: tuple[LeaderboardEntry, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The entries as plain values for JSON."""
        return [one.to_dict() for one in self.entries]

    @property
    def corruptions(self) -> tuple[str, ...]:
        """Those that any row has, in the benchmark's order."""
        return tuple(dict.fromkeys(name for one in self.entries for name in one.summary.by_corruption))


@dataclass(frozen=True)
class Board:
    """All that there is of one benchmark, and of its recipe on other data."""

    json_keys: ClassVar = ("benchmark", "metric", "tables")

    benchmark: str  # its name
    title: str  # as papers print it
    metric: str  # what the scores are
    frames: bool  # whether it is of frame classifiers and has no corruptions
    groups: tuple[LeaderboardGroup, ...]  # what may be compared, the largest first
    published: tuple[PublishedModel, ...]  # what papers print

    @property
    def corruptions(self) -> tuple[str, ...]:
        """Names of the papers' columns by corruption."""
        return tuple(dict.fromkeys(name for one in self.published for name in one.by_corruption))

    @property
    def runs(self) -> int:
        """Number of rows that were measured with jostle."""
        return sum(len(group.entries) for group in self.groups)

    @property
    def tables(self) -> tuple[LeaderboardGroup, ...]:
        """The groups, under their key in JSON."""
        return self.groups


def boards_of(
    sources: Sequence[Path], *, draws: int, seed: int = 0, progress: Progress | None = None
) -> tuple[Board, ...]:
    """Boards of run folders and of records, by name of the benchmark.

    Args:
        draws: of the videos, for the intervals of run folders; records have their own.
        progress: called with (sources read, sources in all).

    Raises:
        BadValue: if there is no source, or one twice.
        Tampered: if a record is not as it was written.
        DataError: if a run is not finished, or something is neither a run nor a record.
    """
    if not sources:
        raise BadValue("a board needs at least one run folder or record")
    summaries: dict[str, tuple[RunSummary, Path]] = {}
    for done, source in enumerate(sources, 1):
        if _is_record(source):
            summary = read_summary(source)
        else:
            summary = summary_of(analyse_run(RunRecord.read(source), draws=draws, seed=seed))
        if summary.checksum in summaries:
            raise BadValue(f"{summaries[summary.checksum][1]} and {source} are the same run; give it once")
        summaries[summary.checksum] = summary, source
        if progress is not None:
            progress(done, len(sources))
    by_benchmark: dict[str, list[tuple[RunSummary, Path]]] = {}
    for summary, source in summaries.values():
        by_benchmark.setdefault(summary.facts.recipe, []).append((summary, source))
    return tuple(_board(name, held) for name, held in sorted(by_benchmark.items()))


def _is_record(source: Path) -> bool:
    """Whether a source is an exported record rather than a run folder or a file in one."""
    return source.is_file() and run_folder(source) == source


def _board(benchmark: str, held: Sequence[tuple[RunSummary, Path]]) -> Board:
    first = held[0][0]
    groups: dict[tuple[str, str, str], list[tuple[RunSummary, Path]]] = {}
    for summary, source in held:
        facts = summary.facts
        groups.setdefault((facts.dataset, facts.truth, facts.fingerprint), []).append((summary, source))
    ranked = [_group(benchmark, members) for members in groups.values()]
    ranked.sort(key=lambda group: (-len(group.entries), group.scope))
    title = benchmarks[benchmark].title if benchmark in benchmarks else benchmark
    frames = first.has_pm_k and not any(summary.cells for summary, _ in held)
    return Board(benchmark, title, first.metric, frames, tuple(ranked), published_models(benchmark))


def _group(benchmark: str, held: Sequence[tuple[RunSummary, Path]]) -> LeaderboardGroup:
    first, facts = held[0][0], held[0][0].facts
    known = next((benchmarks[name] for name in benchmarks if name == benchmark), None)
    on = facts.dataset if facts.benchmark == benchmark else facts.benchmark.removeprefix(f"{benchmark} on ")
    title = f"{', '.join(filter(None, (on, facts.subset)))}: {first.coverage.of} videos"
    if known is not None and facts.dataset != known.dataset:
        title += f"; not on {known.dataset}, so not to be held against what is published"
    elif known is not None and facts.fingerprint != known.fingerprint:
        title += f"; another make of the benchmark than this jostle's ({facts.fingerprint[:19]})"
    names = _names([summary for summary, _ in held], [source for _, source in held])
    entries = [
        LeaderboardEntry(name, summary, source.resolve().name, _is_record(source), _report(run_folder(source)))
        for name, (summary, source) in zip(names, held, strict=True)
    ]
    entries.sort(key=lambda one: (not one.summary.whole, -(one.summary.corrupted.value or 0), one.name))
    return LeaderboardGroup(title, tuple(entries))


def _names(summaries: Sequence[RunSummary], sources: Sequence[Path]) -> list[str]:
    """The model and its features; of several alike also the folder, and a number where even that is the same."""
    plain = [", ".join(part for part in (one.facts.display_name, one.facts.extractor) if part) for one in summaries]
    folders = [path.resolve().name.removesuffix(".json").removesuffix(".record") for path in sources]
    longer = [f"{name} ({folder})" for name, folder in zip(plain, folders, strict=True)]
    alike = Counter(plain)
    names = [name if alike[name] == 1 else more for name, more in zip(plain, longer, strict=True)]
    alike = Counter(names)
    return [name if alike[name] == 1 else f"{name} {i}" for i, name in enumerate(names, 1)]


def _report(source: Path) -> Path | None:
    if source.is_file():
        return None
    return next((source / name for name in REPORTS if (source / name).is_file()), None)


def label_corruptions(names: Iterable[str]) -> list[tuple[str, str]]:
    """(name, as a reader knows it) of corruptions; with the profile where two would read alike."""
    listed = list(names)
    short = [short_name(name) for name in listed]
    alike = Counter(short)
    return [
        (name, label if alike[label] == 1 else name.replace("_", " "))
        for name, label in zip(listed, short, strict=True)
    ]
