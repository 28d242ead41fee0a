"""Published figures of a run's benchmark, listed beside measured ones and never mixed with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.results.record import RunRecord
from jostle.reporting.published.table import PublishedModel, published_models

ALWAYS = "Figures are as printed: of other weights, by other programs and decoders; most papers give no intervals."


@dataclass(frozen=True)
class Literature(Result):
    """Published models of one benchmark."""

    json_keys = ("title", "remarks", "models")

    title: str  # a heading that says that nothing of this was measured here
    models: tuple[PublishedModel, ...]  # in the papers' order
    frames: bool  # whether it is a benchmark of frame classifiers, which has no corruptions
    remarks: tuple[str, ...]  # what keeps these figures and those of the runs apart

    @property
    def comparable(self) -> bool:
        """Whether nothing but what holds for all printed figures keeps them apart from the runs."""
        return self.remarks == (ALWAYS,)

    def tables(self) -> tuple[Table, ...]:
        """Return a row a model, with its source; columns that no paper fills are left out."""
        words = ("accuracy on anchors", "pm-k") if self.frames else ("clean", "corrupted, mean")
        heads = {
            "clean": words[0],
            "corrupted": words[1],
            "relative": "relative robustness",
            "absolute": "absolute robustness",
        }
        kept = [key for key in heads if any(getattr(model, key) is not None for model in self.models)]
        columns = (Column("published model"), *(Column(heads[key], "percent") for key in kept), Column("source"))
        rows = tuple((one.name, *(getattr(one, key) for key in kept), one.source) for one in self.models)
        return (Table(self.title, columns, rows, self.remarks),)


def literature_on(records: Sequence[RunRecord]) -> Literature | None:
    """Return the published figures for the benchmark of these runs, or None."""
    name = records[0].about.recipe
    models = published_models(name)
    if not models:
        return None
    remarks = dict.fromkeys(remark for record in records for remark in apart(record))
    title = f"Published on {benchmarks[name].title}, not measured here"
    return Literature(title, models, records[0].metric.recorded == "pm_k", (*remarks, ALWAYS))


def apart(record: RunRecord) -> list[str]:
    """Why a run cannot be held against published figures of its benchmark; empty where nothing speaks against it."""
    about, scores = record.about, record.scores
    reasons = []
    known = benchmarks[about.recipe]  # what is published is of these
    if about.dataset != known.dataset:
        reasons.append(f"{record.name} is on {about.dataset}, the papers on {known.dataset}: not comparable.")
    elif about.fingerprint != known.fingerprint:
        reasons.append(f"{record.name} is of another make of {about.benchmark}: not comparable.")
    coverage, counted = scores.coverage, scores.counted
    if coverage.videos < coverage.of:
        reasons.append(f"{record.name} is on {coverage.videos} of {coverage.of} videos: not comparable.")
    elif known.items and coverage.of < known.items - 1:  # papers and lists differ by one video
        reasons.append(f"{record.name} is on {coverage.of} videos, the papers on {known.items}: not comparable.")
    if counted.cells < counted.of:
        reasons.append(
            f"{record.name} has {counted.cells} of {counted.of} cells: its means are not those of the papers."
        )
    return reasons
