"""What a run says in a sentence, the same wherever it is said."""

from __future__ import annotations

import math

from jostle.evaluation.run_folder.events import WorkDone
from jostle.evaluation.run_folder.metadata import Origin
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.comparison import Comparison
from jostle.reporting.analysis.grid import short_name
from jostle.reporting.analysis.offsets import OffsetErrors, offset_errors
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.run_analysis import Survey
from jostle.reporting.analysis.standing import Standing

# What is left of the clean score, at least, and what is said of it.
WORDS = (
    (1.0, "does not flinch"),
    (0.97, "hardly flinches"),
    (0.90, "holds up"),
    (0.75, "stumbles"),
    (0.50, "is badly shaken"),
    (0.0, "falls over"),
)


def verdict_of(found: Survey | RunRecord, model: str) -> str:
    """One run in a sentence or two."""
    record = found if isinstance(found, RunRecord) else found.record
    offsets = offset_errors(record)
    if offsets and not found.counted:
        return frames_verdict(offsets[0], model)
    run = Standing.of(found)
    clean, mean, left = run.clean, run.corrupted, run.relative
    scored = f"{model} scores {percent(clean.value)} ({run.metric}) on clean video"
    if mean is None:
        return f"{scored}; {'no corruption that counts was' if run.tried else 'no corruption was'} tried."
    if left is None:
        return (
            f"{scored}, so what is left of that under corruption cannot be said; corrupted it scores {percent(mean)}."
        )
    if run.guesses:
        return (
            f"{model} cannot be told from guessing on clean video ({percent(clean.value)} {run.metric}), so what is "
            f"left under corruption says nothing; corrupted it scores {percent(mean)}."
        )
    said = next(words for least, words in WORDS if left >= least)
    worst = min(run.cells, key=lambda cell: run.cells[cell])
    corruption, severity = split_cell(worst)
    at = f" at severity {severity}" if severity is not None else ""
    return (
        f"{model} {said}: under corruption it keeps {percent(left, 0)} % of its clean {run.metric}, "
        f"{percent(mean)} of {percent(clean.value)}. Hardest is {short_name(corruption)}{at}, "
        f"where {percent(run.cells[worst])} is left."
    )


def frames_verdict(found: OffsetErrors, model: str) -> str:
    """One run of pm-k in a sentence."""
    return (
        f"{model} is right on {percent(found.accuracy)} % of the anchors, and on {percent(found.pm_k)} % when it must "
        f"also be right on every similar frame within {found.k}: {percent(found.drop)} points hang on which frame it "
        "is shown."
    )


def comparison_verdict(found: Comparison, one: str, other: str) -> str:
    """Two runs in a sentence."""
    told = [
        (found.relative, "% of the clean score under corruption"),
        (found.corrupted, "under corruption"),
        (found.clean, "on clean video"),
    ]
    blind = [name for name, guesses in zip((one, other), found.guesses, strict=True) if guesses]
    guessed = f" {' and '.join(blind)} cannot be told from guessing on clean video." if blind else ""
    gap, what = next((pair for pair in told if pair[0].difference.value is not None), told[-1])
    if gap.difference.value is None:
        return f"{other} and {one} have nothing in common that was scored."
    sure = (
        "other videos would hardly turn that round"
        if gap.clear
        else "with other videos it might be the other way round"
    )
    ends = "" if gap.difference.interval is None else f" {between(gap.difference)}; {sure}"
    return (
        f"{other} {'keeps' if gap is found.relative else 'scores'} {percent(gap.other)} {what}, {one} "
        f"{percent(gap.one)}: {abs(100 * gap.difference.value):.1f} points "
        f"{'more' if gap.difference.value >= 0 else 'less'}{ends}.{guessed}"
    )


def windows_said(about: Origin) -> str | None:
    """Which windows features were made of, by what a run says of itself; None if as usual, or if there are none."""
    rule, faults = about.rule, about.released_faults
    if rule in (None, "all") and not faults:
        return None
    return f"{rule}, with the faults {' and '.join(faults)}" if faults else str(rule)


def work_said(work: WorkDone) -> str:
    """What the time of a run went to.

    >>> work_said(WorkDone(8, 4, 10.0, 6.0, 30.0, 4.0, 0.1, "model", apart=True))
    '10 s for 8 videos by 4 workers: decoding 15 %, corrupting 75 %, waiting for the model 10 %; limited by the model'
    """
    whole = max(work.decoding + work.corrupting + work.model, 1e-9)
    model = "waiting for the model" if work.apart else "the model"
    parts = {"decoding": work.decoding, "corrupting": work.corrupting, model: work.model}
    shares = ", ".join(f"{part} {100 * seconds / whole:.0f} %" for part, seconds in parts.items())
    limit = {"model": "the model", "disk": "the disk"}.get(work.limit, work.limit)
    by = f"{work.workers} workers" if work.workers > 1 else "one worker"
    return f"{work.seconds:.0f} s for {work.videos} videos by {by}: {shares}; limited by {limit}"


def mending_said(mend: str | None, weights: str | None) -> str | None:
    """What took struck frames out before a model looked, by what a run says of itself; None if nothing did."""
    if mend is None:
        return None
    if weights is None:
        return "struck frames known from the placement itself: as well as it could be done"
    return f"struck frames found by {mend}, {weights}"


def between(found: Estimate, digits: int = 1) -> str:
    """An interval in brackets, empty where there is none."""
    ends = found.interval
    return "" if ends is None else f"[{100 * ends[0]:z.{digits}f}, {100 * ends[1]:z.{digits}f}]"


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction as a percentage, `n/a` where there is none."""
    return "n/a" if value is None or math.isnan(value) else f"{100 * value:z.{digits}f}"
