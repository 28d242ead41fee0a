"""What a run says in a sentence."""

from __future__ import annotations

from jostle.benchmarks.recipe import CLEAN
from jostle.findings.comparison import Comparison
from jostle.findings.draws import Estimate
from jostle.findings.grid import short_name
from jostle.findings.offsets import OffsetErrors
from jostle.findings.survey import Survey
from jostle.metrics.robustness import split_cell
from jostle.pages.drawing import percent

# What is left of the clean score, at least, and what is said of it.
WORDS = (
    (1.0, "does not flinch"),
    (0.97, "hardly flinches"),
    (0.90, "holds up"),
    (0.75, "stumbles"),
    (0.50, "is badly shaken"),
    (0.0, "falls over"),
)


def verdict_of(found: Survey, model: str) -> str:
    """One run in a sentence or two."""
    clean, mean, left = found.of(CLEAN), found.corrupted(), found.relative()
    metric = found.record.scores["metric"]
    if mean.value is None:
        return f"{model} scores {percent(clean.value)} ({metric}) on clean video; no corruption was tried."
    if left.value is None:
        return (
            f"{model} scores {percent(clean.value)} ({metric}) on clean video, so what is left of that under "
            f"corruption cannot be said; corrupted it scores {percent(mean.value)}."
        )
    if clean.value is not None and (clean.interval or (clean.value,))[0] <= guessing(found):
        return (
            f"{model} cannot be told from guessing on clean video ({percent(clean.value)} {metric}), so what is left "
            f"under corruption says nothing; corrupted it scores {percent(mean.value)}."
        )
    said = next(words for least, words in WORDS if left.value >= least)
    worst = min(found.counted, key=lambda cell: found.value[found.place[cell]])
    corruption, severity = split_cell(worst)
    at = f" at severity {severity}" if severity is not None else ""
    return (
        f"{model} {said}: under corruption it keeps {percent(left.value, 0)} % of its clean {metric}, "
        f"{percent(mean.value)} of {percent(clean.value)}. Hardest is {short_name(corruption)}{at}, "
        f"where {percent(float(found.value[found.place[worst]]))} is left."
    )


def guessing(found: Survey) -> float:
    """The accuracy that guesses would have, all classes as likely; 0 where that is not what is measured."""
    content = found.record.about["content"]
    if found.record.task != "recognition" or content["metric"] != "top_k_accuracy":
        return 0.0
    return float(content["k"]) / max(len(found.record.labels.classes), 1)


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
        f"{'more' if gap.difference.value >= 0 else 'less'}{ends}."
    )


def between(found: Estimate, digits: int = 1) -> str:
    """An interval in brackets, empty where there is none."""
    ends = found.interval
    return "" if ends is None else f"[{100 * ends[0]:.{digits}f}, {100 * ends[1]:.{digits}f}]"
