"""Diagnosis with DETAD: precision, false positives, sensitivity, false negatives; and the bugs of its program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.core.results import Result
from jostle.core.tables import Table, data_frame
from jostle.core.types.columns import Floats, Ints
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.metrics.alignment import align, pluralize
from jostle.metrics.diagnosis.characteristics import Instances, annotated_segments, prepare
from jostle.metrics.diagnosis.false_negatives import FalseNegatives, count_misses
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, FalsePositives, choose_best, sort_errors
from jostle.metrics.diagnosis.numbers import diagnosis_tables
from jostle.metrics.diagnosis.sensitivity import Sensitivity, measure_sensitivity
from jostle.metrics.diagnosis.style import Style, styles
from jostle.metrics.matching import Matches, match
from jostle.metrics.mean_ap import (
    average_precision_table,
    instance_ranks,
    mean_of_table,
    mean_over_classes,
    reverse_ties,
)
from jostle.metrics.protocol import protocols

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Precision:
    """Average precision of some predictions, plain and normalised."""

    count: int  # how many predictions there are
    ap: Floats  # (C, T); NaN for a class without an instance, as in `ap_n`
    ap_n: Floats  # (C, T) with DETAD's normalised precision

    @property
    def map(self) -> Floats:
        """(T,) mean over the classes that have an instance."""
        return mean_over_classes(self.ap)

    @property
    def map_n(self) -> Floats:
        """(T,) normalised mean over the classes that have an instance."""
        return mean_over_classes(self.ap_n)

    @property
    def average_map(self) -> float:
        return mean_of_table(self.ap)

    @property
    def average_map_n(self) -> float:
        return mean_of_table(self.ap_n)


@dataclass(frozen=True, eq=False)
class Diagnosis(Result):
    """DETAD diagnosis of a detector."""

    style: str  # name of the style
    tious: Floats  # (T,) thresholds
    annotators: int  # how many annotations of each instance were used
    normaliser: float  # N, the mean number of instances of a class
    classes: tuple[str, ...]  # names of the classes that the tables have a row for
    precision: Precision  # of all predictions
    top_10g: Precision  # of the ten times as many best predictions of each class as it has instances
    false_positives: FalsePositives  # among the top-10G
    sensitivity: Sensitivity  # to the characteristics of instances
    false_negatives: FalseNegatives  # the instances that are missed
    instances: Instances  # those that count, with their characteristics; columns of `missed` are in their order
    facts: dict[str, dict[str, Any]]  # of the truth and the predictions, by JSON key
    remarks: tuple[str, ...]  # messages for the user

    def to_frame(self) -> Any:
        """Return a pandas data frame with the profile of false positives, a row for each split.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        profile = self.to_dict()["false_positives"]["profile"]
        return data_frame({key: [split[key] for split in profile] for key in profile[0]})

    def tables(self) -> tuple[Table, ...]:
        """Return the scores, what each kind of error costs, and sensitivity and misses by bucket."""
        return diagnosis_tables(("",), (self.to_dict(),))

    def notes(self) -> tuple[str, ...]:
        """Return the remarks on the predictions and the ground truth."""
        return self.remarks

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values for JSON: fractions, and None for undefined values."""
        false_positives, missed = self.false_positives, self.false_negatives
        return {
            "format": FORMAT,
            "style": self.style,
            "tious": self.tious.tolist(),
            "annotators": self.annotators,
            "map": self.precision.map.tolist(),
            "map_n": self.precision.map_n.tolist(),
            "average_map": self.precision.average_map,
            "average_map_n": self.precision.average_map_n,
            "normaliser": self.normaliser,
            "top_10g": {
                "count": self.top_10g.count,
                "average_map": self.top_10g.average_map,
                "average_map_n": self.top_10g.average_map_n,
            },
            "false_positives": {
                "profile": false_positives.profile,
                "totals": false_positives.totals,
                "counts": {name: false_positives.counts[:, i].tolist() for i, name in enumerate(ERROR_KINDS)},
                "impact": dict(false_positives.impact),
            },
            "sensitivity": {"base": self.sensitivity.base}
            | {name: dict(buckets) for name, buckets in self.sensitivity.buckets.items()},
            "sensitivity_profile": {name: dict(vars(extent)) for name, extent in self.sensitivity.profile.items()},
            "false_negatives": {"overall": missed.overall}
            | {name: dict(rates) for name, rates in missed.buckets.items()}
            | {
                "share": {name: dict(shares) for name, shares in missed.share.items()},
                "pairs": {name: dict(rates) for name, rates in missed.pairs.items()},
            },
            "characteristics": {
                name: {"computed": characteristic.computed, "without_bucket": characteristic.without}
                for name, characteristic in self.instances.characteristics.items()
            },
            "truth": dict(self.facts["truth"]),
            "predictions": dict(self.facts["predictions"]),
        }

    def __repr__(self) -> str:
        impact = self.false_positives.impact
        worst = max(impact, key=lambda name: impact[name])
        return (
            f"Diagnosis({self.style}: average mAP {self.precision.average_map:.2%}, "
            f"mAP_N {self.precision.average_map_n:.2%}, costliest error {worst.replace('_', ' ')} "
            f"{impact[worst]:+.2%}, missed {self.false_negatives.overall:.2%})"
        )


def diagnose(
    predictions: Predictions, truth: Truth, *, style: str | Style = "thumos14", annotators: int = 1
) -> Diagnosis:
    """Diagnose the predictions of a detector.

    Predictions are matched twice: all of them, which gives mAP, sensitivity and misses, and the top-10G, which give
    the kinds of false positives and what each costs. `MENDED_FAULTS` lists the bugs of the public program that are
    fixed here.

    Args:
        style: name of a style, or one of your own: thresholds and buckets.
        annotators: use the first so many annotations of each instance, any of which a prediction may match.

    Raises:
        DataError: if there is nothing to diagnose, or the two are of different datasets.

    >>> truth = Truth(("a",), ("Jump",), [0, 0], [1.0, 4.0], [2.0, 6.0], [0, 0])
    >>> found = Predictions(("a",), ("Jump",), [0, 0], [1.0, 5.0], [2.0, 9.0], [0, 0], [0.9, 0.5])
    >>> diagnose(found, truth)
    Diagnosis(thumos14: average mAP 50.00%, mAP_N 50.00%, costliest error double detection +0.00%, missed 50.00%)
    """
    chosen = styles[style] if isinstance(style, str) else style
    protocol, tious = protocols["activitynet"], np.array(chosen.tious)
    instances = prepare(truth, chosen)
    counted = instances.truth
    segments = annotated_segments(counted, annotators)
    normaliser = len(segments.instance) / instances.classes
    aligned = align(predictions, counted)
    positives = counted.counts

    matches = match(aligned, counted, protocol, tious, segments=segments)
    precision = _precision(matches, positives, normaliser)
    file_order = reverse_ties(matches.ranking, aligned)
    best = choose_best(
        aligned,
        matches.ranking,
        file_order,
        instances=np.bincount(counted.label[segments.instance], minlength=len(counted.classes)),
    )
    best_matches = match(best.aligned, counted, protocol, tious, segments=segments)
    return Diagnosis(
        style=chosen.name,
        tious=tious,
        annotators=annotators,
        normaliser=normaliser,
        classes=counted.classes,
        precision=precision,
        top_10g=_precision(best_matches, positives, normaliser),
        false_positives=sort_errors(
            best,
            best_matches,
            counted,
            segments=segments,
            rows=instances.rows,
            positives=positives,
            normaliser=normaliser,
        ),
        sensitivity=measure_sensitivity(
            matches,
            file_order,
            instances.characteristics,
            classes=len(counted.classes),
            normaliser=normaliser,
            base=precision.average_map_n,
        ),
        false_negatives=count_misses(matches, instances.characteristics, positives=positives, normaliser=normaliser),
        instances=instances,
        facts={
            "truth": {
                "videos": len(truth.videos),
                "instances": len(counted),
                "classes": instances.classes,
                "subset": truth.subset,
                "fingerprint": truth.fingerprint,
                "left_out": dict(truth.left_out) | instances.dropped,
            },
            "predictions": dict(aligned.counts),
        },
        remarks=aligned.remarks + _remarks(truth, instances, positives),
    )


def _precision(matches: Matches, positives: Ints, normaliser: float) -> Precision:
    ranks = instance_ranks(matches)
    return Precision(
        count=len(matches.ranking.order),
        ap=average_precision_table(ranks, matches.label, positives),
        ap_n=average_precision_table(ranks, matches.label, positives, normaliser=normaliser),
    )


def _remarks(truth: Truth, instances: Instances, positives: Ints) -> tuple[str, ...]:
    dropped = dict(truth.left_out) | instances.dropped
    remarks = [f"{pluralize(count, 'instance')} left out: {why}" for why, count in dropped.items() if count]
    emptied = instances.classes - int(np.count_nonzero(positives))
    if emptied:
        remarks.append(f"classes that lost all of their instances, in no mean: {emptied}")
    for name, characteristic in instances.characteristics.items():
        if characteristic.without:
            remarks.append(
                f"{characteristic.without} instances are in no bucket of {name}: it is missing or outside the edges"
            )
    return tuple(remarks)


@dataclass(frozen=True)
class MendedFault:
    """A bug of the public program that is fixed here."""

    number: int  # in the list of known bugs; 0 for an intended difference that is not in it
    original: str  # what the public program does
    ours: str  # what is done here


MENDED_FAULTS = (
    MendedFault(
        1,
        "In a video without ground truth only the first unmatched prediction is called background; the following are "
        "compared with the instances of the video before it, or the program stops.",
        "Every unmatched prediction in such a video is background.",
    ),
    MendedFault(
        2,
        "Sensitivity stops at a class without a prediction, and an empty bucket makes the smallest and largest value "
        "depend on the order of the buckets.",
        "Such a class counts 0; an empty bucket has no value and is left out of smallest and largest.",
    ),
    MendedFault(
        3,
        "A class whose instances were all dropped turns every mean into NaN, but counts 0 among the top-10G.",
        "Such a class is left out of every mean; the normaliser still counts it among the classes.",
    ),
    MendedFault(
        4, "A prediction of no length, or one that ends before it starts, can match an instance.", "It matches nothing."
    ),
    MendedFault(
        7,
        "A characteristic that is missing, or outside all buckets, stops the analysis of false negatives.",
        "The instance is in no bucket of that characteristic; how many there are is reported.",
    ),
    MendedFault(
        8,
        "Ground truth that spells `num_instances`, as the THUMOS14 validation file does, is refused; so is any file "
        "without coverage, length or number of instances.",
        "Both spellings are understood, and what can be computed is computed.",
    ),
    MendedFault(
        9,
        "Tied scores are sorted by an unstable sort, so results move with the versions installed.",
        "Every sort is stable: the later of two rows is matched first, as the public program means it.",
    ),
    MendedFault(
        0,
        "A prediction of a class that the ground truth lacks stops the program.",
        "It is left out and counted, unless most are such.",
    ),
)
