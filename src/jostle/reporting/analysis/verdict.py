"""The verdict on a run in one sentence, the same in report, viewer and command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.core import formatting
from jostle.core.timing import LIMITS
from jostle.evaluation.results.comparison import RunComparison, Standing
from jostle.evaluation.results.pm_k import OffsetErrors, offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis
from jostle.evaluation.run_folder.journal import WorkDone
from jostle.evaluation.run_folder.metadata import RunFacts, format_adaptation
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.labels import short_name

# Lower limit of relative robustness, and its wording.
WORDS = (
    (1.0, "loses nothing"),
    (0.97, "is robust"),
    (0.90, "is fairly robust"),
    (0.75, "is clearly affected"),
    (0.50, "is strongly affected"),
    (0.0, "fails"),
)


def verdict_of(analysed: RunAnalysis | RunRecord, model: str) -> str:
    """Summarise one run in a sentence or two."""
    record = analysed if isinstance(analysed, RunRecord) else analysed.record
    offsets = offset_errors(record)
    if offsets and not analysed.counted:
        return frames_verdict(offsets[0], model)
    run = Standing.of(analysed)
    clean, mean, left = run.clean, run.corrupted, run.relative.value
    chance = f"; {run.chance.text}" if run.chance.text else ""
    scored = f"{model} scores {percent(clean.value)} ({run.metric}{chance}) on clean video"
    if mean is None:
        return f"{scored}; {'no corruption that counts was' if run.tried else 'no corruption was'} tried."
    if left is None:
        return f"{scored}, so its relative robustness is undefined; on corrupted video it scores {percent(mean)}."
    if run.guesses:
        return (
            f"{model} is not significantly better than chance on clean video ({percent(clean.value)} "
            f"{run.metric}{chance}), so its relative robustness has no meaning; on corrupted video it scores "
            f"{percent(mean)}."
        )
    worst = min(run.cells, key=lambda cell: run.cells[cell])
    corruption, severity = split_cell(worst)
    at = f" at severity {severity}" if severity is not None else ""
    level = f" ({run.chance.text})" if run.chance.text else ""
    return (
        f"{_judge(model, run.relative)} under corruption it keeps {percent(left)} % of its clean {run.metric}, "
        f"{percent(mean)} of {percent(clean.value)}{level}. Hardest is {short_name(corruption)}{at}, "
        f"where it scores {percent(run.cells[worst])}."
    )


def _judge(model: str, relative: Estimate) -> str:
    """Return the opening of a verdict: the word that the whole interval of relative robustness has, if it has one."""
    if relative.interval is None:
        return f"No verdict on {model} without an interval:"
    low, high = (next(words for least, words in WORDS if end >= least) for end in relative.interval)
    ends = between(relative)
    if low == high:
        return f"{model} {low} (relative robustness {ends}):"
    if low.startswith("is "):
        high = high.removeprefix("is ")
    return f"Whether {model} {low} or {high} is open (relative robustness {ends}):"


def frames_verdict(errors: OffsetErrors, model: str) -> str:
    """Summarise one pm-k run in a sentence."""
    return (
        f"{model} is right on {percent(errors.accuracy)} % of the anchors, and on {percent(errors.pm_k)} % when it "
        f"must also be right on every similar frame within {errors.k}: a drop of {percent(errors.drop)} points."
    )


def comparison_verdict(comparison: RunComparison, one: str, other: str) -> str:
    """Compare two runs in a sentence."""
    parts = [
        (comparison.relative, "% of the clean score under corruption"),
        (comparison.corrupted, "under corruption"),
        (comparison.clean, "on clean video"),
    ]
    if not comparison.relative_comparable:
        del parts[0]
    blind = [name for name, guesses in zip((one, other), comparison.guesses, strict=True) if guesses]
    guessed = (
        f" {' and '.join(blind)} {'is' if len(blind) == 1 else 'are'} not significantly better than chance "
        "on clean video."
        if blind
        else ""
    )
    gap, what = next((pair for pair in parts if pair[0].difference.value is not None), parts[-1])
    if gap.difference.value is None:
        return f"{other} and {one} have nothing in common that was scored."
    significance = "significant" if gap.clear else "not significant"
    ends = "" if gap.difference.interval is None else f" ({significance}, 95 % interval {between(gap.difference)})"
    return (
        f"{other} {'keeps' if gap is comparison.relative else 'scores'} {percent(gap.other)} {what}, {one} "
        f"{percent(gap.one)}: {abs(100 * gap.difference.value):.1f} points "
        f"{'more' if gap.difference.value >= 0 else 'less'}{ends}.{guessed}{_incomparable(comparison)}"
    )


def _incomparable(comparison: RunComparison) -> str:
    return (
        "" if comparison.relative_comparable or any(comparison.guesses) else f" {describe_clean_difference(comparison)}"
    )


def describe_clean_difference(comparison: RunComparison) -> str:
    """Say why relative values of two runs do not compare, whose clean scores differ significantly."""
    gap = comparison.clean.difference
    return (
        f"The clean scores differ significantly ({formatting.signed(gap.value, 1)} points, 95 % interval "
        f"{between(gap)}), so that relative values do not compare: a model that is worse on clean video has less to "
        "lose."
    )


def describe_windows(about: RunFacts) -> str | None:
    """Describe the feature windows recorded in a run, or return None if they are the default or absent."""
    rule, faults = about.rule, about.reproduce_bugs
    if rule in (None, "all") and not faults:
        return None
    return f"{rule}, with the faults {' and '.join(faults)}" if faults else str(rule)


def describe_work(work: WorkDone) -> str:
    """Describe how the time of a run was spent.

    >>> describe_work(WorkDone(8, 4, 10.0, 6.0, 30.0, 4.0, 0.1, "model", apart=True))
    '10 s for 8 videos by 4 workers: decoding 15 %, corrupting 75 %, waiting for the model 10 %; limited by the model'
    """
    whole = max(work.decoding + work.corrupting + work.model, 1e-9)
    model = "waiting for the model" if work.apart else "the model"
    parts = {"decoding": work.decoding, "corrupting": work.corrupting, model: work.model}
    shares = ", ".join(f"{part} {100 * seconds / whole:.0f} %" for part, seconds in parts.items())
    by = f"{work.workers} workers" if work.workers > 1 else "one worker"
    return f"{work.seconds:.0f} s for {work.videos} videos by {by}: {shares}; limited by {LIMITS[work.limit]}"


def describe_mending(mend: str | None, weights: str | None) -> str | None:
    """Describe how damaged frames were mended, or return None if they were not."""
    if mend is None:
        return None
    if weights is None:
        return "damaged frames known from the placement (oracle)"
    return f"damaged frames found by {mend}, {weights}"


def describe_adaptation(adapt: Mapping[str, Any] | None) -> str | None:
    """Describe how the network adapted to the videos, or return None if it did not.

    >>> describe_adaptation({"method": "bn", "protocol": "online", "predicts": "after the step", "settings": {"n": 16}})
    'bn, online, predictions after the step; n 16'
    """
    if adapt is None:
        return None
    settings = ", ".join(f"{name} {value}" for name, value in adapt["settings"].items() if value is not None)
    return f"{format_adaptation(adapt)}, predictions {adapt['predicts']}; {settings}"


def between(estimate: Estimate, digits: int = 1) -> str:
    """Format an interval in brackets, or return the empty string."""
    return formatting.between(estimate.interval, digits)


def percent(value: float | None, digits: int = 1) -> str:
    """Format a fraction as a percentage, or `n/a`."""
    return formatting.percent(value, digits)
