"""A run in a few kilobytes, for those who do not have its folder: with a checksum, and refused if that does not fit."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from jostle.core.schema import Count, Mismatch, Share, parse
from jostle.core.types.language import MAX_OPTIONS
from jostle.datasets.dataset import datasets
from jostle.errors import DataError, Tampered
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks, content_fingerprint
from jostle.evaluation.results.comparison import Standing
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis
from jostle.evaluation.run_folder.metadata import RunFacts
from jostle.evaluation.run_folder.scores import Counted, Coverage, Ratio
from jostle.evaluation.tasks.task import tasks
from jostle.evaluation.tasks.validation import check_content
from jostle.evaluation.tasks.words import Words
from jostle.io.files.atomic import write_text
from jostle.io.files.records import read_record
from jostle.metrics.accuracy import TopKAccuracy
from jostle.metrics.answers import AnswerAccuracy
from jostle.metrics.metric import Chance, Metric, find_metric, metrics
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.labels import benchmark_title

KIND = "jostle run record"
NEAR = 1e-9  # of means in binary
ENOUGH_DRAWS = 100  # from which on the interval of a share of videos holds that share
_REMEDY = "ask its maker for another, by `jostle board --export RUN`"


@dataclass(frozen=True)
class Number:
    """A value with its interval; fractions."""

    value: Ratio | None  # None where it has no meaning
    interval: tuple[Ratio, Ratio] | None = None  # (low, high), None where it cannot be had

    @classmethod
    def of(cls, estimate: Estimate) -> Number:
        """Return the number of an analysis."""
        return cls(estimate.value, estimate.interval)


@dataclass(frozen=True)
class CellNumber:
    """Score of one cell in a record."""

    cell: str
    value: Share
    interval: tuple[Ratio, Ratio] | None
    counted: bool


@dataclass(frozen=True)
class RunSummary:
    """Leaderboard record of a run."""

    title: str  # of the benchmark
    metric: str  # what the scores are
    facts: RunFacts  # what decided the results
    versions: dict[str, str]  # of the libraries that decide bits, jostle among them
    coverage: Coverage  # on how many videos, of how many
    counted: Counted  # over how many cells the means are, of how many
    clean: Number  # the score on clean video; of a frame classifier its accuracy on anchors
    corrupted: Number  # the mean over cells; of a frame classifier without cells, pm-k
    relative: Number  # what is left of the clean score; None of a frame classifier without cells
    guesses: bool  # whether it is at chance level on clean video
    cells: tuple[CellNumber, ...]  # what each is worth
    draws: Count  # of the videos, for the intervals
    chance: Share | None = None  # the score of guesses on clean video; None where no answers are counted
    stopped_early: str | None = None  # why the run ended before all videos were processed

    @property
    def words(self) -> Words:
        """What readers call things in runs of the task."""
        return tasks[self.facts.content.task].words

    @property
    def metric_kind(self) -> Metric:
        """Metric of the benchmark."""
        return find_metric(self.facts.content.metric)

    @property
    def has_pm_k(self) -> bool:
        """Whether the clean score is an accuracy on anchors, and pm-k the second number where there are no cells."""
        return self.metric_kind.recorded == "pm_k"

    @property
    def conditions(self) -> dict[str, str]:
        """Conditions that are not the default, and whether the run stopped early, in words."""
        early = {} if self.stopped_early is None else {"stopped early": self.stopped_early}
        return self.facts.special_conditions() | early

    @property
    def whole(self) -> bool:
        """Whether the record covers all videos and all cells."""
        return self.coverage.videos == self.coverage.of and self.counted.cells == self.counted.of

    @property
    def coverage_text(self) -> str:
        """On how much it is, in words."""
        cells = f", {self.counted.cells} of {self.counted.of} cells" if self.counted.of else ""
        return f"{self.coverage.videos} of {self.coverage.of} videos{cells}"

    @cached_property
    def by_corruption(self) -> dict[str, float]:
        """The mean over severities of each corruption that counts."""
        found: dict[str, list[float]] = {}
        for one in self.cells:
            if one.counted:
                found.setdefault(split_cell(one.cell)[0], []).append(one.value)
        return {name: math.fsum(values) / len(values) for name, values in found.items()}

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The record as plain values for JSON; computed once, as large ones take a while."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        if _is_shipped(self.facts):  # whoever reads the record knows it as well
            del content["facts"]["content"]
        return content | ({"conditions": self.conditions} if self.conditions else {})

    @cached_property
    def checksum(self) -> str:
        """Checksum of the content, independent of its layout in a file."""
        return _checksum(self.plain)


def summary_of(analysis: RunAnalysis) -> RunSummary:
    """Summarise an analysed run."""
    record = analysis.record
    about, scores = record.about, record.scores
    standing = Standing.of(analysis)
    numbers = (Number.of(analysis.of(CLEAN)), Number.of(analysis.corrupted()), Number.of(analysis.relative()))
    offsets = offset_errors(record)
    if offsets and not analysis.counted:
        own = offsets[0]
        numbers = (Number(own.accuracy, own.accuracy_interval), Number(own.pm_k, own.pm_k_interval), Number(None))
    return RunSummary(
        title=benchmark_title(record),
        metric=scores.metric,
        facts=about.facts,
        versions=about.versions,
        coverage=scores.coverage,
        counted=scores.counted,
        clean=numbers[0],
        corrupted=numbers[1],
        relative=numbers[2],
        guesses=standing.guesses,
        cells=tuple(_cell(analysis, cell) for cell in analysis.cells if cell != CLEAN),
        draws=len(analysis.drawn),
        chance=standing.chance.score or None,
        stopped_early=None if about.stopped_early is None else about.stopped_early.reason,
    )


def _cell(analysis: RunAnalysis, cell: str) -> CellNumber:
    own = analysis.of(cell)
    if own.value is None:
        raise DataError(f"{analysis.record.folder}: {cell} has no value; the same `jostle run` measures it")
    return CellNumber(cell, own.value, own.interval, cell in analysis.counted)


def check_whole(record: RunRecord) -> None:
    """Raise DataError unless a run is on all videos and cells of its benchmark."""
    coverage, counted = record.scores.coverage, record.scores.counted
    if coverage.videos < coverage.of or counted.cells < counted.of:
        raise DataError(
            f"{record.folder}: on {coverage.videos} of {coverage.of} videos and {counted.cells} of {counted.of} cells; "
            "the same `jostle run` does the rest, or let it count as a part of the benchmark (partial=True, --partial)"
        )


def write_summary(summary: RunSummary, path: Path) -> None:
    """Write a record, with its checksum; the target changes all at once."""
    plain = {"format": 1, "kind": KIND, "checksum": summary.checksum, "record": summary.plain}
    write_text(path, [json.dumps(plain, indent=1, ensure_ascii=False), "\n"])


@dataclass(frozen=True)
class _Sealed:
    """A file that `write_summary` wrote."""

    format: Literal[1]
    kind: Literal["jostle run record"]
    checksum: str
    record: dict[str, Any]


def read_summary(path: Path) -> RunSummary:
    """A record, once its checksum and its sums are found right.

    Raises:
        Tampered: if it is not as it was written.
        DataError: if it is no record.
    """
    sealed = read_record(_Sealed, path, _REMEDY)
    if _checksum(sealed.record) != sealed.checksum:
        raise Tampered(
            f"{path}: was changed after it was written: its checksum is {_checksum(sealed.record)[:19]}, and it says "
            f"{sealed.checksum[:19]}; {_REMEDY}",
            fault="F118",
        )
    record = sealed.record if "facts" in sealed.record else _with_facts(sealed.record)
    try:
        record = _with_content(record)
    except Mismatch as error:
        raise Tampered(f"{path}: record.{error}; {_REMEDY}", fault="F125") from None
    try:
        summary = parse(RunSummary, record)
        _check_task(summary)
        _check_numbers(summary)
    except Mismatch as error:
        raise Tampered(f"{path}: record.{error}; {_REMEDY}", fault="F118") from None
    try:
        _check_recipe(summary)
    except Mismatch as error:
        raise Tampered(f"{path}: record.{error}; {_REMEDY}", fault="F125") from None
    return summary


def _with_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of an earlier version, which had facts of its own beside the numbers, as it is now."""
    names = [one.name for one in fields(RunFacts)]
    facts = {name: record[name] for name in names if name in record} | {"missing": []}
    if isinstance(facts.get("adapt"), str):
        method, _, protocol = facts["adapt"].partition(", ")
        facts["adapt"] = {"method": method, "protocol": protocol}
    if facts.get("content") is None:
        facts.pop("content", None)
    return {"facts": facts} | {key: value for key, value in record.items() if key not in names}


def _with_content(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the definition of its benchmark, which the file leaves out if it comes with jostle."""
    facts = record["facts"]
    if not isinstance(facts, dict) or "content" in facts:
        return dict(record)
    content = _registered_content(facts)
    if content is None:
        fingerprint = str(facts.get("fingerprint"))[:19]
        raise Mismatch(
            f"is {fingerprint}, of {facts.get('benchmark')!r}: this jostle does not know that benchmark, so its cells "
            "cannot be checked; register it (--import)"
        ).under("fingerprint")
    return {**record, "facts": facts | {"content": content}}


def _is_shipped(facts: RunFacts) -> bool:
    """Return whether the definition of a run's benchmark comes with jostle."""
    return benchmarks.part(facts.recipe) is None and _registered_content(vars(facts)) is not None


def _registered_content(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the definition of a run's benchmark as this jostle knows it, or None if it does not know this one."""
    if facts.get("recipe") not in benchmarks:
        return None
    recipe = benchmarks[facts["recipe"]]
    if facts["benchmark"] != recipe.name:
        on = facts["benchmark"].removeprefix(f"{recipe.name} on ")
        recipe = recipe.on(facts["dataset"], facts["subset"], on)
    return recipe.content() if recipe.fingerprint == facts["fingerprint"] else None


def _check_task(summary: RunSummary) -> None:
    """Raise Mismatch unless the definition of the benchmark has the fields of a known task."""
    try:
        check_content(summary.facts.content)
    except Mismatch as error:
        raise error.under("content").under("facts") from None


def _check_numbers(summary: RunSummary) -> None:
    """Raise Mismatch unless the numbers of a record agree with each other."""
    cells, counted = summary.cells, [one.value for one in summary.cells if one.counted]
    twice = [name for name, count in Counter(one.cell for one in cells).items() if count > 1]
    if twice:
        raise Mismatch(f"have {twice[0]!r} more than once").under("cells")
    for what in ("clean", "corrupted"):
        if (getattr(summary, what).value or 0) > 1:
            raise Mismatch(f"is {getattr(summary, what).value}, and a score is at most 1").under(what)
    if summary.clean.value is None:
        raise Mismatch("is missing").under("clean")
    _check_coverage(summary, len(counted))
    if counted:
        mean = math.fsum(counted) / len(counted)
        _check_near(summary.corrupted.value, mean, "and its cells have a mean of", "corrupted")
        left = mean / summary.clean.value if summary.clean.value else None
        _check_near(summary.relative.value, left, "and the others give", "relative")
    else:
        pm_k = summary.has_pm_k  # without cells its second number is pm-k, which is at most the accuracy
        if (summary.corrupted.value is not None) != pm_k:
            raise Mismatch(f"is {summary.corrupted.value}, without cells").under("corrupted")
        if summary.relative.value is not None:
            raise Mismatch(f"is {summary.relative.value}, without cells").under("relative")
        if pm_k and (summary.corrupted.value or 0) > summary.clean.value:
            raise Mismatch(f"is above the accuracy of {summary.clean.value}").under("corrupted")
    numbers = {"clean": summary.clean, "corrupted": summary.corrupted, "relative": summary.relative}
    for name, number in (numbers | {one.cell: one for one in cells}).items():
        _check_interval(summary, name, number)


def _check_near(value: float | None, expected: float | None, why: str, key: str) -> None:
    if (value is None) != (expected is None) or abs((value or 0) - (expected or 0)) > NEAR:
        raise Mismatch(f"is {value}, {why} {expected if expected is None else format(expected, '.6g')}").under(key)


def _check_coverage(summary: RunSummary, counted: int) -> None:
    coverage = summary.coverage
    if not 0 < coverage.videos <= coverage.of:
        raise Mismatch(f"is {coverage.videos} of {coverage.of} videos").under("coverage")
    if (coverage.classes or 0) > (coverage.of_classes or 0):
        raise Mismatch(f"is {coverage.classes} of {coverage.of_classes} classes").under("coverage")
    if summary.counted.cells != counted or counted > summary.counted.of:
        raise Mismatch(
            f"is {summary.counted.cells} of {summary.counted.of} cells, and {counted} of those listed count"
        ).under("counted")


def _check_interval(summary: RunSummary, name: str, number: Number | CellNumber) -> None:
    ends, value = number.interval, number.value
    if ends is None:
        return
    if value is None or not (summary.draws or summary.has_pm_k):
        raise Mismatch(f"has an interval {list(ends)} without {'a value' if value is None else 'draws'}").under(name)
    if ends[0] > ends[1] or (name != "relative" and ends[1] > 1):
        raise Mismatch(f"has {list(ends)} as interval, which is none of shares").under(name)
    # Draws of a mean average precision may all lie above it, those of a share of videos lie on both sides.
    share = summary.metric_kind.mean_over and name != "relative" and summary.draws >= ENOUGH_DRAWS
    if share and not ends[0] - NEAR <= value <= ends[1] + NEAR:
        raise Mismatch(f"is {value}, outside of its interval {list(ends)}").under(name)


def _check_recipe(summary: RunSummary) -> None:
    """Raise Mismatch unless the cells, counts and scores of a record are possible by its benchmark."""
    facts, content = summary.facts, summary.facts.content
    if content_fingerprint(json.loads(json.dumps(asdict(content)))) != facts.fingerprint:
        raise Mismatch(f"is not that of the benchmark's content, {facts.fingerprint[:19]}").under("fingerprint")
    measure = metrics[content.metric].label(content) if content.metric in metrics else summary.metric
    for key, own, known in (
        ("benchmark", facts.benchmark, content.name),
        ("recipe", facts.recipe, content.name.partition(" on ")[0]),
        ("dataset", facts.dataset, content.dataset),
        ("metric", summary.metric, measure),
    ):
        if own != known:
            raise Mismatch(f"is {own!r}, and the benchmark has {known!r}").under(key)
    defined = {one.cell: one.counted for one in content.cells if one.cell != CLEAN}
    for one in summary.cells:
        if defined.get(one.cell) != one.counted:
            has = "does not have it" if one.cell not in defined else f"has it with counted {defined[one.cell]}"
            raise Mismatch(f"have {one.cell!r}, and the benchmark {has}").under("cells")
    if summary.counted.of != sum(defined.values()):
        raise Mismatch(f"is out of {summary.counted.of} cells, and the benchmark has {sum(defined.values())}").under(
            "counted"
        )
    kind = datasets[facts.dataset] if facts.dataset in datasets else None  # noqa: SIM401
    listed = 0 if kind is None else kind.videos.get(facts.subset, 0)
    if summary.coverage.of < listed:
        raise Mismatch(f"is of {summary.coverage.of} videos, and {facts.dataset} has {listed}").under("coverage")
    if isinstance(summary.metric_kind, TopKAccuracy):
        _check_answers(summary, content.k or 1)
    elif isinstance(summary.metric_kind, AnswerAccuracy):
        _check_chance(summary)
    elif summary.guesses != Chance(summary.chance or 0.0, None).explains(summary.clean.value, summary.clean.interval):
        raise Mismatch(f"is {summary.guesses}, and the clean score says otherwise").under("guesses")


def _check_chance(summary: RunSummary) -> None:
    """Check that the chance level of questions is possible, and that it decides whether the clean score is guessed."""
    if summary.chance is None:  # a metric of one's own
        return
    if not 1 / MAX_OPTIONS - NEAR <= summary.chance <= 0.5 + NEAR:
        raise Mismatch(f"is {summary.chance}, and questions have 2 to {MAX_OPTIONS} options").under("chance")
    clean = summary.clean
    expected = Chance(summary.chance, None).explains(clean.value, clean.interval)
    if clean.interval is not None and summary.guesses != expected:
        raise Mismatch(f"is {summary.guesses}, and the clean score says otherwise").under("guesses")


def _check_answers(summary: RunSummary, k: int) -> None:
    """Check what follows from every score being a number of right answers out of the videos."""
    videos = summary.coverage.videos
    for name, value in (("clean", summary.clean.value), *((one.cell, one.value) for one in summary.cells)):
        right = (value or 0) * videos
        if abs(right - round(right)) > NEAR * videos:
            raise Mismatch(f"is {value}, which is no number of {videos} videos").under(name)
    classes = k / summary.chance if summary.chance else summary.coverage.of_classes
    if classes is None:
        return
    if abs(classes - round(classes)) > NEAR * classes or round(classes) < (summary.coverage.classes or k):
        raise Mismatch(f"is {summary.chance}, which is not {k} of any number of classes").under("chance")
    if summary.guesses != Chance(k / classes, videos).explains(summary.clean.value, None):
        raise Mismatch(f"is {summary.guesses}, and the clean score says otherwise").under("guesses")


def _checksum(record: dict[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
