"""Paired comparison of two runs on the same videos, with a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.core.notebook import html_table
from jostle.core.types.columns import Floats
from jostle.errors import DataError
from jostle.metrics.bootstrap import Interval, bootstrap_interval
from jostle.metrics.score import Score


@dataclass(frozen=True, eq=False)
class Comparison:
    """Difference of two runs: the second minus the first.

    Attributes:
        tious: (n,) thresholds.
        map: (n,) difference in mean average precision at each.
        average_map: difference of the averages.
        per_class: (n,) difference by class.
        interval: paired bootstrap over videos, or None.
        share_worse: share of the draws in which the second is below the first; None without draws.
    """

    protocol: str
    tious: Floats
    map: Floats
    average_map: float
    per_class: dict[str, Floats]
    interval: Interval | None
    share_worse: float | None

    def _repr_html_(self) -> str:
        ends = self.interval
        rows = [
            [f"{tiou:g}", f"{100 * value:+z.2f}", "" if ends is None else _format_interval(ends.map[i])]
            for i, (tiou, value) in enumerate(zip(self.tious, self.map, strict=True))
        ]
        average = "" if ends is None else _format_interval(ends.average_map)
        rows.append(["average", f"{100 * self.average_map:+z.2f}", average])
        note = "The second run less the first, in points of mAP; brackets are 95 % over the same draws of videos."
        return html_table(f"{self.protocol} protocol", ["tIoU", "change", "95 %"], rows, notes=(note,))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON."""
        return {
            "format": 1,
            "protocol": self.protocol,
            "tious": self.tious.tolist(),
            "map": self.map.tolist(),
            "average_map": self.average_map,
            "per_class": {name: values.tolist() for name, values in self.per_class.items()},
            "interval": None if self.interval is None else self.interval.to_dict(),
            "share_worse": self.share_worse,
        }


def _format_interval(ends: Any) -> str:
    return f"[{100 * ends[0]:z.2f}, {100 * ends[1]:z.2f}]"


def compare(one: Score, other: Score, *, bootstrap: int = 1000, level: float = 0.95, seed: int = 0) -> Comparison:
    """Return the difference `other - one`, with an interval from drawing the same videos for both.

    Raises:
        DataError: if the two were not scored by one truth, protocol and grid of thresholds.
    """
    if one.truth.fingerprint != other.truth.fingerprint:
        raise DataError(
            f"the two runs were scored by different ground truths, {one.truth.fingerprint[:19]} and "
            f"{other.truth.fingerprint[:19]}; score both by one",
            fault="F48",
        )
    if one.protocol != other.protocol or not np.array_equal(one.tious, other.tious):
        raise DataError(
            f"the two runs were scored by different rules, {one.protocol} at {one.tious.tolist()} and "
            f"{other.protocol} at {other.tious.tolist()}; score both by one",
            fault="F48",
        )
    interval, share = None, None
    if bootstrap:
        everything = {*one.resamples.videos, *other.resamples.videos}
        first = one.resamples.mean_aps(draws=bootstrap, seed=seed, videos=everything)
        differences = other.resamples.mean_aps(draws=bootstrap, seed=seed, videos=everything) - first
        interval = bootstrap_interval(differences, other.map - one.map, level=level, seed=seed)
        share = float(np.mean(differences.mean(axis=1) < 0))
    return Comparison(
        protocol=one.protocol,
        tious=one.tious,
        map=other.map - one.map,
        average_map=other.average_map - one.average_map,
        per_class={name: other.per_class[name] - values for name, values in one.per_class.items()},
        interval=interval,
        share_worse=share,
    )
